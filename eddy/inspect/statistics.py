"""The counters of an engine, gathered on demand."""

from __future__ import annotations

from typing import Any

from eddy.catalog.catalog import Catalog
from eddy.commit.committer import Committer
from eddy.history.retention import bytes_kept
from eddy.joins.join_query import JoinQuery
from eddy.matching.eddy import Eddy
from eddy.merges.merge_intake import MergeIntake
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query
from eddy.routing.base import Ledger
from eddy.streams.legs import Leg
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from filters.expressions.predicate import IndexAtom
from lineage.elements import BEGINNING
from lineage.times import to_datetime

#: Accounted bytes of what a query has for itself: the query, its columns and its run.
_QUERY_BYTES = 480
_COLUMN_BYTES = 120
_ATOM_BYTES = 160


def collect(eddy: Eddy, committer: Committer, catalog: Catalog) -> dict[str, Any]:
    """All counters, as `engine.stats()` returns them."""
    sources, queries = catalog.sources, catalog.queries
    inputs = catalog.inputs()
    for source in inputs:
        source.modules.learn(eddy.policy)
    streams = {source.name: _stream(source, committer) for source in sources.values()}
    tables = {table.name: _table(table) for table in catalog.tables.values()}
    per_query = {query.name: of_query(query, catalog) for query in queries.values()}
    own = sum(entry["own_bytes"] for entry in per_query.values())
    return {
        "seq": committer.seq,
        "policy": eddy.policy.name,
        "routing": {"ns": eddy.routing_ns, "total_ns": committer.total_ns, "batches": eddy.batches},
        "timelines": {
            line.name: {
                "time": None if line.now == BEGINNING else to_datetime(line.now),
                "streams": len(line.sources),
                "log": {"commits": len(line.log), "bytes": bytes_kept(line)},
            }
            for line in catalog.timelines.values()
        },
        "modules": {name: entry for source in inputs for name, entry in _modules(source).items()} | _stems(committer),
        "streams": streams,
        "tables": tables,
        "queries": per_query,
        "bytes": own + sum(sum(entry["bytes"].values()) for entry in (*streams.values(), *tables.values())),
    }


def totals(committer: Committer, catalog: Catalog) -> dict[str, Any]:
    """Counts alone: of each stream its rows, late rows, expired rows and newest time; of each table its rows; of each input of a
    merge its rows and how far it is behind."""
    return {
        "seq": committer.seq,
        "queries": len(catalog.queries),
        "tables": {table.name: table.versions.n_open for table in catalog.tables.values()},
        "streams": {source.name: _counts(source) for source in catalog.sources.values()},
        "inputs": {
            source.name: source.intake.inputs.totals()
            for source in catalog.sources.values()
            if isinstance(source.intake, MergeIntake)
        },
    }


def _counts(source: Source) -> dict[str, Any]:
    """The row counts of a stream, and its largest time."""
    intake = source.intake
    newest = None if intake.largest == BEGINNING else to_datetime(intake.largest)
    return {"rows": intake.next_row, "late": intake.late_rows, "expired": intake.expired_rows, "newest": newest}


def _stream(source: Source, committer: Committer) -> dict[str, Any]:
    aggregates = sum(group.bytes for group in committer.templates.shared if group.source is source)
    return {
        "number": source.number,
        **_counts(source),
        "dropped": source.intake.dropped_rows,
        "waiting": source.intake.n_waiting,
        "counted": source.modules.counted_rows,
        "held": source.store.end - source.store.watermark,
        "queries": sum(len(leg.queries) for leg in source.placement.legs.values()),
        "legs": len(source.placement.legs),
        "slots": source.placement.slots.taken,
        "candidates": source.placement.sparse_slots.taken,
        "windows": len(source.placement.classes),
        "filters": source.modules.bank.stats(),
        "stems": source.stems.stats(),
        "derived": source.derived.stats(),
        "bytes": source.bytes() | {"aggregates": aggregates},
        **({} if source.own_ends is None else source.own_ends.stats()),
        **({"merge": source.intake.stats()} if isinstance(source.intake, MergeIntake) else {}),
    }


