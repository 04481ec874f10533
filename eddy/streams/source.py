"""One stream inside the engine: its rows, its legs, and every module that tests them.

A source owns the row store, the filter bank, the predicate modules and the candidate indexes of its stream, and decides
where each leg is placed (`eddy/streams/legs.py`). It knows nothing of commits, queries' answers or routes: the eddy asks it for
modules, the engine tells it which legs there are.

    active            bits of dense slots that rows are matched for: legs and their disjuncts
    legs_mask         bits of dense legs whose rows are listed
    slot_class[slot]  the window class of a dense slot; the same for sparse slots
    results[slot]     rows that satisfied the slot since it was assigned
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eddy.base.plans import NO_MODULES
from eddy.base.result_log import CommitEnds
from eddy.routing.base import Ledger
from eddy.streams.deferral import Deferral
from eddy.streams.expiry import Expiry
from eddy.streams.legs import Clauses, Leg, LegReader, WindowClass, claim_slot
from eddy.streams.outputs import Outputs
from eddy.streams.retained import Retained
from eddy.streams.stored import Stored
from eddy.streams.timeline import Intake, Timeline
from eddy.streams.window_classes import WindowClasses
from filters.expressions.expression import user_functions_of
from filters.expressions.predicate import Atom, Condition, IndexAtom
from filters.expressions.residual import PredicateModule
from filters.index.bank import FilterBank
from filters.index.candidates import CandidateIndex, float_columns, key_columns
from filters.values.intervals import Intervals
from lineage.bits import clear_bit, set_bit, slots_of
from lineage.dictionary import Dictionary
from lineage.ingest import Ingestor
from lineage.module import Module
from lineage.schema import Schema, Type
from lineage.slots import Slots, resized
from queries.bound import OutputColumn, Readable
from stems.derived import DerivedColumns
from stems.gathering import Gatherer
from stems.indexes import Indexes
from stems.own_ends import OwnEnds
from stems.row_ends import EndColumns, RowEnds
from stems.row_store import RowStore
from windows.spec import FOREVER, WindowSpec

#: Legs that fix one column before a candidate index is made for it: a word of slots.
MIN_CANDIDATES = 64
#: Average legs per key value beyond which bits are cheaper than walking candidates.
MAX_PER_VALUE = 32
#: Guesses of the cost of one row until it is measured.
_FILTER_COST_NS = 5.0
_EXPRESSION_COST_NS = 100.0


@dataclass(slots=True)
class Route:
    """An order of the modules that the policy chose, for one set of modules of the source."""

    version: int
    #: ledger numbers, and the same as numbers of filters (-1: a predicate module)
    modules: np.ndarray
    filters: np.ndarray
    #: batches it still serves
    left: int
    #: whether the policy learns from how it goes
    explored: bool


class Source:
    """A stream and all that hangs on it."""

    #: what the names of its indexes begin with (semantics 23)
    stem_kind = "stem"

    def __init__(
        self,
        name: str,
        schema: Schema,
        time_column: int | None,
        timeline: Timeline,
        lateness_us: int,
        drop_late: bool,
        module_numbers: Iterator[int],
        number: int = -1,
        keep_us: int | None = None,
        key: tuple[int, ...] = (),
        end_column: int | None = None,
    ) -> None:
        self.name = name
        #: tells it from an earlier stream of that name; -1 for what is no stream
        self.number = number
        self.schema = schema
        #: the same as queries know it
        self.readable = Readable(schema, key=key, time=time_column, end=end_column)
        self.time_column = time_column
        self.timeline = timeline
        #: by column, those of texts; behind the schema's are the derived ones
        self.dictionaries = [Dictionary() if column.type is Type.STRING else None for column in schema.columns]
        self.ingestor = Ingestor(schema, time_column, self.dictionaries)
        self.intake = Intake(lateness_us, drop_late, front=timeline.advanced)
        self.store = RowStore(schema)
        self.gatherer = Gatherer(self.store)
        self.bank = FilterBank(schema, self.dictionaries)
        self.ledger = Ledger()
        self.legs: dict[tuple[WindowSpec, Condition], Leg] = {}
        #: the legs of joins: apart from the others, for their rows are not listed
        self.held: dict[tuple[WindowSpec, Condition], Leg] = {}
        #: the indexes of the row store that joins probe
        self.stems = Indexes(self.store)
        #: the columns of the row store that are computed
        self.derived = DerivedColumns(self.store, self.dictionaries)
        #: when rows leave windows that count rows
        self.row_ends = EndColumns(self.store)
        #: the ends that rows have of their own; None if they have none
        self.own_ends = OwnEnds(self.store, self.gatherer, key, end_column) if key or end_column is not None else None
        self.deferral = Deferral(self)
        self._shared_outputs: dict[tuple[OutputColumn, ...], tuple[OutputColumn, ...]] = {}
        self.classes = WindowClasses()
        self.expiry = Expiry(self)
        #: predicate modules by the text of their expression
        self.modules: dict[str, PredicateModule] = {}
        self._retained = Retained()
        #: numbers for the names of predicate modules, shared by all streams of an engine
        self._module_numbers = module_numbers
        #: ledger number of each filter, and the other way round (-1: a predicate module)
        self.filter_module = np.zeros(0, np.int64)
        self.filter_of = np.zeros(0, np.int32)
        self.indexes: dict[int, CandidateIndex] = {}
        #: per column, legs that could be placed in a candidate index on it, in the order in which they came
        self._fixing: dict[int, dict[Leg, None]] = {}
        self.float_columns = float_columns(schema)
        self.slots = Slots(self._assign, self._resize)
        self.sparse_slots = Slots(self._assign_sparse, self._resize_sparse)
        self.active = np.zeros(1, np.uint64)
        self.legs_mask = np.zeros(1, np.uint64)
        self.slot_class = np.zeros(64, np.int32)
        self.results = np.zeros(64, np.int64)
        self.sparse_class = np.zeros(64, np.int32)
        self.sparse_results = np.zeros(64, np.int64)
        self.dense_outputs = Outputs()
        self.sparse_outputs = Outputs()
        self.sparse_leg_of: list[Leg | None] = [None] * 64
        self.clauses = Clauses()
        #: counts changes of what rows have to visit: modules with predicates, clauses or none, indexes, stored ids
        self.version = 0
        self._derived_version = -1
        self._ready = np.zeros(0, np.int32)
        self._ready_filters = np.zeros(0, np.int32)
        self.module_by_number: dict[int, PredicateModule] = {}
        self.has_modules = False
        #: whether its dense legs need grouped filters only, and nothing is kept with rows
        self.plain = True
        self.route: Route | None = None
        #: rows whose visits were counted: those matched row-major and samples of the others
        self.counted_rows = 0
        #: those of them whose visits the policy has not seen yet
        self.unlearned_rows = 0
        #: samples taken, and batches until the next one: soon at first, then every so many
        self.samples = 0
        self.unsampled = 0
        #: the ends of the store after the commits that brought rows and are still logged
        self.ends = CommitEnds()
        #: rows from this position on may be kept for the log
        self.logged_from = 0
        #: commits up to this one are no longer logged
        self.log_gone = 0
        #: what a row takes in the log, as it was when the log was last looked at
        self.row_bytes = 9 * len(schema) + 24
        #: (window, last commit) of runs that ended but can still be read in the log
        self.paused: list[tuple[WindowSpec, int]] = []
        #: inputs of running joins that can be read in the log
        self.n_logged_joins = 0
        #: the rows that later queries may see
        self.stored = Stored(keep_us)
        #: whether region ids are kept with rows: some leg's window ends, or a join reads them
        self.keeps_ids = False

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.schema.names

    # ---- slots

    def _dense_modules(self) -> list[Module[Any]]:
        """What holds state per dense slot."""
        return [self.bank, *self.modules.values()]

    def _assign(self, slot: int) -> None:
        self.results[slot] = 0
        self.bank.on_assign(slot)
        for module in self.modules.values():
            module.on_assign(slot)

    def _assign_sparse(self, slot: int) -> None:
        self.sparse_results[slot] = 0
        for index in self.indexes.values():
            index.on_assign(slot)

    def _resize(self, n_words: int) -> None:
        self.active = resized(self.active, n_words, 0)
        self.legs_mask = resized(self.legs_mask, n_words, 0)
        self.slot_class = resized(self.slot_class, n_words * 64, 0)
        self.results = resized(self.results, n_words * 64, 0)
        self.dense_outputs.resize(n_words * 64)
        for module in self._dense_modules():
            module.resize(n_words)

    def _resize_sparse(self, n_words: int) -> None:
        self.sparse_class = resized(self.sparse_class, n_words * 64, 0)
        self.sparse_results = resized(self.sparse_results, n_words * 64, 0)
        self.sparse_leg_of = [*self.sparse_leg_of[: n_words * 64], *([None] * (n_words * 64 - len(self.sparse_leg_of)))]
        self.sparse_outputs.resize(n_words * 64)

    # ---- legs

    def shared_outputs(self, columns: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
        """The same output columns as one object for all queries that select them; remembers the last thousand."""
        held = self._shared_outputs.get(columns)
        if held is None:
            if len(self._shared_outputs) >= 1024:
                del self._shared_outputs[next(iter(self._shared_outputs))]
            held = self._shared_outputs[columns] = columns
        return held

    def leg(self, window: WindowSpec, condition: Condition, label: str) -> Leg:
        """The leg of that window and condition, made and placed if it is new; `label` names the modules made for it."""
        key = window, condition
        found = self.legs.get(key)
        if found is None:
            found = Leg(condition, self._window_class(window), label, self.store.end)
            self._place(found)
            self.legs[key] = found
            found.window.n_legs += 1
        return found

    def hold(self, window: WindowSpec, condition: Condition, label: str, logged: bool = False) -> Leg:
        """The leg of an input of a join: its rows are matched and kept for the window, but listed for nobody.

        `logged`: what the join did can be read in the log. Operators are fed, and read nothing later.

        Its condition has no clauses (`filters/expressions/predicate.py`): what is kept with a row has to tell whether it is true.
        """
        assert not condition.clauses, "disjunctions of joins are predicate modules"
        found = self.held.get((window, condition))
        if found is None:
            found = Leg(condition, self._window_class(window), label, self.store.end)
            if not condition.never:
                self._place_dense(found, listed=False)
            self.held[found.key] = found
            found.window.n_held += 1
            self._keep_ids()
        found.n_joins += 1
        found.window.n_logged += logged
        self.n_logged_joins += logged
        return found

    def let_go(self, leg: Leg, logged: bool = False) -> None:
        """An input of a join reads its leg no more."""
        leg.window.n_logged -= logged
        self.n_logged_joins -= logged
        leg.n_joins -= 1
        if not leg.n_joins:
            del self.held[leg.key]
            self._unplace(leg)
            leg.window.n_held -= 1
            self._tidy(leg.window)

    def add_reader(self, leg: Leg, query: LegReader) -> None:
        """One more query reads a leg."""
        leg.add(query)
        if leg.slot is not None:
            self._outputs_of(leg).add(leg.slot, query.id, query.born)

    def remove_reader(self, leg: Leg, query: LegReader) -> None:
        """A query reads a leg no more; a leg without readers goes."""
        leg.remove(query)
        if leg.slot is not None:
            heir = leg.some_query() if leg.queries else None
            self._outputs_of(leg).remove(leg.slot, query.id, None if heir is None else (heir.id, heir.born))
        if not leg.queries:
            self._drop_leg(leg)

    def _outputs_of(self, leg: Leg) -> Outputs:
        return self.dense_outputs if leg.index_column is None else self.sparse_outputs

    def _drop_leg(self, leg: Leg) -> None:
        """Nobody asks for the leg any more: free its slots and predicates."""
        del self.legs[leg.key]
        for column in key_columns(leg.condition, self.schema):
            self._fixing[column].pop(leg, None)
        self._unplace(leg)
        leg.window.n_legs -= 1
        self._tidy(leg.window)

    def _tidy(self, window: WindowClass) -> None:
        """A leg of a window class has gone: so may the class, and room for slots."""
        if not window.n_legs and not window.n_held:
            self.classes.remove(window)
            self.version += 1
        self._keep_ids()
        self.slots.shrink()
        self.sparse_slots.shrink()
        for f in self.bank.restorable()[:1]:
            self.bank.restore_table(f, self._predicates().get(f, {}))

    def _predicates(self) -> dict[int, dict[int, Intervals]]:
        """The predicates that the dense legs have, by filter and slot."""
        found: dict[int, dict[int, Intervals]] = {}
        for leg in (*self.legs.values(), *self.held.values()):
            if not leg.dense:
                continue
            placed = [(leg.slot, atom) for atom in leg.condition.single()]
            for clause, slots in zip(leg.condition.clauses, leg.disjuncts, strict=True):
                placed.extend(zip(slots, clause, strict=True))
            for slot, atom in placed:
                if isinstance(atom, IndexAtom):
                    f = self.bank.index(atom.position)
                    assert f is not None and slot is not None
                    found.setdefault(f, {})[slot] = atom.intervals
        return found

    def _window_class(self, window: WindowSpec) -> WindowClass:
        found = self.classes.get(window)
        if found is None:
            found = self.classes.add(window, self.store.end)
            self.version += 1
            self._keep_ids()
        return found

    def _keep_ids(self) -> None:
        """Legs have come or gone: see whether anybody needs region ids."""
        keeps = self.classes.any_ends or bool(self.held)
        self.version += keeps != self.keeps_ids
        self.keeps_ids = keeps

    def _place(self, leg: Leg) -> None:
        if leg.condition.never:
            return
        column = self._index_column(leg)
        if column is not None:
            self._place_sparse(leg, column)
        else:
            self._place_dense(leg)

    def _place_dense(self, leg: Leg, listed: bool = True) -> None:
        leg.slot = self.slots.take()
        self._claim(leg.slot, leg)
        if listed:
            set_bit(self.legs_mask, leg.slot)
        for atom in leg.condition.single():
            self._add_atom(leg, leg.slot, atom)
        for clause in leg.condition.clauses:
            slots = []
            for atom in clause:
                slot = self.slots.take()
                self._claim(slot, leg)
                self._add_atom(leg, slot, atom)
                slots.append(slot)
            leg.disjuncts = (*leg.disjuncts, slots)
        if leg.disjuncts:
            self.version += not self.clauses.n_clauses
            self.clauses.add(leg)

    def _claim(self, slot: int, leg: Leg) -> None:
        claim_slot(self.active, self.slot_class, slot, leg.window.number)

    def _release(self, slot: int) -> None:
        clear_bit(self.active, slot)
        self.slots.give_back(slot)

    def _place_sparse(self, leg: Leg, column: int) -> None:
        leg.slot = self.sparse_slots.take()
        leg.index_column = column
        self.sparse_leg_of[leg.slot] = leg
        self.sparse_class[leg.slot] = leg.window.number
        self.indexes[column].add(leg.slot, leg.condition)

    def _unplace(self, leg: Leg) -> None:
        if leg.slot is None:
            return
        if leg.index_column is not None:
            self.indexes[leg.index_column].remove(leg.slot)
            self.sparse_leg_of[leg.slot] = None
            self.sparse_slots.give_back(leg.slot)
            if not self.indexes[leg.index_column].n_entries:
                del self.indexes[leg.index_column]
                self.version += 1
        else:
            for clause, slots in zip(leg.condition.clauses, leg.disjuncts, strict=True):
                for atom, slot in zip(clause, slots, strict=True):
                    self._remove_atom(slot, atom)
                    self._release(slot)
            if leg.disjuncts:
                self.clauses.remove(leg)
                self.version += not self.clauses.n_clauses
                leg.disjuncts = ()
            for atom in leg.condition.single():
                self._remove_atom(leg.slot, atom)
            clear_bit(self.legs_mask, leg.slot)
            self._release(leg.slot)
        leg.slot = leg.index_column = None

    def _add_atom(self, leg: Leg, slot: int, atom: Atom) -> None:
        if isinstance(atom, IndexAtom):
            f = self.bank.add(slot, atom.position, atom.intervals)
            if f == len(self.filter_module):
                number = self.ledger.add(f"filter:{self.name}.{atom.name}", _FILTER_COST_NS)
                self.filter_module = np.append(self.filter_module, number)
                if number == len(self.filter_of):
                    self.filter_of = np.append(self.filter_of, np.int32(-1))
                self.filter_of[number] = f
            self._count_predicate(self.filter_module[f], 1)
            return
        text = str(atom)
        module = self.modules.get(text)
        if module is None:
            functions = user_functions_of(atom.expression)
            kind = f"function:{functions[0].name}" if functions else f"residual:{leg.label}"
            cost = 1000 * sum(function.cost for function in functions) or _EXPRESSION_COST_NS
            held = self._retained.take(text)
            number = self.ledger.add(f"{kind}#{next(self._module_numbers)}", cost) if held is None else held
            if number == len(self.filter_of):
                self.filter_of = np.append(self.filter_of, np.int32(-1))
            module = self.modules[text] = PredicateModule(number, self.ledger.names[number], atom.expression, self.slots.n_words)
        module.add(slot)
        self._count_predicate(module.number, 1)

    def _count_predicate(self, module: int, by: int) -> None:
        """A module applies one predicate more or less; the first and the last change what rows visit."""
        predicates = self.ledger.predicates
        n = int(predicates[module]) + by
        predicates[module] = n
        if n == (by > 0):
            self.version += 1

    def _remove_atom(self, slot: int, atom: Atom) -> None:
        if isinstance(atom, IndexAtom):
            f = self.bank.remove(slot, atom.position, atom.intervals, self.store.end)
            self._count_predicate(self.filter_module[f], -1)
            return
        module = self.modules[str(atom)]
        module.remove(slot)
        self._count_predicate(module.number, -1)
        if not len(module.slots):
            del self.modules[module.text]
            if not self._retained.keep(module.text, module.number):
                self._free_number(module.number)

    def _free_number(self, number: int) -> None:
        """Nobody reads the outcomes of a module that went any more."""
        self.store.drop_outcomes(number)
        self.ledger.remove(number)

    # ---- candidate indexes

    def _index_column(self, leg: Leg) -> int | None:
        """The column by whose candidate index the leg should be found, None for a dense slot."""
        columns = key_columns(leg.condition, self.schema)
        best = None
        for column in columns:
            fixing = self._fixing.setdefault(column, {})
            fixing[leg] = None
            index = self.indexes.get(column)
            if index is None and len(fixing) >= MIN_CANDIDATES and self._spread(fixing, column):
                self._make_index(column, leg)
                index = self.indexes.get(column)
            if index is not None and index.n_entries <= MAX_PER_VALUE * (index.n_values + 1):
                if best is None or index.n_values > self.indexes[best].n_values:
                    best = column
        return best

    def _spread(self, legs: Collection[Leg], column: int) -> bool:
        """Whether the legs fix the column to enough different values."""
        values: set[object] = set()
        for leg in legs:
            for atom in leg.condition.conjuncts:
                if atom.position == column:
                    values.update(atom.intervals.points() or ())
        return len(legs) <= MAX_PER_VALUE * len(values)

    def _make_index(self, column: int, newcomer: Leg) -> None:
        """Move the legs that fix a column from bits to a candidate index."""
        self.indexes[column] = CandidateIndex(column, self.schema, self.dictionaries)
        for leg in [leg for leg in self._fixing[column] if leg is not newcomer and leg.dense]:
            results = self.leg_results(leg)
            readers = list(leg.queries)
            assert leg.slot is not None
            for k, query in enumerate(readers):
                heir = (readers[k + 1].id, readers[k + 1].born) if k + 1 < len(readers) else None
                self.dense_outputs.remove(leg.slot, query.id, heir)
            self._unplace(leg)
            self._place_sparse(leg, column)
            self.sparse_results[leg.slot] = results
            for query in readers:
                self.sparse_outputs.add(leg.slot, query.id, query.born)
        self.version += 1

    def leg_results(self, leg: Leg) -> int:
        """Rows that satisfied the leg since it was placed."""
        if leg.slot is None:
            return 0
        return int((self.results if leg.index_column is None else self.sparse_results)[leg.slot])

    # ---- reading

    def module_numbers(self, condition: Condition) -> Mapping[str, int]:
        """Numbers of the predicate modules of a condition, by the text of their expression."""
        if not condition.residuals and not condition.clauses:
            return NO_MODULES
        texts = [str(atom) for atom in condition.atoms() if not isinstance(atom, IndexAtom)]
        return {text: self.modules[text].number for text in texts}

    def end_run(self, window: WindowSpec, condition: Condition, until: int) -> None:
        """A run over this window and condition ends after a commit, but can still be read in the log."""
        self.paused.append((window, until))
        for atom in condition.atoms():
            if not isinstance(atom, IndexAtom):
                self._retained.retain(str(atom), until)

    def ready_modules(self) -> np.ndarray:
        """Ledger numbers of the modules that apply any predicate, ascending."""
        if self._derived_version != self.version:
            self._derive()
        return self._ready

    def ready_filters(self) -> np.ndarray:
        """The grouped filters among them."""
        if self._derived_version != self.version:
            self._derive()
        return self._ready_filters

    def _derive(self) -> None:
        self._derived_version = self.version
        self._ready = np.flatnonzero(self.ledger.predicates).astype(np.int32)
        filters = self.filter_of[self._ready]
        self._ready_filters = filters[filters >= 0]
        self.module_by_number = {module.number: module for module in self.modules.values()}
        self.has_modules = any(module.slots.size for module in self.modules.values())
        self.plain = not (self.has_modules or self.clauses.n_clauses or self.indexes or self.keeps_ids)

    def ranks_at(self, filter_: int, positions: np.ndarray, ranks: np.ndarray) -> None:
        """Fill in the ranks of rows held on a grouped filter; right for legs older than the row."""
        self.gatherer.ranks(filter_, self.bank.filters[filter_].rank_of(), positions, ranks)

    def end_at(self, seq: int) -> int:
        """The end of the store after a commit that is still logged."""
        end = self.ends.at(seq)
        return self.ends.start if end is None else end

    def log_dropped(self, gone: int) -> None:
        """Commits up to `gone` are no longer logged."""
        self.ends.drop(gone)
        self.logged_from = max(self.logged_from, self.ends.start)
        self.log_gone = gone
        if self.paused:
            self.paused = [(window, until) for window, until in self.paused if until > gone]
            for number in self._retained.drop(gone):
                self._free_number(number)

    @property
    def logged(self) -> bool:
        """Whether anybody can ask the log what became of its rows."""
        return bool(self.legs or self.n_logged_joins or self.paused)

    def unlog(self) -> None:
        """Nobody can: no row is kept for that."""
        self.logged_from = self.store.end

    def stored_from(self, seq: int) -> int:
        """The first position that later queries may see, after the last commit; to be asked before a window comes or goes."""
        return self.stored.settle(seq, self.store, self._wanted)

    def _wanted(self) -> int:
        """The oldest position that `keep` or a window wants now, births aside."""
        store, now = self.store, self.timeline.now
        oldest = store.end
        for window in self.classes.outermost():
            column = self.row_ends.find(window.rows, window.partition)
            assert column is not None, "whoever counts rows holds their ends"
            first = max(self.stored.first, store.first_after(now - window.width_us))
            own = self.own_ends
            oldest = min(oldest, column.oldest_alive(first) if own is None else self._oldest_in(column, own, first))
        by_width = self.classes.by_width
        widest = max(self.stored.keep_us or 0, by_width[-1].window.width_us if by_width else 0)
        return min(oldest, store.first_after(now - widest)) if widest else oldest

    def _oldest_in(self, column: RowEnds, own_ends: OwnEnds, first: int) -> int:
        """The first position from `first` on whose row is neither displaced nor over by itself. O(rows)."""
        held = np.arange(max(first, column.since, self.store.watermark), self.store.end)
        alive = (column.ends_at(held, self.store.end) == FOREVER) & (own_ends.ends_at(held, FOREVER) > self.timeline.now)
        return int(held[np.argmax(alive)]) if alive.any() else self.store.end

    def compact_dictionaries(self) -> None:
        """Throw out strings that no row held, waiting or asked for uses, once they are the larger part."""
        rows_held = self.store.end - self.store.watermark + self.intake.n_waiting
        for column, dictionary in enumerate(self.dictionaries):
            if dictionary is None or len(dictionary) < 65_536 or len(dictionary) < 4 * rows_held:
                continue
            pushed = column < len(self.schema)
            used = [self.store.used_codes(column), *(self.intake.used_codes(column) if pushed else ())]
            new_code = dictionary.compact(np.unique(np.concatenate(used)))
            self.store.recode(column, new_code)
            self.stems.recode(column)
            if not pushed:
                continue
            self.row_ends.recode(column)
            if self.own_ends is not None:
                self.own_ends.recode(column)
            self.intake.recode(column, new_code)
            if column in self.indexes:
                self.indexes[column].recode()
            self.bank.forget_codes()

    # ---- upkeep

    def bytes(self) -> dict[str, int]:
        return {
            "rows": self.store.bytes(),
            "stems": self.stems.bytes(),
            "row_ends": self.row_ends.bytes() + (0 if self.own_ends is None else self.own_ends.bytes()),
            "waiting": self.intake.bytes(),
            "filters": self.bank.bytes(),
            "candidates": sum(index.bytes() for index in self.indexes.values()),
            "strings": sum(dictionary.bytes for dictionary in self.dictionaries if dictionary is not None),
        }

    def check(self) -> None:
        """All invariants of the source and its parts."""
        owned: set[int] = set()
        sparse: dict[int, set[int]] = {column: set() for column in self.indexes}
        modules: dict[str, set[int]] = {text: set() for text in self.modules}

        def expect(slot: int, atom: Atom) -> None:
            if not isinstance(atom, IndexAtom):
                modules[str(atom)].add(slot)

        for key, leg in (*self.legs.items(), *self.held.items()):
            assert leg.key == key and (leg.queries or leg.n_joins), "a leg has queries"
            assert bool(leg.n_joins) == (self.held.get(key) is leg), "joins have legs of their own"
            if leg.slot is not None and not leg.n_joins:
                held = sorted(self._outputs_of(leg).readers(leg.slot))
                assert held == sorted((query.id, query.born) for query in leg.queries), "outputs name the queries of each leg"
            assert all(leg.since <= query.born for query in leg.queries), "stored rows serve every query that counts them"
            assert self.classes[leg.window.window] is leg.window
            if leg.slot is None:
                assert leg.condition.never
            elif leg.index_column is not None:
                sparse[leg.index_column].add(leg.slot)
                assert self.sparse_leg_of[leg.slot] is leg and self.sparse_class[leg.slot] == leg.window.number
            else:
                owned.add(leg.slot)
                for atom in leg.condition.single():
                    expect(leg.slot, atom)
                for clause, slots in zip(leg.condition.clauses, leg.disjuncts, strict=True):
                    for atom, slot in zip(clause, slots, strict=True):
                        owned.add(slot)
                        expect(slot, atom)
        assert set(slots_of(self.active).tolist()) == owned, "the active slots are those of legs"
        assert self.n_logged_joins == sum(window.n_logged for window in self.classes.values()), "windows know who is logged"
        self.slots.check(owned)
        self.sparse_slots.check({slot for slots in sparse.values() for slot in slots})
        self.bank.check(self._predicates())
        self.clauses.check()
        if self._derived_version == self.version:
            derived = self._derived()
            self._derive()
            assert derived == self._derived(), "what is derived is fresh"
        for text, module in self.modules.items():
            module.check(modules[text])
        for column, index in self.indexes.items():
            index.check(sparse[column])
        self.classes.check()
        for window in self.classes.by_width:
            assert window.oldest >= self.store.watermark, "no window reaches below the watermark"
            if window.window.ends:
                self._check_lives(window)
        self.store.check()
        self.derived.check()
        self.stems.check()
        self.row_ends.check()
        if self.own_ends is not None:
            self.own_ends.check()
        self.intake.check()
        if self.keeps_ids:
            self._check_ids()

    def _derived(self) -> tuple[object, ...]:
        ready, filters = self._ready.tolist(), self._ready_filters.tolist()
        return ready, filters, self.has_modules, self.plain, self.module_by_number

    def _check_lives(self, window: WindowClass) -> None:
        """Whatever a window holds is alive."""
        for page, at, stop in self.store.slices(window.oldest, self.store.end):
            alive = page.elements(slice(at, stop), window.window.width_us).alive_at(self.timeline.now)
            assert alive.all(), "a window holds no row that has left"

    def _check_ids(self) -> None:
        """Stored region ids agree with the values for every leg older than the row."""
        for f, filter_ in enumerate(self.bank.filters):
            rank_of = filter_.rank_of()
            for window in self.classes.values():
                for page, at, stop in self.store.slices(window.oldest, self.store.end):
                    if not window.window.ends_by_clock or page.ids is None or page.ids.shape[0] <= f:
                        continue
                    stored = rank_of[page.ids[f, at:stop]]
                    assert ((stored >= 0) & (stored < filter_.n_regions)).all(), "a stored id names a region"
