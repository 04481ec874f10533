"""The state of an engine in buffers: loaded it goes on as if nothing had been; what is no state is refused and nothing is run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eddy.state.dump as state
from eddy import EddyError, Engine, GoneError
from eddy.state.dump import dump_state, load_state
from eddy.state.state_arrays import SMALL, Arrays, loaded
from eddy.state.state_graph import HUBS, GraphWriter, is_ours
from tests.unit.eddy.alike import assert_alike
from tests.unit.eddy.digest import digest
from tests.unit.eddy.rich import QUERIES, clock, feed, make_engine, name_of, submit_all

#: Of the classes in a state and their attributes. When this changes, so does `LAYOUT`: state of before cannot be loaded any more.
SHAPES = (8, "ea898d59f9487d6d")


def reload(engine: Engine) -> Engine:
    return load_state([bytes(part) for part in dump_state(engine)], clock=clock)


def read(engine: Engine, name: str) -> dict[str, Any]:
    """The answer of a query, and all its changes that can be read."""
    answer = engine.answer(name)
    changes = engine.changes(name, since=0).arrow()
    return {"answer": answer.to_pylist(), "metadata": answer.schema.metadata, "changes": changes.to_pylist()}


def same(one: Engine, other: Engine, names: list[str] | None = None) -> None:
    """They give the same answers, changes and `seq`."""
    assert list(one.queries) == list(other.queries)
    for name in one.queries if names is None else names:
        # repr: NaN is NaN
        assert repr(read(one, name)) == repr(read(other, name)), name
    other.check()


# ---- going on


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.slow
def test_a_query_goes_on_as_if_nothing_had_been(kind: str) -> None:
    engine = make_engine()
    for other, sql in QUERIES.items():
        if other == kind or re.search(rf"\b{name_of(other)}\b", QUERIES[kind]) and " " not in other:
            engine.submit(sql, name=name_of(other))
            engine.changes(name_of(other), since="now")
    feed(engine, 1, 0, 15)
    other = reload(engine)
    same(engine, other)
    assert feed(engine, 1, 15, 30) == feed(other, 1, 15, 30)
    same(engine, other)
    assert read(engine, name_of(kind))["changes"]


@pytest.mark.slow
def test_an_engine_with_everything_goes_on_and_takes_every_call() -> None:
    engine = make_engine(policy="lottery", batch_rows=16, seed=3)
    submit_all(engine)
    feed(engine, 2, 0, 10)
    engine.pause("window")
    engine.pause("shared")
    engine.pause("equality")
    engine.replace("own_ends", "SELECT k, v FROM keyed [RANGE 1 SECOND] WHERE v > 0.5")
    engine.replace("except", "SELECT k FROM s [RANGE 1 SECOND] UNION SELECT k FROM t [RANGE 1 SECOND]")
    feed(engine, 2, 10, 14)
    other = reload(engine)
    for each in (engine, other):
        each.resume("window")
        each.resume("shared")
        each.replace("distinct", "SELECT DISTINCT g, k FROM s [RANGE 300 MILLISECONDS] WHERE k > 2")
        each.submit("SELECT k, COUNT(*) AS n FROM grouped GROUP BY k", name="later", history="window")
        each.submit("SELECT s.k, t.w FROM s [RANGE 1 SECONDS], t [RANGE 1 SECONDS] WHERE s.g = t.w", name="late_join")
        each.cancel("three")
        each.create_stream("more", {"x": "int", "ts": "timestamp"}, time="ts")
        each.submit("SELECT x FROM more [RANGE 1 SECOND]", name="of_more")
        each.push("more", {"x": [1], "ts": [1_400]})
    assert feed(engine, 2, 14, 26) == feed(other, 2, 14, 26)
    same(engine, other)
    assert engine.explain("named_join") == other.explain("named_join")


def test_a_state_is_the_same_after_any_number_of_loads() -> None:
    engine = make_engine()
    submit_all(engine)
    feed(engine, 3, 0, 6)
    other = reload(reload(reload(engine)))
    feed(engine, 3, 6, 9)
    feed(other, 3, 6, 9)
    same(engine, other)


def test_what_can_be_counted_is_the_same() -> None:
    engine = make_engine()
    submit_all(engine)
    feed(engine, 4, 0, 8)

    def counted(of: Any) -> Any:
        """Without measured times, and without the room that arrays had and have no more."""
        if not isinstance(of, dict):
            return of
        return {
            key: counted(value) for key, value in of.items() if not re.search("ns|bytes|cost|share|seconds|per_row", str(key))
        }

    assert counted(reload(engine).stats()) == counted(engine.stats())


@pytest.mark.slow
def test_a_program_in_another_process_goes_on_too(tmp_path: Path) -> None:
    """There, texts have other hashes and all objects other addresses."""
    program = (
        "import sys, json; from pathlib import Path; from eddy.state.dump import dump_state\n"
        "from tests.unit.eddy.rich import feed, make_engine, submit_all\n"
        "engine = make_engine(); submit_all(engine); feed(engine, 5, 0, 6)\n"
        "parts = dump_state(engine); print(json.dumps(list(map(len, parts)))); Path(sys.argv[1]).write_bytes(b''.join(parts))"
    )
    path = tmp_path / "state"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(Path(__file__).parents[4])}
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=300, env=environment, check=True
    )
    parts, data = [], path.read_bytes()
    for length in json.loads(run.stdout):
        parts.append(data[:length])
        data = data[length:]
    other, engine = load_state(parts, clock=clock), make_engine()
    submit_all(engine)
    feed(engine, 5, 0, 6)
    feed(engine, 5, 6, 9)
    feed(other, 5, 6, 9)
    same(engine, other)


def test_a_reader_goes_on_from_its_commit_and_is_told_what_is_gone() -> None:
    engine = make_engine(log_rows=10)
    for kind in ("window", "grouped", "equality"):
        engine.submit(QUERIES[kind], name=kind)
    feed(engine, 6, 0, 9)
    cursor = engine.stats()["seq"]
    engine.advance(1_100)
    other = reload(engine)
    for name in engine.queries:
        found = other.changes(name, since=cursor).arrow()
        assert len(found) and found.equals(engine.changes(name, since=cursor).arrow())
        with pytest.raises(GoneError):
            other.changes(name, since=3)


def test_rows_that_wait_for_stragglers_still_wait() -> None:
    engine = Engine()
    engine.create_stream("s", {"x": "int", "ts": "timestamp"}, time="ts", lateness=100)
    engine.submit("SELECT x FROM s [RANGE 1 SECOND]", name="q")
    engine.push("s", {"x": [1, 2, 3], "ts": [1_000, 1_050, 1_080]})
    other = reload(engine)
    assert other.answer("q").num_rows == 0
    receipt = other.push("s", {"x": [4], "ts": [1_020]})
    assert (receipt.accepted, receipt.late, receipt.first_row) == (1, 0, 3)
    other.advance(1_100)
    assert other.answer("q")["x"].to_pylist() == [1, 4, 2, 3]


def test_a_paused_query_keeps_its_answer_and_an_earlier_text_its_changes() -> None:
    engine = Engine()
    engine.create_stream("s", {"x": "int", "ts": "timestamp"}, time="ts")
    engine.submit("SELECT x FROM s [RANGE 1 SECOND]", name="paused")
    engine.submit("SELECT x FROM s [RANGE 1 SECOND] WHERE x > 1", name="replaced")
    engine.push("s", {"x": [1, 2], "ts": [0, 10]})
    engine.pause("paused")
    engine.replace("replaced", "SELECT x FROM s [RANGE 1 SECOND] WHERE x < 2")
    engine.advance(5_000)
    other = reload(engine)
    assert other.answer("paused")["x"].to_pylist() == [1, 2]
    signs = [(change.sign, change.row["x"]) for change in other.changes("replaced", since=0)]
    assert signs == [(1, 2), (-1, 2), (1, 1), (-1, 1)]


def test_shared_aggregates_are_logged_from_their_first_reader_on() -> None:
    engine = make_engine()
    for number in range(20):
        engine.submit(f"SELECT k, SUM(v) AS s FROM t [RANGE 1 SECONDS] WHERE v < {number / 10} GROUP BY k", name=f"of_{number}")
    engine.changes("of_18", since="now")
    feed(engine, 7, 0, 5)
    other = reload(engine)
    for each in (engine, other):
        feed(each, 7, 5, 8)
        # this begins to log the second one
        assert len(each.changes("of_18", since=0).arrow()) > 0 and len(each.changes("of_19", since=0).arrow()) == 0
        feed(each, 7, 8, 9)
        assert len(each.changes("of_19", since=0).arrow()) > 0
    same(engine, other)


def test_the_clock_is_given_anew_and_listeners_are_not_kept() -> None:
    heard: list[int] = []
    engine = Engine(clock=lambda: 1_000)
    engine.create_stream("s", {"x": "int"})
    engine.submit("SELECT x FROM s [RANGE 1 SECOND]", name="q")
    engine.on_commit(lambda commit: heard.append(commit.seq))
    engine.push("s", {"x": [1]})
    other = load_state(dump_state(engine), clock=lambda: 1_500)
    other.push("s", {"x": [2]})
    assert heard == [1] and other.answer("q").schema.metadata[b"time"] == b"1970-01-01T00:00:01.500000Z"
    other.on_commit(lambda commit: heard.append(commit.seq))
    other.push("s", {"x": [3]})
    assert heard == [1, 3]


def test_queries_know_their_engine() -> None:
    engine = make_engine()
    submit_all(engine)
    other = reload(engine)
    assert all(query._engine is other for query in other.queries.values())
    other.queries["window"].cancel()
    assert "window" not in other.queries and "window" in engine.queries


# ---- what a state is made of


@pytest.mark.parametrize("policy", ["auto", "lottery", "random", "fixed:filter(s.a)"])
def test_all_that_an_engine_holds_is_there_again_and_shared_as_it_was(policy: str) -> None:
    engine = make_engine(policy=policy)
    submit_all(engine)
    feed(engine, 14, 0, 5)
    engine.pause("window")
    engine.pause("shared")
    engine.replace("own_ends", "SELECT k, v FROM keyed [RANGE 1 SECOND] WHERE v > 0.5")
    engine.replace("except", "SELECT k FROM s [RANGE 1 SECOND] UNION SELECT k FROM t [RANGE 1 SECOND]")
    feed(engine, 14, 5, 8)
    assert assert_alike(engine, reload(engine)) > 5_000


def test_the_parts_do_not_change_while_the_engine_goes_on() -> None:
    engine = make_engine()
    submit_all(engine)
    feed(engine, 8, 0, 6)
    parts = dump_state(engine)
    before = [bytes(part) for part in parts]
    feed(engine, 8, 6, 10)
    engine.close()
    assert [bytes(part) for part in parts] == before


def test_a_dump_changes_nothing() -> None:
    engine = make_engine()
    submit_all(engine)
    feed(engine, 9, 0, 6)
    before = digest(engine)
    dump_state(engine)
    assert digest(engine) == before


def test_an_idle_engine_is_small() -> None:
    assert sum(map(len, dump_state(Engine()))) < 10_000


def test_empty_room_is_not_dumped() -> None:
    engine = Engine()
    for number in range(20):
        engine.create_stream(f"s{number}", {f"x{k}": "int" for k in range(10)} | {"ts": "timestamp"}, time="ts")
        engine.submit(f"SELECT x0 FROM s{number} [RANGE 1 HOUR]")
        engine.push(f"s{number}", {"x0": [1], "ts": [1]})
    # a page of each would be 1.4 MB
    assert sum(map(len, dump_state(engine))) < 2_000_000


def test_no_address_of_memory_is_in_a_state() -> None:
    def holds_address(engine: Engine) -> bool:
        pages = [page for source in engine._catalog.inputs() for page in source.store.pages]
        assert pages
        written = b"".join(dump_state(engine))
        return any(page.address.to_bytes(8, "little") in written for page in pages)

    engine = make_engine()
    submit_all(engine)
    feed(engine, 10, 0, 8)
    # one that belonged to the state would be in each; room that is not used yet may hold what was in memory before
    assert not all(holds_address(reload(engine)) for _ in range(3))


def test_paths_through_queries_are_no_recursion() -> None:
    """So the depth of a dump does not grow with the queries."""
    engine = make_engine()
    for number in range(150):
        engine.submit(f"SELECT k, COUNT(*) AS n FROM s [RANGE {number + 1} SECONDS] GROUP BY k", name=f"g{number}", emit="event")
        engine.submit(f"SELECT n FROM g{number} WHERE n > 1", name=f"n{number}")
        engine.submit(f"SELECT s.k FROM s [RANGE 1 SECONDS], t [RANGE {number + 1} SECONDS] WHERE s.k = t.k", name=f"j{number}")
    feed(engine, 11, 0, 1)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        parts = dump_state(engine)
        other = load_state(parts, clock=clock)
    finally:
        sys.setrecursionlimit(limit)
    same(engine, other, ["g7", "n9", "j149"])


def test_hubs_are_known_by_identity() -> None:
    """They are made before their attributes are, and may be keys."""
    assert all(kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__ for kind in HUBS)


# ---- arrays


def through(*arrays: np.ndarray) -> list[np.ndarray]:
    numbered = Arrays()
    numbers = [numbered.number(array) for array in arrays]
    found = loaded(*numbered.lay_out())
    return [found[number] for number in numbers]


@pytest.mark.parametrize("size", [5, SMALL])
def test_arrays_that_share_memory_share_it_again(size: int) -> None:
    whole = np.arange(12 * size).reshape(12, size)
    given = [whole[3:5], whole, whole[:, 1], whole.view(np.float64), whole.T]
    found = through(*given)
    for array, copy in zip(given, found):
        assert copy.dtype == array.dtype and copy.shape == array.shape and copy.strides == array.strides
        assert copy.tobytes() == array.tobytes() and not np.shares_memory(copy, array)
    found[1][:] = -1
    assert all((copy.view(np.int64) == -1).all() for copy in found)
    assert found[1].base is None and found[0].base is found[1]


def test_arrays_that_share_no_memory_do_not_when_they_are_views_of_one() -> None:
    whole = np.arange(1 << 20)
    numbered = Arrays()
    for at in (3, 50, 700_000):
        numbered.number(whole[at : at + 10])
    table, buffers = numbered.lay_out()
    assert sum(map(len, buffers)) < 1_000
    first, second, third = loaded(table, buffers)
    first[:] = 0
    assert second.tolist() == list(range(50, 60)) and third.tolist() == list(range(700_000, 700_010))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(0), np.zeros((3, 0), np.int32), np.array(7), np.broadcast_to(np.float64(2.5), 1_000_000), np.arange(40)[::4],
        np.asfortranarray(np.arange(12).reshape(3, 4)), np.array([True, False]), np.zeros(1 << 20, np.uint8),
        np.append(np.zeros(1 << 17), 1.0), np.arange(SMALL + 3, dtype=np.uint8)[3:],
    ],
)  # fmt: skip
def test_an_array_comes_back_as_it_was(array: np.ndarray) -> None:
    numbered = Arrays()
    numbered.number(array)
    table, buffers = numbered.lay_out()
    (found,) = loaded(table, buffers)
    assert found.dtype == array.dtype and found.shape == array.shape and found.flags.writeable == array.flags.writeable
    assert np.array_equal(found, array) and found.flags.aligned
    assert not found.size or not (array.strides[:1] == (0,)) or found.strides == array.strides
    assert array.any() or sum(map(len, buffers)) < 100, "zeros take no room"


def test_texts_and_the_views_that_readers_have_are_one_memory_again() -> None:
    texts = np.empty(8, object)
    texts[:3] = ["a", "b", "ö"]
    view = texts[:2]
    view.flags.writeable = False
    whole, part = through(texts, view)
    assert whole.tolist() == texts.tolist() and part.tolist() == ["a", "b"] and part.base is whole
    assert whole.flags.writeable and not part.flags.writeable


# ---- what is refused


def refused(call: Callable[..., object], *args: Any) -> EddyError:
    with pytest.raises(EddyError) as error:
        call(*args)
    assert error.value.fact and error.value.hint and not error.value.fact.endswith(".")
    return error.value


def test_functions_cannot_be_dumped() -> None:
    engine = make_engine()
    engine.register("risky", lambda x: x, returns="int")
    before = digest(engine)
    error = refused(dump_state, engine)
    assert error.code == "not_dumpable" and "risky" in error.detail and digest(engine) == before


def test_what_is_no_state_cannot_be_dumped() -> None:
    engine = make_engine()
    engine._catalog.tables["rooms"].extra = lambda: 1  # type: ignore[attr-defined]
    error = refused(dump_state, engine)
    assert error.code == "not_dumpable" and "lambda" in error.fact


def test_a_closed_engine_and_one_in_use_cannot_be_dumped() -> None:
    engine = make_engine()
    engine.submit("SELECT k FROM t [RANGE 1 SECOND]")
    codes: list[str] = []
    engine.on_commit(lambda _: codes.append(refused(dump_state, engine).code))
    engine.push("t", {"k": [1], "ts": [1]})
    engine.close()
    with pytest.raises(EddyError) as error:
        dump_state(engine)
    assert codes == ["engine_busy"] and error.value.code == "closed"


def rich_parts() -> list[bytes]:
    engine = make_engine()
    submit_all(engine)
    feed(engine, 12, 0, 3)
    return [bytes(part) for part in dump_state(engine)]


def test_another_layout_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = dump_state(Engine())
    monkeypatch.setattr(state, "LAYOUT", state.LAYOUT + 1)
    error = refused(load_state, parts)
    assert error.code == "other_layout" and "--discard-state" in error.hint
    assert f"layout {state.LAYOUT - 1}" in error.fact and f"layout {state.LAYOUT}" in error.fact


def test_damage_is_told_wherever_it_is() -> None:
    parts = rich_parts()
    rng = np.random.default_rng(0)
    large = max(range(1, len(parts)), key=lambda k: len(parts[k]))
    for at in [*range(60), *rng.integers(0, len(parts[0]), 60).tolist()]:
        broken = bytearray(parts[0])
        broken[at] ^= 1 << int(rng.integers(8))
        assert refused(load_state, [broken, *parts[1:]]).code in ("bad_state", "other_layout")
    for number in (1, large, len(parts) - 1):
        for at in rng.integers(0, len(parts[number]), 10).tolist():
            broken = bytearray(parts[number])
            broken[at] ^= 1 << int(rng.integers(8))
            assert refused(load_state, [*parts[:number], broken, *parts[number + 1 :]]).code == "bad_state"


def test_what_is_missing_or_cut_off_is_told() -> None:
    parts = rich_parts()
    for given in (
        [], [b""], [b"eddystat"], parts[:1], parts[:-1], parts[1:], [*parts, b""], [parts[0][:-1], *parts[1:]],
        [*parts[:-1], parts[-1][:-1]], [os.urandom(1_000)], [pickle.dumps({"a": 1})], [parts[0][:20]],
    ):  # fmt: skip
        assert refused(load_state, given).code == "bad_state"


def forged(graph: bytes, kinds: list[type] | None = None) -> list[bytes]:
    """A state with a good digest whose graph is anything."""
    described = pickle.dumps(([Engine] if kinds is None else kinds, [], [], {}))
    head = state._HEADER.pack(state.MAGIC, state.LAYOUT, 1, len(described), len(graph)) + state._PART.pack(0, 0)
    return [head + state._digest(head, described, graph) + described + graph, b""]


def named(module: str, name: str, *args: str) -> bytes:
    """A pickle that calls what has this name."""
    pushed = b"".join(b"\x8c" + bytes([len(arg)]) + arg.encode() for arg in args)
    return b"\x80\x04\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(name)]) + name.encode() + (
        b"\x93(" + pushed + b"tR."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "getattr"),
        ("builtins", "__import__"), ("subprocess", "Popen"), ("pickle", "loads"), ("numba.core.serialize", "_rebuild_function"),
        ("eddy.engine", "time.sleep"), ("eddy.state.dump", "pickle.loads"),
        ("eddy.state.state_graph", "importlib.import_module"),
        ("eddy.engine", "Engine.close"), ("eddy.base.compile", "ensure"), ("lineage.times", "to_us"), ("eddy.engine", "Callable"),
        ("types", "FunctionType"), ("types", "CodeType"), ("copyreg", "_reconstructor"), ("numpy", "load"), ("io", "open"),
        ("eddy.client", "Client"), ("eddy.client.client", "Client"), ("eddy.engine", "Engine"),
        ("eddy.state.state_graph", "kernel"),
        ("functools", "reduce"), ("operator", "methodcaller"), ("operator", "attrgetter"), ("tests.reference.naive", "Naive"),
    ],
)  # fmt: skip
def test_nothing_is_called_that_a_state_may_not_name(module: str, name: str, tmp_path: Path) -> None:
    mark = tmp_path / "called"
    error = refused(load_state, forged(named(module, name, f"touch {mark}")))
    assert error.code == "bad_state" and not mark.exists()
    assert name in error.fact or module in error.fact


def test_a_method_is_one_that_is_listed() -> None:
    text = named("eddy.state.state_graph", "method", "text", "join")
    assert refused(load_state, forged(text)).fact.startswith("the state names str.join")


def test_the_classes_of_hubs_are_hubs() -> None:
    kinds: list[Any]
    for kinds in ([dict], [Arrays], [1]):
        assert refused(load_state, forged(b"N.", kinds)).code == "bad_state"


# ---- the layout


class Shapes(GraphWriter):
    """Notes the attributes of every object of ours that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, set[str]] = {}

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if is_ours(kind) and not isinstance(obj, type):
            self.found.setdefault(f"{kind.__module__}.{kind.__qualname__}", set()).update(self._shape(obj))
        return super().reducer_override(obj)

    def _shape(self, obj: Any) -> set[str]:
        """Its attributes, or if it tells its state itself, what that is made of."""
        written = obj.__reduce_ex__(4)[2:3]
        told = written[0] if written else None
        if (
            isinstance(told, tuple)
            and len(told) == 2
            and isinstance(told[1], dict)
            and (told[0] is None or isinstance(told[0], dict))
        ):
            return {*(told[0] or ()), *told[1]}
        if isinstance(told, dict):
            return set(told)
        if isinstance(told, list | tuple):
            return {f"{len(told)} things"} | set(getattr(obj, "__dataclass_fields__", ()))
        return set(getattr(obj, "_fields", ())) | set(getattr(obj, "__dataclass_fields__", ()))


def shapes() -> dict[str, list[str]]:
    engine = make_engine(policy="lottery")
    submit_all(engine)
    feed(engine, 13, 0, 6)
    engine.pause("window")
    engine.pause("shared")
    engine.replace("own_ends", "SELECT k, v FROM keyed [RANGE 1 SECOND] WHERE v > 0.5")
    written = Shapes()
    written.write(engine)
    return {kind: sorted(names) for kind, names in sorted(written.found.items())}


def test_a_change_of_shape_is_a_change_of_layout() -> None:
    found = shapes()
    assert len(found) > 100
    digest_of = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]
    assert (state.LAYOUT, digest_of) == SHAPES, "count LAYOUT up and note the digest: older state cannot be loaded any more"
