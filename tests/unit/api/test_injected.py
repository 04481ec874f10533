"""Failures at every step of every call: what came before the first change is refused and has changed nothing, what came later
stops the service.

Each call is carried out again and again on the same state, and each time another of the functions that it enters raises. Nobody
has to remember where a call begins to change things: if a part that is said to be harmless is not, the state shows it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import pyarrow as pa
import pytest

from api.base.limits import Limits
from api.core.calls import Call
from api.core.core import Clock, Core, News
from api.core.holdings import Holdings, load_holdings
from api.core.inbox import InboxItem
from api.wire.bodies import ARROW, CSV, JSON, NDJSON, BodyError
from eddy import EddyError, Engine, Query
from eddy.catalog.planner import Planner
from tests.reference.seeds import seeds
from tests.reference.service_state import state_of

ROOT = Path(__file__).resolve().parents[3]
#: Packages in which failures are injected, and the files around a call that cannot fail in its name.
OURS = tuple(str(ROOT / name) + "/" for name in ("api", "eddy", "lineage", "filters", "stems", "windows", "queries"))
AROUND = tuple(
    str(ROOT / name)
    for name in ("api/core/core.py", "eddy/base/checking.py", "eddy/base/turn.py", "api/core/arrival.py", "lineage/errors.py")
)
#: Failures that are tried of one call, for each seed.
TRIES = 2
SEEDS = 36

S = {"columns": {"a": "int", "g": "string", "ts": "timestamp"}, "time": "ts", "lateness": 1000}
KEYED = {"columns": {"k": "string", "v": "float", "ts": "timestamp"}, "time": "ts", "key": "k"}
ARRIVING = {"columns": {"x": "int", "w": "string"}}
T = {"columns": {"g": "string", "floor": "int"}, "key": "g"}
QUERIES: dict[str, dict[str, Any]] = {
    "plain": {"sql": "SELECT a, g FROM s [RANGE 1 MINUTE] WHERE a > 1", "tags": ["tag"]},
    "grouped": {"sql": "SELECT g, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY g", "tags": ["tag"]},
    "named": {"sql": "SELECT g, n FROM grouped WHERE n > 1", "tags": ["tag"]},
    "joined": {"sql": "SELECT s.a, t.floor FROM s, t WHERE s.g = t.g"},
    "keys": {"sql": "SELECT k, v FROM keyed [RANGE 1 MINUTE]"},
    "waits": {"sql": "SELECT DISTINCT a FROM s [RANGE 1 MINUTE]"},
}
NEW: dict[str, Any] = {"sql": "SELECT a + 1 AS b FROM s [RANGE 2 MINUTES] WHERE g LIKE 'u%'"}
WIDER = "SELECT a, g FROM s [RANGE 5 MINUTES]"
ROWS = [{"a": 2, "g": "new", "ts": 5000}, {"a": 3, "g": "u", "ts": 1000}]


def arrow(rows: list[dict[str, Any]], stream: str | None = None) -> bytes:
    table = pa.Table.from_pylist(rows)
    if stream is not None:
        table = table.replace_schema_metadata({"stream": stream})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def call(kind: str, body: Any = b"", **header: Any) -> Call:
    return Call(kind, header, body if isinstance(body, bytes) else orjson.dumps(body))


#: Every kind of call, in every format.
CALLS = {
    "push": lambda: call("push", ROWS, stream="s", media=JSON),
    "push that arrives": lambda: call("push", {"x": 1, "w": "new"}, stream="arriving", media=JSON),
    "push with a key": lambda: call("push", ROWS, stream="s", media=JSON, key="again"),
    "push lines": lambda: call("push", b"\n".join(map(orjson.dumps, ROWS)), stream="s", media=NDJSON),
    "push csv": lambda: call("push", b"a,g,ts\n7,new,5000\n", stream="s", media=CSV),
    "push arrow": lambda: call("push", arrow([{"a": 2, "g": "new", "ts": 5000}]), stream="s", media=ARROW),
    "push and skip": lambda: call("push", [*ROWS, {"a": "x", "ts": 1}], stream="s", media=JSON, bad="skip"),
    "push_many": lambda: call("push_many", {"s": ROWS, "keyed": {"k": ["new"], "v": [1], "ts": [9000]}}),
    "push_many arrow": lambda: call("push_many", arrow(ROWS, "s") + arrow([{"k": "n", "v": 1.0, "ts": 1}], "keyed"), media=ARROW),
    "upsert": lambda: call("upsert", {"g": "new", "floor": 3}, table="t", media=JSON),
    "upsert and skip": lambda: call("upsert", [{"g": None}, {"g": "u", "floor": 1}], table="t", media=JSON, bad="skip"),
    "delete": lambda: call("delete", {"keys": ["u", "no"]}, table="t"),
    "retract": lambda: call("retract", {"keys": ["k1", "no"], "time": 3000}, stream="keyed"),
    "advance": lambda: call("advance", timeline="main", time=70_000),
    "create_stream": lambda: call("create_stream", name="other", definition=S | {"timeline": "line"}),
    "create_stream again": lambda: call("create_stream", name="s", definition=S),
    "create_table": lambda: call("create_table", name="other", definition=T),
    "drop": lambda: call("drop", name="arriving"),
    "drop table": lambda: call("drop", name="free"),
    "submit": lambda: call("submit", definition=NEW | {"name": "new"}),
    "submit a tree": lambda: call("submit", definition={"sql": "SELECT g, SUM(a) AS x FROM s [RANGE 1 MINUTE] GROUP BY g"}),
    "submit a join": lambda: call("submit", definition=QUERIES["joined"] | {"name": "other", "history": "window"}),
    "submit over a query": lambda: call("submit", definition=QUERIES["named"] | {"name": "other"}),
    "submit_many": lambda: call(
        "submit_many", definitions=[NEW | {"name": "n1"}, {"sql": "SELECT b FROM n1 WHERE b > 1"}], partial=False
    ),
    "submit_many in part": lambda: call("submit_many", definitions=[NEW, NEW, {"sql": "no"}, NEW], partial=True),
    "put_query": lambda: call("put_query", name="new", definition=NEW),
    "put_query again": lambda: call("put_query", name="plain", definition=QUERIES["plain"]),
    "replace": lambda: call("put_query", name="plain", definition=QUERIES["plain"] | {"sql": WIDER}),
    "cancel": lambda: call("cancel", query="joined"),
    "cancel_many": lambda: call("cancel_many", queries=[2, 3]),
    "pause": lambda: call("pause", query="plain"),
    "pause a tree": lambda: call("pause", query="waits"),
    "resume": lambda: call("resume", query="keys"),
    "read": lambda: call("read", queries=["grouped"]),
    "set_policy": lambda: call("set_policy", policy="lottery"),
}  # fmt: skip
#: Calls that change nothing, so that no failure comes late.
IDLE = {"create_stream again", "put_query again"}


class Injected(Exception):
    """A bug."""


class InjectedError(EddyError):
    """A bug that looks like a refusal."""


class Injection:
    """Raises when the n-th function of ours is entered."""

    def __init__(self, n: int, error: type[Exception] = Injected) -> None:
        self.left = n
        self.error = error
        self.entered = 0
        self.raised_in = ""
        #: whether the call is being carried out
        self.inside = False

    def __enter__(self) -> Injection:
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *about: object) -> None:
        sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, about: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if name == "_execute_recorded" and event in ("call", "return"):
            self.inside = event == "call"
        if not self.inside or event != "call" or not file.startswith(OURS) or file in AROUND:
            return
        self.entered += 1
        self.left -= 1
        if self.left == 0:
            self.raised_in = f"{file.removeprefix(str(ROOT))}: {name}"
            raise self.error("injected")


@cache
def state() -> tuple[list[Any], int]:
    """A service with something of everything, as a snapshot."""
    holdings = Holdings(Engine(seed=1))
    world = World(holdings)
    for name, definition in {"s": S, "keyed": KEYED, "arriving": ARRIVING}.items():
        world.ask(call("create_stream", name=name, definition=definition))
    for name in ("t", "free"):
        world.ask(call("create_table", name=name, definition=T))
    world.ask(call("upsert", {"g": ["u", "v"], "floor": [1, 2]}, table="t", media=JSON))
    for name, definition in QUERIES.items():
        world.ask(call("put_query", name=name, definition=definition))
    world.ask(call("push", {"a": [1, 2, 3], "g": ["u", "v", "u"], "ts": [1000, 2000, 4000]}, stream="s", media=JSON))
    world.ask(call("push", {"k": ["k1", "k2"], "v": [1, 2], "ts": [1000, 2000]}, stream="keyed", media=JSON))
    world.ask(call("pause", query="keys"))
    return [bytes(part) for part in holdings.dump()], holdings.engine.seq


class World:
    """A service whose thread does not run: each call is carried out at once."""

    def __init__(self, holdings: Holdings | None = None) -> None:
        clock = Clock()
        self.holdings = load_holdings([bytearray(part) for part in state()[0]], clock) if holdings is None else holdings
        self.news: list[News] = []
        self.core = Core(self.holdings, clock, None, Limits(), self.news.append, lambda do: do())

    def ask(self, what: Call, injection: Injection | None = None) -> tuple[Any, BaseException | None]:
        told: list[tuple[Any, BaseException | None]] = []
        items = [InboxItem(what, lambda result, error: told.append((result, error)))]
        if injection is None:
            group = self.core.work(items)
        else:
            with injection:
                group = self.core.work(items)
        group.release(None)
        return told[0]

    def state(self) -> list[bytes]:
        """All that is held, but what is derived from the rest."""
        return state_of(self.holdings)


@pytest.fixture(autouse=True)
def silent(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL + 1)
    yield


@cache
def steps_of(kind: str) -> int:
    counting = Injection(0)
    result, error = World().ask(CALLS[kind](), counting)
    assert error is None, error
    return counting.entered


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", seeds(range(SEEDS), 6))
@pytest.mark.parametrize("kind", CALLS)
def test_a_failure_is_refused_and_changes_nothing_or_stops_the_service(kind: str, seed: int) -> None:
    n = steps_of(kind)
    world: World | None = None
    outcomes = []
    # the first steps always, the others in turn
    steps = sorted(
        {1 + (seed + SEEDS * k * max(1, n // (SEEDS * TRIES))) % n for k in range(TRIES)} | ({1, 2} if seed == 0 else set())
    )
    for step in steps:
        for error in (Injected, InjectedError) if seed % 2 else (Injected,):
            if world is None:
                world = World()
                before = world.state()
            injection = Injection(step, error)
            result, told = world.ask(CALLS[kind](), injection)
            where = f"step {step} of {n}, {injection.raised_in}"
            if world.core.failure is not None:
                outcomes.append("stopped")
                world = None
                continue
            if told is None:
                # somebody expects such failures; the call went on without it, or told of a part of it
                if isinstance(result, list) and any(isinstance(one, EddyError) for one in result):
                    outcomes.append("refused")
                world = None
                continue
            assert isinstance(told, BodyError if error is Injected else EddyError), (where, told)
            assert world.state() == before, where
            outcomes.append("refused")
    if seed == 0:
        assert outcomes[0] == "refused", "the first steps of a call change nothing"


@pytest.mark.parametrize("kind", sorted(CALLS.keys() - IDLE))
def test_a_failure_at_the_last_step_of_a_change_stops_the_service(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    before = world.state()
    late: dict[str, tuple[type, str]] = {
        "create_stream": (Holdings, "define"), "create_table": (Holdings, "define"), "submit": (Holdings, "define"),
        "submit_many": (Holdings, "define"), "put_query": (Holdings, "define"), "drop": (Holdings, "undefine"),
        "cancel": (Holdings, "undefine"), "cancel_many": (Holdings, "undefine"),
    }  # fmt: skip
    of, name = late.get(CALLS[kind]().kind, (Engine, ""))
    if of is Engine:
        name = {"read": "changes", "set_policy": "route_by"}.get(CALLS[kind]().kind, CALLS[kind]().kind)
    done = getattr(of, name)

    def fails_at_the_end(*given: Any, **more: Any) -> Any:
        done(*given, **more)
        raise Injected("after the change")

    monkeypatch.setattr(of, name, fails_at_the_end)
    result, told = world.ask(CALLS[kind]())
    assert isinstance(told, Injected) and world.core.failure is not None and world.core.bad_calls == 0
    assert world.state() != before


def test_a_bug_before_the_change_is_counted_and_the_log_has_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    world = World()
    result, told = world.ask(CALLS["push"](), Injection(3))
    assert isinstance(told, BodyError) and told.code == "bad_body" and world.core.bad_calls == 1
    assert any(record.exc_info is not None and record.exc_info[0] is Injected for record in caplog.records)


def test_a_part_of_a_batch_that_a_bug_ends_is_named_and_the_others_start(monkeypatch: pytest.MonkeyPatch) -> None:
    world, plan = World(), Planner.plan

    def fails(self: Planner, sql: str, params: Any) -> Any:
        if sql == WIDER:
            raise Injected("before the change")
        return plan(self, sql, params)

    monkeypatch.setattr(Planner, "plan", fails)
    definitions = [NEW, {"sql": WIDER}, NEW]
    result, told = world.ask(call("submit_many", definitions=definitions, partial=True))
    assert told is None and world.core.failure is None and world.core.bad_calls == 1
    assert [type(one) for one in result] == [Query, BodyError, Query]
    before = world.state()
    _, told = world.ask(call("submit_many", definitions=definitions, partial=False))
    assert isinstance(told, BodyError) and told.item == 1 and world.state() == before  # type: ignore[attr-defined]


def test_a_batch_that_is_refused_uses_up_no_number() -> None:
    world = World()
    before = world.state()
    definitions = [NEW, NEW | {"name": "x", "history": "window"}, {"sql": "SELECT nope FROM x"}]
    _, told = world.ask(call("submit_many", definitions=definitions, partial=False))
    assert isinstance(told, EddyError) and told.item == 2  # type: ignore[attr-defined]
    assert world.state() == before


def test_a_bug_in_what_is_made_of_a_result_ends_nothing_but_that() -> None:
    world = World()
    told: list[Any] = []
    item = InboxItem(CALLS["push"](), lambda result, error: told.append(error), then=lambda result: 1 // 0)
    world.core.work([item]).release(None)
    assert isinstance(told[0], ZeroDivisionError) and world.core.failure is None and world.core.bad_reads == 1
    assert world.ask(CALLS["push"]())[1] is None
