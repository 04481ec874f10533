"""A run that is recorded: all that a script (`recorded_script.py`) gives out, by the service and by an engine in a program.

    python -m tests.reference.recorded_run --write      record it anew

The service is asked without sockets, stops and starts again from its snapshot, and once from what a kill would leave. The file
holds one line for each thing that was given out: its name, the digest of its bytes and, of what is compared by meaning, the
text. Plans are not in it: `explain` may say more than it did. Nothing depends on the clock, the machine, the order of a set or a
path.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import gzip
import hashlib
import io
import itertools
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from api.base.jsons import to_json, to_line
from eddy import Engine
from storage.directory import DataDirectory
from storage.disk import LocalDisk
from tests.reference.asgi import Answer, ask
from tests.reference.functions import FUNCTIONS
from tests.reference.in_process import PATIENCE, InProcess, in_process
from tests.reference.payload import encode
from tests.reference.recorded_script import (
    ARRIVING,
    EMBEDDED,
    OPTIONS,
    STREAMS,
    TABLES,
    UNREAD,
    Act,
    Ask,
    Look,
    Refused,
    Restart,
    Rewrite,
    Step,
    Trace,
    make_script,
)
from tests.reference.script import Advance, Delete, Push, Retract, StreamPlan, TablePlan, Tick, Upsert
from tests.reference.values import Row
from tests.reference.workload import MS

FILE = Path(__file__).parents[1] / "e2e" / "recorded_run.ndjson.gz"
MEDIA = {
    "dicts": "application/json", "columns": "application/json", "ndjson": "application/x-ndjson", "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
}  # fmt: skip
#: The kind of digests that do not depend on the order within a commit.
BAG = "bag"


class Recording:
    """What was given out: texts by what they answer, and digests of the rest, of all that was given out under one name."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.digests: dict[str, str] = {}
        self._hashes: dict[str, Any] = {}

    def keep(self, name: str, body: bytes) -> None:
        assert name not in self.texts, f"{name}: twice"
        self.texts[name] = body.decode()

    def digest(self, name: str, body: bytes) -> None:
        found = self._hashes.setdefault(name, hashlib.sha256())
        found.update(len(body).to_bytes(8) + body)
        self.digests[name] = found.hexdigest()[:24]


def record() -> Recording:
    """Run the script by both ways."""
    found = Recording()
    _Embedded(found).run()
    with tempfile.TemporaryDirectory() as directory:
        _Served(found, Path(directory)).run()
    return found


def write(recording: Recording, path: Path = FILE) -> None:
    lines = [to_line({"name": name, "text": text}) for name, text in recording.texts.items()]
    lines += [to_line({"name": name, "digest": digest}) for name, digest in recording.digests.items()]
    path.write_bytes(gzip.compress(b"".join(lines), 9, mtime=0))


def read(path: Path = FILE) -> Recording:
    found = Recording()
    for line in map(orjson.loads, gzip.decompress(path.read_bytes()).splitlines()):
        if "text" in line:
            found.texts[line["name"]] = line["text"]
        else:
            found.digests[line["name"]] = line["digest"]
    return found


def meaning(name: str, text: str) -> Any:
    """What a text says: changes by commit as bags of (time, sign, row), the rows of an answer as a bag, all else as it is."""
    kind = name.split()[1]
    if kind == "changes":
        lines = list(map(orjson.loads, text.splitlines()))
        commits: dict[int, Counter[str]] = {}
        for line in lines:
            if "sign" in line:
                commits.setdefault(line["seq"], Counter())[str(line)] += 1
        return commits, [line for line in lines if "sign" not in line]
    found = orjson.loads(text)
    if kind == "answer":
        found["rows"] = Counter(map(str, found["rows"]))
    return found