def _table(table: TableSource) -> dict[str, Any]:
    return {
        "rows": table.versions.n_open,
        "versions": table.store.end - table.store.watermark,
        "unknown_keys": table.unknown_keys,
        "queries": sum(table.readers.values()),
        "slots": table.placement.slots.taken,
        "filters": table.modules.bank.stats(),
        "derived": table.derived.stats(),
        "bytes": table.bytes(),
    }


def _modules(source: Source) -> dict[str, dict[str, Any]]:
    ledger = source.modules.ledger
    found = {}
    for number in source.modules.ready_modules().tolist():
        module = source.modules.by_number.get(number)
        found[ledger.names[number]] = _module(ledger, number) | {"errors": 0 if module is None else module.errors}
    return found


def _stems(committer: Committer) -> dict[str, dict[str, Any]]:
    """The SteMs that joins probe; counts of several groups are summed up, tickets and cost are the last group's."""
    found: dict[str, dict[str, Any]] = {}
    for group in committer.joiner.groups.values():
        if len(group.sources) == 1:
            continue  # nothing is probed
        group.probes.learn()
        ledger = group.probes.ledger
        for number, name in enumerate(ledger.names):
            entry = _module(ledger, number)
            before = found.get(name)
            if before is not None:
                for count in ("predicates", "rows_in", "rows_out", "visits", "cleared"):
                    entry[count] += before[count]
                entry["selectivity"] = entry["rows_out"] / entry["rows_in"] if entry["rows_in"] else None
            found[name] = entry
    return found


def _module(ledger: Ledger, number: int) -> dict[str, Any]:
    rows_in, rows_out = int(ledger.rows_in[number]), int(ledger.rows_out[number])
    return {
        "predicates": int(ledger.predicates[number]),
        "rows_in": rows_in,
        "rows_out": rows_out,
        "visits": rows_in,
        "selectivity": rows_out / rows_in if rows_in else None,
        "cleared": int(ledger.cleared[number]),
        "tickets": float(ledger.tickets[number]),
        "cost_ns": float(ledger.cost_ns[number]),
        "errors": 0,
    }


def _leg_errors(source: Source, leg: Leg) -> int:
    """Values that could not be computed for a leg's condition."""
    atoms = [atom for clause in (leg.single(), *leg.condition.clauses) for atom in clause]
    modules = [source.modules.by_text[str(atom)].errors for atom in atoms if not isinstance(atom, IndexAtom)]
    return sum(modules) + sum(one.column.errors - one.errors_before for one in leg.derived)


def of_query(query: Query, catalog: Catalog) -> dict[str, Any]:
    """The counters of one query."""
    if isinstance(query, TreeQuery):
        sources, operation = {catalog.input(name) for name in query.streams}, query.operation
        shared = operation.group.bytes if isinstance(operation, SharedOperation) else 0
        shared += sum(source.store.bytes() + source.stems.bytes() for source in sources)
        results, errors = query.n_results(), query.errors if operation is None else operation.errors
    elif isinstance(query, JoinQuery):
        shared = sum(source.store.bytes() + source.stems.bytes() for source in set(query.sources))
        results, errors = query.n_results(), query.errors + query.group.walker.errors
    else:
        source, leg = catalog.input(query.stream), query.leg
        shared = 0 if query.window.is_stream else source.store.bytes()
        results, errors = query.results(0 if leg is None else source.placement.leg_results(leg)), query.errors
        errors += 0 if leg is None else _leg_errors(source, leg)
    return {
        "id": query.id,
        "state": query.state,
        "results": results,
        "own_bytes": own_bytes(query),
        "shared_bytes": shared,
        "errors": errors,
    }


def own_bytes(query: Query) -> int:
    """Bytes freed at once by cancelling the query: a fixed account of its parts, and the real size of its operators."""
    atoms: float
    state = 0
    if isinstance(query, TreeQuery):
        atoms, state = 0, query.held_bytes
    elif isinstance(query, JoinQuery):
        atoms = sum(sum(1 for _ in leg.condition.atoms()) / leg.n_joins for leg in query.legs) + len(query.legs)
    else:
        atoms = 0 if query.leg is None else sum(1 for _ in query.leg.condition.atoms()) / len(query.leg.queries)
    kept = 0 if query.kept is None else sum(vector.values.nbytes for vector in query.kept.vectors)
    return int(_QUERY_BYTES + len(query.sql) + _COLUMN_BYTES * len(query.outputs) + _ATOM_BYTES * atoms + kept + state)
