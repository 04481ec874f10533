"""An engine that takes numbered micro-batches and leaves one file of results for each, exactly once across kills.

    OUT/results/batch=000012.parquet    the changes of all queries by batch 12, and in its metadata which rows these were
    OUT/snapshots/...                   the engine after the last batches, two of them (storage/snapshots.py)
    OUT/job.json                        the data and the queries, for a second run with others would go on with a mixture

A batch is one commit. For batch b, in this order, each step durable before the next:

    1. push its rows            2. write results b under another name, sync, rename          3. write the state after b

A kill leaves the engine of some batch s and results up to s or s+1. Whoever calls next comes with a batch b <= s+1, for it goes
on behind what it had taken down as done:

    b <= s       done: the file is there, and nothing happens
    b  = s+1     done (again): the engine is deterministic, so a file that is there already would be written the same

Why the state is saved and not made again from the rows: docs/decisions/0022-state-with-every-micro-batch.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eddy import Engine
from eddy.commit.state_cap import STATE_BYTES
from eddy.state.dump import dump_state, load_state
from lineage.errors import ConflictError, EddyError, GoneError
from pipeline.dataset import MANIFEST, Dataset
from pipeline.draft import sync, telling_disk
from pipeline.merged import Position
from pipeline.targets import EngineTarget
from pipeline.wide import Wide
from storage.disk import LocalDisk
from storage.guarded_disk import GuardedDisk
from storage.snapshots import Snapshots

#: Rows that the log of results holds: what one batch may change. Its bytes are those that the engine may hold at all.
LOG_ROWS = 1 << 22

_JOB = "job.json"
_RESULTS = "results"
_BATCH = b"eddy"


class BatchEngine:
    """The engine of one job. Use it with `with`: the folder is locked while it is open."""

    def __init__(self, out: str | Path, dataset: Dataset, queries: Sequence[Mapping[str, Any]], rows: Wide) -> None:
        self.out = Path(out).absolute()
        self._dataset = dataset
        self._queries = [dict(query) for query in queries]
        self._rows = rows
        self._disk = GuardedDisk(LocalDisk(self.out))
        #: the last batch that the engine has taken; -1 before the first
        self.last = -1
        #: whether a batch was pushed that could not be written: the engine is ahead of what is on the disk, and of no more use
        self._ahead = False

    def __enter__(self) -> Self:
        with telling_disk(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        self._disk.lock()
        try:
            self._check_job()
            self._disk.make_directory(_RESULTS)
            self._snapshots = Snapshots(self._disk)
            self._load()
        except BaseException:
            self._disk.unlock()
            raise
        kinds = {query["name"]: self.engine.query(query["name"]).columns for query in self._queries}
        self._wide = Wide("query", {"seq": "int", "time": "timestamp", "sign": "int"}, kinds)
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.close()
        self._disk.unlock()

    def _check_job(self) -> None:
        """Write down the job's data and queries, or check that they are the same."""
        manifest = hashlib.sha256((self._dataset.path / MANIFEST).read_bytes()).hexdigest()
        job = {"dataset": manifest, "queries": self._queries}
        path = self.out / _JOB
        if path.exists():
            if json.loads(path.read_bytes()) != json.loads(json.dumps(job)):
                raise ConflictError(
                    f"{self.out} belongs to a job with other data or queries",
                    code="other_job",
                    hint="name another folder with --out",
                )
            return
        with telling_disk(self.out):
            temporary = path.with_name(f"{_JOB}.new")
            temporary.write_text(json.dumps(job))
            sync(temporary)
            temporary.rename(path)
            sync(self.out)

    def _load(self) -> None:
        found = self._snapshots.newest()
        if found is None:
            self.engine = Engine(log_rows=LOG_ROWS, log_bytes=STATE_BYTES)
            EngineTarget(self.engine, self._dataset)
            for query in self._queries:
                self.engine.submit(**query)
                # what nobody reads is not logged
                self.engine.changes(query["name"], "now")
            self.position: Position = dict.fromkeys(self._dataset.streams, 0)
            return
        self.last = found.number
        self.position = json.loads(bytes(found.parts[0]))
        self.engine = load_state(found.parts[1:])

    # ---- batches

    def take(self, batch: int, rows: pa.Table) -> bool:
        """Process a batch of the wide rows; return False if it was processed before."""
        assert not self._ahead, "a batch failed half-way: open the folder again"
        given = self._by_stream(rows)
        end = {name: self._end_of(name, given) for name in self.position}
        if batch <= self.last:
            self._check_done(batch, given)
            return False
        start = {name: int(given[name].column("row")[0].as_py()) if name in given else at for name, at in self.position.items()}
        if batch != self.last + 1 or start != self.position:
            raise self._apart(batch, f"the engine has taken batch {self.last}, up to {self.position}")
        since, self._ahead = self.engine.seq, True
        if given:
            self.engine.push_many({name: self._rows.narrow(name, table) for name, table in given.items()})
        self._write_results(batch, since, {"start": start, "end": end})
        self._snapshots.write(batch, [json.dumps(end).encode(), *dump_state(self.engine)])
        self.last, self.position, self._ahead = batch, end, False
        return True

    def _by_stream(self, rows: pa.Table) -> dict[str, pa.Table]:
        """Return the rows of each stream in order; partitions come in Spark's order."""
        found = {}
        for name in self.position:
            table = rows.filter(pc.equal(rows.column("stream"), name))
            if table.num_rows:
                numbers = table.column("row").to_numpy()
                if not np.all(np.diff(numbers) == 1):
                    table = table.take(np.argsort(numbers))
                    numbers = table.column("row").to_numpy()
                    if not np.all(np.diff(numbers) == 1):
                        raise EddyError(f'rows of stream "{name}" are missing or come twice', code="bad_batch")
                found[name] = table
        return found

    def _end_of(self, name: str, given: Mapping[str, pa.Table]) -> int:
        return int(given[name].column("row")[-1].as_py()) + 1 if name in given else self.position[name]

    def _check_done(self, batch: int, given: Mapping[str, pa.Table]) -> None:
        """Check that a finished batch comes with the same rows again."""
        path = self.results_of(batch)
        if not path.exists():
            raise self._apart(batch, f"{path.name} is missing")
        done = json.loads(pq.read_schema(path).metadata[_BATCH])
        rows = {name: [table.column("row")[0].as_py(), table.column("row")[-1].as_py() + 1] for name, table in given.items()}
        if rows != {name: [at, done["end"][name]] for name, at in done["start"].items() if at < done["end"][name]}:
            raise self._apart(batch, f"it has been taken with other rows: {done}")

    def _apart(self, batch: int, detail: str) -> ConflictError:
        return ConflictError(
            f"batch {batch} does not go on where the state in {self.out} ends", code="other_checkpoint", detail=detail,
            hint="the checkpoint and the state belong together: remove the whole folder and start again",
        )  # fmt: skip

    # ---- results

    def results_of(self, batch: int) -> Path:
        return self.out / _RESULTS / f"batch={batch:06}.parquet"

    def _write_results(self, batch: int, since: int, about: Mapping[str, Any]) -> None:
        tables = [self._changes(query["name"], since) for query in self._queries]
        table = pa.concat_tables([self._wide.schema.empty_table(), *tables])
        path = self.results_of(batch)
        temporary = path.with_name(f"{path.name}.new")
        with telling_disk(self.out):
            try:
                pq.write_table(table.replace_schema_metadata({_BATCH: json.dumps(about)}), temporary)
                sync(temporary)
                temporary.rename(path)
                sync(path.parent)
            except OSError:
                # a disk that was filled by half a file must not stay full
                temporary.unlink(missing_ok=True)
                raise

    def _changes(self, query: str, since: int) -> pa.Table:
        try:
            found = self.engine.changes(query, since).arrow()
        except GoneError:
            raise EddyError(
                f"a batch changes more than {LOG_ROWS} rows of results",
                code="too_many_results",
                hint="smaller batches: --max-rows",
            ) from None
        head = {name: found.column(name) for name in ("seq", "time", "sign")}
        # by place: a query may have columns of these names too
        own = pa.table(found.columns[3:], names=list(self.engine.query(query).columns))
        return self._wide.widen(query, own, head)