def _ipc(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _definition(plan: StreamPlan | TablePlan) -> dict[str, Any]:
    if isinstance(plan, TablePlan):
        return {"columns": plan.columns, "key": list(plan.key), "retroactive": plan.retroactive}
    found: dict[str, Any] = {"columns": plan.columns}
    if plan.time:
        found |= {"time": plan.time, "lateness": plan.lateness_us / MS, "late": plan.late, "timeline": plan.timeline}
    found |= {"keep": plan.keep_us / MS} if plan.keep_us else {}
    return found | ({"key": list(plan.key)} if plan.key else {}) | ({"end": plan.end} if plan.end else {})


_PLANS: dict[str, StreamPlan | TablePlan] = {plan.name: plan for plan in [*STREAMS, ARRIVING, *TABLES]}


def _rows(name: str, rows: list[Row], form: str) -> Any:
    return encode(rows, _PLANS[name].columns, "arrow" if form == "arrow" else "columns" if form == "columns" else "dicts")


def _body(name: str, rows: list[Row], form: str) -> bytes:
    """Rows as the body of a request."""
    found = _rows(name, rows, form)
    match form:
        case "arrow":
            return _ipc(found)
        case "ndjson":
            return b"".join(map(to_line, found))
        case "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, list(_PLANS[name].columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
            return text.getvalue().encode()
    return to_json(found)


class _Run:
    """What both ways have in common: the queries that run, and how far each was read."""

    def __init__(self, recording: Recording, way: str) -> None:
        self._recording = recording
        self._way = way
        self._step = 0
        #: by name: the commit up to which changes were read; None before the first time
        self._cursors: dict[str, int | None] = {}

    def keep(self, kind: str, name: str, body: bytes) -> None:
        """Record a text."""
        self._recording.keep(f"{self._way} {kind} {self._step} {name}", body)

    def digest(self, kind: str, name: str, body: bytes) -> None:
        """Record bytes, with all others of that kind and name."""
        self._recording.digest(f"{self._way} {kind} {name}", body)

    def opened(self, step: Ask) -> None:
        self._cursors |= {definition["name"]: None for definition in step.definitions}

    def looked_at(self, formats: bool) -> list[str]:
        """The queries whose answers are read: those of the crowd only when all formats are."""
        return [name for name in self._cursors if formats or not name.startswith("c_")]

    def read_now(self, formats: bool) -> list[str]:
        """The queries whose changes are read."""
        return [name for name in self.looked_at(formats) if formats or name not in UNREAD]


class _Served(_Run):
    """By the service."""

    def __init__(self, recording: Recording, directory: Path) -> None:
        super().__init__(recording, "rest")
        self._directory = directory
        self._n_lives = 0
        self._service: InProcess
        self._life = contextlib.ExitStack()
        self._live: list[tuple[str, Future[Answer]]] = []

    def run(self) -> None:
        try:
            self._begin(self._directory / "0", 0)
            for plan in [*STREAMS, *TABLES]:
                kind = "tables" if isinstance(plan, TablePlan) else "streams"
                self._told("PUT", f"/v1/{kind}/{plan.name}", json=_definition(plan))
            for self._step, step in enumerate(make_script(), 1):
                self._take(step)
            self._end()
        finally:
            self._life.close()

    # ---- lives

    def _begin(self, path: Path, since: int) -> None:
        directory = DataDirectory.open(LocalDisk(path))
        self._service = self._life.enter_context(in_process(directory=directory))
        self._follow("all", f"tag=all&format=ndjson&since={since}", "/v1/changes")
        self._follow("crowd", f"tag=crowd&format=ndjson&since={since}", "/v1/changes")
        for name in ("f_warm", "j_two", "g_room", "k_orders", "t_live") if since else ():
            self._follow(name, f"format=arrow&since={since}", f"/v1/queries/{name}/changes")

    def _follow(self, name: str, query: str, path: str) -> None:
        """Read changes as they happen until the service stops."""
        given = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            if not given:
                await asyncio.Event().wait()
            return given.pop()

        reading = asyncio.run_coroutine_threadsafe(
            ask(self._service.app, path=path, query=query, receive=receive), self._service._loop
        )
        self._live.append((name, reading))
        deadline = time.monotonic() + PATIENCE
        while len(self._service.service.hub.subscriptions) < len(self._live):
            assert time.monotonic() < deadline and not reading.done(), f"{path}?{query}: {reading}"
            time.sleep(0.001)

    def _end(self) -> None:
        self._life.close()
        for name, reading in self._live:
            answer = reading.result(PATIENCE)
            assert answer.status == 200, answer.body
            if answer.headers["content-type"] == "application/x-ndjson":
                # how often progress is told of what does not concern a reader is a matter of time
                lines = [line for line in answer.body.splitlines(True) if not line.startswith(b'{"progress"')]
                self.digest("live", name, b"".join(lines))
                self.digest(BAG, name, b"".join(sorted(lines)))
            else:
                self.digest("live", f"{name} arrow", answer.body)
        self._live.clear()

    def _restart(self, step: Restart) -> None:
        seq = orjson.loads(self._service.get("/readyz").content)["seq"]
        self._n_lives += 1
        path = self._directory / str(self._n_lives)
        if step.killed:
            shutil.copytree(self._directory / str(self._n_lives - 1), path)
        self._end()
        if not step.killed:
            (self._directory / str(self._n_lives - 1)).rename(path)
        self._begin(path, seq)

    # ---- steps

    def _told(self, method: str, path: str, *, refused: bool = False, **more: Any) -> None:
        """Ask, and record the status and what is said."""
        response = self._service.request(method, path, **more)
        assert (response.status_code >= 400) == refused, f"{method} {path}: {response.text}"
        said = re.sub(rb'"request_id":"[^"]*"', b'"request_id":""', response.content) or b"null"
        self.keep("said", f"{method} {path}", b'{"status":%d,"said":%s}' % (response.status_code, said))

    def _take(self, step: Step) -> None:
        match step:
            case Push({"arriving": _}, _, _) | Tick() | Ask(_, True):
                pass
            case Push(batches, form, True):
                self._told("POST", "/v1/rows", json={name: _rows(name, rows, form) for name, rows in batches.items()})
            case Push(batches, form, _):
                for name, rows in batches.items():
                    headers = {"Content-Type": MEDIA[form]}
                    self._told("POST", f"/v1/streams/{name}/rows", content=_body(name, rows, form), headers=headers)
            case Retract(stream, keys, at):
                body = {"keys": [key for (key,) in keys], "time": at / MS}
                self._told("POST", f"/v1/streams/{stream}/rows/retract", json=body)
            case Upsert(table, rows):
                self._told("POST", f"/v1/tables/{table}/rows", json=_rows(table, rows, "dicts"))
            case Delete(table, keys):
                self._told("POST", f"/v1/tables/{table}/rows/delete", json={"keys": [key for (key,) in keys]})
            case Advance(at, timeline):
                self._told("POST", f"/v1/timelines/{timeline}/advance", json={"time": at / MS})
            case Ask([definition]):
                self._told("POST", "/v1/queries", json=definition)
            case Ask(definitions):
                self._told("POST", "/v1/queries/batch", json={"queries": definitions})
            case Rewrite(name, sql):
                self._told("PUT", f"/v1/queries/{name}", json={"sql": sql, "tags": ["all"], **OPTIONS.get(name, {})})
            case Act("cancel", name):
                self._told("DELETE", f"/v1/queries/{name}")
                del self._cursors[name]
            case Act(verb, name):
                self._told("POST", f"/v1/queries/{name}/{verb}")
            case Trace(stream, row):
                self._told("POST", "/v1/trace", json={"stream": stream, "row": row})
            case Refused(method, path, body):
                self._told(method, path, refused=True, json=body)
            case Restart():
                self._restart(step)
            case Look(formats):
                self._look(formats)
        if isinstance(step, Ask) and not step.embedded:
            self.opened(step)

    def _look(self, formats: bool) -> None:
        for name in self.read_now(formats):
            since = self._cursors[name] or 0
            for form in ("ndjson", "arrow", "sse") if formats else ("ndjson", "arrow"):
                found = self._service.get(f"/v1/queries/{name}/changes?follow=false&since={since}&format={form}")
                assert found.status_code == 200, found.content
                if form == "ndjson":
                    self.keep("changes", name, found.content)
                    self._cursors[name] = orjson.loads(found.content.splitlines()[-1])["progress"]
                else:
                    self.digest(form, name, found.content)
        for name in self.looked_at(formats):
            for form in ("json", "columns", "ndjson", "csv", "arrow") if formats else ("json",):
                found = self._service.get(f"/v1/queries/{name}/answer?format={form}")
                self.digest("head", name, to_json([found.status_code, found.headers["etag"], found.headers["eddy-time"]]))
                if form == "json":
                    self.keep("answer", name, found.content)
                else:
                    self.digest(form, name, found.content)
            if formats:
                self._told("GET", f"/v1/queries/{name}")


class _Embedded(_Run):
    """By an engine in this program, with functions of the user and a clock of its own."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording, "engine")
        self._now = 0
        self._engine = Engine(clock=lambda: self._now / MS)
        #: what listeners got; its order and its parts follow routes, which are chosen by what was measured
        self._given: list[bytes] = []

    def run(self) -> None:
        engine = self._engine
        for name, function in FUNCTIONS.items():
            engine.register(name, function.fn, returns=function.returns)
        for plan in [*STREAMS, ARRIVING, *TABLES]:
            make: Callable[..., Any] = engine.create_table if isinstance(plan, TablePlan) else engine.create_stream
            make(plan.name, **_definition(plan))
        engine.on_commit(self._listen)
        for self._step, step in enumerate(make_script(), 1):
            self._take(step)
        self.digest(BAG, "commits", b"".join(sorted(self._given)))
        engine.check()
        engine.close()

    def _listen(self, commit: Any) -> None:
        """What a listener gets of a part of a commit."""
        rows = list(zip(*(column.to_pylist() for column in (commit.time, *commit.columns.values())), strict=True))
        queries, offsets, lists = (array.tolist() for array in commit.row_lists())
        for query, (first, end) in zip(queries, itertools.pairwise(offsets), strict=True):
            self._given += [to_json([commit.seq, commit.added, query, list(commit.columns), rows[k]]) for k in lists[first:end]]

    def _take(self, step: Step) -> None:
        engine, said = self._engine, None
        match step:
            case Tick(now):
                self._now = now
            case Push(batches, form, True):
                said = engine.push_many({name: _rows(name, rows, form) for name, rows in batches.items()})
            case Push(batches, form, _):
                said = {name: engine.push(name, _rows(name, rows, form)) for name, rows in batches.items()}
            case Retract(stream, keys, at):
                said = engine.retract(stream, [key for (key,) in keys], at / MS)
            case Upsert(table, rows):
                said = engine.upsert(table, _rows(table, rows, "dicts"))
            case Delete(table, keys):
                said = engine.delete(table, [key for (key,) in keys])
            case Advance(at, timeline):
                engine.advance(at / MS, timeline)
            case Ask(definitions):
                for definition in definitions:
                    engine.submit(**definition)
                self.opened(step)
            case Rewrite(name, sql):
                engine.replace(name, sql)
            case Act(verb, name):
                {"pause": engine.pause, "resume": engine.resume, "cancel": engine.cancel}[verb](name)
                if verb == "cancel":
                    del self._cursors[name]
            case Trace(stream, row):
                said = engine.trace(stream, row)
            case Look(formats):
                self._look(formats)
        if said is not None:
            self.keep("said", type(step).__name__, to_json(str(said)))

    def _look(self, formats: bool) -> None:
        for name in self.read_now(formats):
            changes = self._engine.changes(name, self._cursors[name] or 0)
            if name in EMBEDDED:
                lines = [to_line({"seq": one.seq, "time": one.time, "sign": one.sign, "row": one.row}) for one in changes]
                self.keep("changes", name, b"".join(lines))
            else:
                # the service gives them too, but for the numbers of commits
                self.digest("arrow", name, _ipc(changes.arrow()))
            self._cursors[name] = changes.seq
        for name in self.looked_at(formats):
            self.digest("answer", name, _ipc(self._engine.answer(name)))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.reference.recorded_run --write")
    write(record())
    print(f"{FILE.name}: {FILE.stat().st_size} bytes")
