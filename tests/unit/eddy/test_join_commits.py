"""What `on_commit` brings of joins, and how their results are counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from eddy import Commit, Engine

PAIR = "SELECT q.price FROM quotes [RANGE {q} SECONDS] q, articles [RANGE {a} SECONDS] a WHERE q.symbol = a.symbol"


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.create_stream("quotes", {"symbol": "int", "price": "float", "ts": "timestamp"}, time="ts")
    engine.create_stream("articles", {"symbol": "int", "title": "string", "ts": "timestamp"}, time="ts")
    return engine


def quotes(*rows: tuple[int, int, float]) -> list[dict[str, Any]]:
    return [{"ts": ms, "symbol": symbol, "price": price} for ms, symbol, price in rows]


def articles(*rows: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"ts": ms, "symbol": symbol, "title": f"{symbol} at {ms}"} for ms, symbol in rows]


class Heard:
    """Everything a listener was told, each part copied."""

    def __init__(self, engine: Engine, skip_left: bool = False) -> None:
        self.parts: list[dict[str, Any]] = []
        self._skip_left = skip_left
        engine.on_commit(self._take)

    def _take(self, commit: Commit) -> None:
        if self._skip_left and not commit.added:
            return
        queries, offsets, rows = commit.row_lists()
        lists = {int(q): rows[offsets[k] : offsets[k + 1]].tolist() for k, q in enumerate(queries)}
        self.parts.append({
            "seq": commit.seq, "sign": 1 if commit.added else -1, "last": commit.last, "n_rows": commit.n_rows, "lists": lists,
            "stream": commit.stream, "columns": {name: column.to_pylist() for name, column in commit.columns.items()},
            "times": [time.timestamp() for time in commit.time.to_pylist()], "numbers": commit.rows.tolist(),
        })  # fmt: skip

    def take(self) -> list[dict[str, Any]]:
        """The parts with rows since the last time."""
        parts, self.parts = self.parts, []
        assert not parts or parts[-1]["last"], "the last part says so"
        assert not any(part["last"] for part in parts[:-1])
        return [part for part in parts if part["n_rows"]]


def test_a_match_comes_once_with_the_columns_of_both_inputs(engine: Engine) -> None:
    low = engine.submit(PAIR.format(q=10, a=60))
    high = engine.submit(PAIR.format(q=10, a=60) + " AND q.price > 5")
    heard = Heard(engine)
    engine.push("articles", articles((1000, 7)))
    assert heard.take() == []
    engine.push("quotes", quotes((2000, 7, 4.0), (3000, 7, 9.0), (3000, 8, 9.0)))
    (part,) = heard.take()
    assert (part["stream"], part["sign"], part["n_rows"]) == ("quotes, articles", 1, 2)
    assert part["columns"]["price"] == [4.0, 9.0] and part["columns"]["quotes.symbol"] == [7, 7]
    assert part["columns"]["title"] == ["7 at 1000"] * 2 and "symbol" not in part["columns"]
    assert part["times"] == [2.0, 3.0], "a match begins with the later of its rows"
    assert part["numbers"] == [[0, 0], [1, 0]]
    assert part["lists"] == {low.id: [0, 1], high.id: [1]}


def test_matches_leave_when_the_first_of_their_rows_does(engine: Engine) -> None:
    query = engine.submit(PAIR.format(q=10, a=60))
    heard = Heard(engine)
    engine.push("articles", articles((1000, 7)))
    engine.push("quotes", quotes((2000, 7, 4.0)))
    heard.take()
    engine.advance(12_000)
    (part,) = heard.take()
    assert (part["sign"], part["times"], part["lists"]) == (-1, [12.0], {query.id: [0]})


def test_queries_of_different_windows_share_a_match_and_leave_it_apart(engine: Engine) -> None:
    short = engine.submit(PAIR.format(q=2, a=60))
    long = engine.submit(PAIR.format(q=5, a=60))
    heard = Heard(engine)
    engine.push("articles", articles((1000, 7)))
    engine.push("quotes", quotes((1000, 7, 4.0)))
    (part,) = heard.take()
    assert part["lists"] == {short.id: [0], long.id: [0]}
    engine.advance(10_000)
    left = [(tuple(part["lists"]), part["times"]) for part in heard.take() if part["lists"]]
    assert left == [((short.id,), [3.0]), ((long.id,), [6.0])]


def test_what_comes_and_goes_inside_a_commit_is_not_shown(engine: Engine) -> None:
    query = engine.submit(PAIR.format(q=1, a=1))
    heard = Heard(engine)
    receipt = engine.push_many({"articles": articles((1000, 7)), "quotes": quotes((1000, 7, 4.0), (9000, 1, 1.0))})
    assert receipt["quotes"].accepted == 2
    assert [part for part in heard.take() if part["lists"]] == []
    assert engine.stats()["queries"][query.name]["results"] == 0


def test_results_are_counted_with_and_without_a_listener(engine: Engine) -> None:
    query = engine.submit(PAIR.format(q=10, a=60))
    engine.push("articles", articles((1000, 7), (1000, 7)))
    engine.push("quotes", quotes((2000, 7, 4.0)))
    remove = engine.on_commit(lambda commit: None)
    engine.push("quotes", quotes((2000, 7, 4.0)))
    remove()
    Heard(engine)
    engine.push("quotes", quotes((2000, 7, 4.0)))
    assert engine.stats()["queries"][query.name]["results"] == 6
    engine.pause(query)
    engine.push("quotes", quotes((2500, 7, 4.0)))
    engine.resume(query)
    assert engine.stats()["queries"][query.name]["results"] == 6
    engine.push("articles", articles((3000, 7)))
    engine.push("quotes", quotes((3000, 7, 4.0)))
    assert engine.stats()["queries"][query.name]["results"] == 7


def probes(engine: Engine) -> int:
    """Rows that searched a SteM or a table so far."""
    return sum(module["rows_in"] for module in engine.stats()["modules"].values())


def test_matches_that_left_are_not_searched_for_when_nobody_asks(engine: Engine) -> None:
    engine.submit(PAIR.format(q=1, a=60))
    heard = Heard(engine, skip_left=True)
    engine.push("articles", articles((1000, 7)))
    engine.push("quotes", quotes((2000, 7, 4.0), (4000, 7, 5.0)))
    heard.take()
    before = probes(engine)
    engine.advance(4500)
    assert heard.take() == [] and probes(engine) == before
    Heard(engine)
    engine.advance(9000)
    assert probes(engine) > before, "now somebody asks"


def test_a_resumed_join_takes_its_answer_back(engine: Engine) -> None:
    query = engine.submit(PAIR.format(q=60, a=60))
    heard = Heard(engine)
    engine.push("articles", articles((1000, 7)))
    engine.push("quotes", quotes((2000, 7, 4.0)))
    engine.pause(query)
    heard.take()
    engine.resume(query)
    (part,) = heard.take()
    assert (part["sign"], part["lists"], part["columns"]["price"]) == (-1, {query.id: [0]}, [4.0])


def test_inputs_over_one_stream_are_told_apart(engine: Engine) -> None:
    engine.submit("SELECT x.price FROM quotes [RANGE 9 SECONDS] x, quotes [RANGE 9 SECONDS] y WHERE x.symbol = y.symbol")
    heard = Heard(engine)
    engine.push("quotes", quotes((1000, 7, 4.0)))
    (part,) = heard.take()
    assert list(part["columns"]) == [
        "quotes.symbol", "quotes.price", "quotes.ts", "quotes#2.symbol", "quotes#2.price", "quotes#2.ts"
    ]  # fmt: skip


@pytest.mark.parametrize("n_queries", [1, 70, 200])
def test_a_key_with_very_many_matches_leaves_in_bounded_parts(engine: Engine, n_queries: int) -> None:
    for low in range(n_queries):
        engine.submit(PAIR.format(q=100, a=100) + " AND q.price >= :low", params={"low": low})
    sizes: list[int] = []
    counts: Counter[int] = Counter()

    def take(commit: Commit) -> None:
        sizes.append(commit.n_rows)
        for query, n in zip(*commit.counts()):
            counts[int(query)] += int(n) * (1 if commit.added else -1)

    engine.on_commit(take)
    n = 600
    ts = np.full(n, 1000)
    engine.push("articles", {"symbol": np.full(n, 7), "ts": ts})
    engine.push("quotes", {"symbol": np.full(n, 7), "price": np.arange(n, dtype=float), "ts": ts})
    assert sum(sizes) == n * n and max(sizes) <= 16_384
    assert counts[1] == n * n and (n_queries < 70 or counts[70] == n * (n - 69))
    engine.advance(200_000)
    assert not any(counts.values()), "all of them leave again"


def test_statistics_name_the_stems_and_their_fan_out(engine: Engine) -> None:
    engine.submit(PAIR.format(q=10, a=60))
    engine.push("articles", articles((1000, 7), (1000, 7), (1000, 8)))
    engine.push("quotes", quotes((2000, 7, 4.0), (2000, 9, 4.0)))
    modules = engine.stats()["modules"]
    stem = modules["stem:articles.symbol"]
    assert (stem["rows_in"], stem["rows_out"], stem["selectivity"]) == (2, 2, 1.0)
    assert modules["stem:quotes.symbol"]["rows_in"] == 3
    assert engine.stats()["streams"]["articles"]["stems"]["symbol"]["rows"] == 3
    explained = engine.explain("SELECT q.price FROM quotes [RANGE 1 SECOND] q, articles [NOW] a WHERE q.symbol = a.symbol")
    assert explained["shared_with"] == 1 and explained["routes"]["quotes"] == ["stem:articles.symbol"]
