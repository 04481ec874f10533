"""What listeners of `on_commit` hear of queries with operators, over submits, pauses and replaced texts."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest

from eddy import Commit, Engine

T0 = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
PLAIN = "SELECT k, x FROM s [RANGE 10 SECONDS] WHERE x >= 0"
GROUPED = "SELECT k, SUM(x) AS x FROM s [RANGE 10 SECONDS] GROUP BY k"
DISTINCT = "SELECT DISTINCT k, x FROM s [RANGE 10 SECONDS]"
JOINED = "SELECT a.k AS k, b.x AS x FROM s [RANGE 10 SECONDS] AS a, s [RANGE 10 SECONDS] AS b WHERE a.k = b.k"


class Heard:
    """The rows that parts brought, minus those that they took, by what they are rows of."""

    def __init__(self, engine: Engine) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()
        engine.on_commit(self._listen)

    def _listen(self, part: Commit) -> None:
        if part.n_rows:
            columns = [part.columns[name].to_pylist() for name in part.columns]
            # parts of queries without operators have all columns of their streams
            of = "q" if list(part.columns) == ["k", "x"] else part.stream
            for row in zip(*columns, strict=True):
                self.rows[(of, *row)] += int(part.sign[0])


def made() -> tuple[Engine, Heard]:
    engine = Engine()
    engine.create_stream("s", {"ts": "timestamp[us]", "k": "int", "x": "int"}, time="ts", keep=dt.timedelta(minutes=1))
    return engine, Heard(engine)


def push(engine: Engine, seconds: int, k: int, x: int) -> None:
    engine.push("s", [{"ts": T0 + dt.timedelta(seconds=seconds), "k": k, "x": x}])


def answer(query: Any) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in query.answer().columns), strict=True))


def own(heard: Heard, name: str) -> Counter[tuple[Any, ...]]:
    return Counter({row[1:]: n for row, n in (+heard.rows).items() if row[0] == name})


@pytest.mark.parametrize("plain", [PLAIN, JOINED])
@pytest.mark.parametrize("tree", [GROUPED, DISTINCT])
def test_a_text_without_operators_takes_back_what_the_one_with_operators_had_and_the_other_way_round(
    plain: str, tree: str
) -> None:
    engine, heard = made()
    query = engine.submit(tree, name="q", history="window")
    push(engine, 1, 1, 2)
    push(engine, 2, 1, 3)
    assert own(heard, "q") == answer(query) != Counter()
    engine.replace(query, plain)
    assert own(heard, "q") == Counter(), "all of it is taken back"
    assert sum((+heard.rows).values()) == sum(answer(query).values()), "rows of streams came instead"
    assert min(heard.rows.values()) >= 0
    engine.replace(query, tree)
    assert own(heard, "q") == answer(query) == Counter(+own(heard, "q"))
    assert {row[0] for row in +heard.rows} == {"q"}, "those of the streams are taken back"
    engine.advance(T0 + dt.timedelta(seconds=60))
    assert not +heard.rows and min(heard.rows.values()) == 0


def test_the_parts_of_a_replaced_text_with_operators_are_the_net_change() -> None:
    engine, heard = made()
    query = engine.submit(GROUPED, name="q", history="window")
    push(engine, 1, 1, 2)
    push(engine, 2, 2, 3)
    push(engine, 3, 2, 3)
    since = int(query.answer().schema.metadata[b"seq"])
    before = Counter(heard.rows)
    engine.replace(query, DISTINCT)
    parts = Counter(heard.rows)
    parts.subtract(before)
    cursor: Counter[tuple[Any, ...]] = Counter()
    for change in query.changes(since=since):
        cursor[("q", change.row["k"], change.row["x"])] += change.sign
    assert {row: n for row, n in parts.items() if n} == dict(cursor) == {("q", 2, 6): -1, ("q", 2, 3): 1}


def test_a_resumed_query_takes_back_what_it_kept() -> None:
    engine, heard = made()
    query = engine.submit(GROUPED, name="q")
    push(engine, 1, 1, 2)
    query.pause()
    push(engine, 2, 1, 3)
    assert own(heard, "q") == answer(query) == Counter({(1, 2): 1})
    query.resume()
    assert own(heard, "q") == answer(query) == Counter(), "rows from before are not its business"
    push(engine, 3, 1, 4)
    assert own(heard, "q") == answer(query) == Counter({(1, 4): 1})
