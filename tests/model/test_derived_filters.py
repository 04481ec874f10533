"""Expressions compared with constants, as intervals of derived columns and as predicate modules: nobody can tell which.

The twin is the same engine with `placement.derived` taken away. Both take random calls; answers, changes, what listeners hear and
counts of failures are compared after every step.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from eddy import Engine
from eddy.history import recall as recalling
from eddy.state.dump import dump_state, load_state
from eddy.streams import derived_filters
from eddy.streams.derived_filters import DerivedFilters
from filters.expressions.predicate import compared as compared_with
from filters.index.grouped import GroupedFilter
from filters.values.intervals import Intervals
from filters.values.vector import Vector
from lineage.dictionary import Dictionary
from lineage.errors import EddyError
from lineage.schema import Column
from stems import frame as frames
from stems.derived import DerivedColumn, DerivedColumns
from tests.reference.breaking import Breaks
from tests.reference.comparison import Mismatch, compared
from tests.reference.netting import folded
from tests.reference.seeds import amount, seeds
from tests.reference.workload import to_datetime

COLUMNS = {"k": "int", "n": "int", "x": "float", "y": "float", "s": "string", "ok": "bool", "ts": "timestamp[us]"}
VALUES: dict[str, list[Any]] = {
    "k": [0, 1, 2, 3, None],
    "n": [0, 1, -1, 5, 2**63 - 1, -(2**63), 2**53 + 1, None],
    "x": [0.0, -0.0, 1.5, -2.5, 4.0, float("nan"), float("inf"), 1e300, None],
    "y": [0.0, 1.0, 2.0, -1.0, 0.5, None],
    "s": ["", "a", "Ab", "aB", "abc", "b%", "\U0010ffff", "it's", "zz", None],
    "ok": [True, False, None],
}
NUMBERS = [
    "x * 2 + y", "ABS(x - y)", "SQRT(x)", "x / y", "n + k", "n * 2", "-n", "ABS(n)", "n % k", "k * 0.5", "ROUND(x)", "LENGTH(s)",
    "-x", "CASE WHEN ok THEN x ELSE y END", "COALESCE(n, k)", "LN(y)", "CAST(x AS int)", "EXTRACT(second FROM ts)",
    "GREATEST(x, k)",
]  # fmt: skip
TEXTS = ["LOWER(s)", "s || 'x'", "SUBSTR(s, 2)", "TRIM(s)", "CAST(k AS string)"]
CONSTANTS = ["0", "1", "-1", "2.5", "3", "-0.0", "9007199254740993", "1e300", "9223372036854775807", "0.5"]
LETTERS = ["'a'", "'ab'", "''", "'abx'", "'1'", "'zz'"]
OPS = ["<", "<=", ">", ">=", "=", "<>"]


def comparison(rng: random.Random) -> str:
    value, constants = (rng.choice(NUMBERS), CONSTANTS) if rng.random() < 0.75 else (rng.choice(TEXTS), LETTERS)
    one, other = rng.choice(constants), rng.choice(constants)
    kind = rng.choice(["op", "op", "op", "flipped", "between", "in", "null", "not", "never"])
    text = {
        "op": f"{value} {rng.choice(OPS)} {one}",
        "flipped": f"{one} {rng.choice(OPS)} {value}",
        "between": f"{value} {rng.choice(['', 'NOT '])}BETWEEN {one} AND {other}",
        "in": f"{value} {rng.choice(['', 'NOT '])}IN ({one}, {other})",
        "null": f"{value} IS {rng.choice(['', 'NOT '])}NULL",
        "not": f"NOT ({value} {rng.choice(OPS)} {one})",
        "never": f"{value} > {one} AND {value} < {one}",
    }[kind]
    if value.startswith(("LOWER", "SUBSTR")) and rng.random() < 0.3:
        return f"{value} LIKE {rng.choice([chr(39) + 'a%' + chr(39), chr(39) + '_b%' + chr(39)])}"
    return text


def condition(rng: random.Random) -> str:
    parts = [comparison(rng)]
    while rng.random() < 0.35:
        parts.append(rng.choice([comparison(rng), f"k = {rng.randint(0, 3)}", "ok", "x < y", "s LIKE 'a%'"]))
    if rng.random() < 0.15:
        return f"({' OR '.join(parts)})"
    return " AND ".join(parts)


def text(rng: random.Random) -> str:
    window = rng.choice(["", "[RANGE 2 SECONDS]", "[RANGE 5 SECONDS]", "[RANGE 1 HOUR]", "[ROWS 3]"])
    kind = rng.choice(["plain", "plain", "plain", "join", "group", "distinct"])
    bounded = window if window not in ("", "[RANGE 1 HOUR]") else "[RANGE 3 SECONDS]"
    if kind == "join":
        own = condition(rng).replace("ts", "a.ts")
        for name in ("x", "y", "k", "n", "s", "ok"):
            own = _qualified(own, name)
        return f"SELECT a.k, b.x FROM r {bounded} AS a, q [RANGE 3 SECONDS] AS b WHERE a.k = b.k AND {own}"
    if kind == "group":
        return f"SELECT k, COUNT(*) AS c FROM r {bounded} WHERE {condition(rng)} GROUP BY k"
    if kind == "distinct":
        return f"SELECT DISTINCT k FROM r {bounded} WHERE {condition(rng)}"
    return f"SELECT k, n, x, s FROM r {window} WHERE {condition(rng)}".replace("  ", " ")


def _qualified(own: str, name: str) -> str:
    """The condition with a column's name written out; words and texts are left alone."""
    return re.sub(rf"(?<![\w.'])\b{name}\b(?![\w'(])", f"a.{name}", own)


class Pair:
    """The engine and its twin."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        policy = self.rng.choice(["auto", "greedy", "lottery", "random"])
        self.engines = [Engine(policy=policy, seed=seed) for _ in range(2)]
        keep = self.rng.choice([None, 10_000])
        for engine in self.engines:
            for name in ("r", "q"):
                engine.create_stream(name, COLUMNS, time="ts", keep=keep)
        self.heard: list[list[Any]] = [[], []]
        self.listen()
        for source in self.engines[1]._catalog.sources.values():
            source.placement.derived = None
        self.now = 0
        self.n_queries = 0

    def listen(self) -> None:
        for engine, heard in zip(self.engines, self.heard):
            engine.on_commit(partial(hear, heard))

    def both(self, call: Callable[[Engine], Any]) -> None:
        found = []
        for engine in self.engines:
            try:
                found.append(call(engine))
            except EddyError as error:
                found.append((error.code, str(error)))
        if isinstance(found[0], tuple) or isinstance(found[1], tuple):
            assert found[0] == found[1], found

    def step(self) -> None:
        rng = self.rng
        names = list(self.engines[0].queries)
        kind = rng.choice(["push"] * 5 + ["submit"] * 4 + ["cancel", "pause", "resume", "replace", "advance", "load"])
        if kind == "push":
            self.push(rng.choice([1, 3, 20, 300]))
        elif kind == "submit":
            self.n_queries += 1
            sql, history = text(rng), rng.choice(["new", "window"])
            self.both(lambda engine: engine.submit(sql, name=f"q{self.n_queries}", history=history) and None)
        elif kind == "advance":
            self.now += rng.choice([1, 1_000_000, 6_000_000])
            self.both(lambda engine: engine.advance(to_datetime(self.now)))
        elif kind == "load":
            self.engines = [load_state(dump_state(engine)) for engine in self.engines]
            self.listen()
        elif names:
            name = rng.choice(names)
            sql = text(rng)
            calls: dict[str, Callable[[Engine], Any]] = {
                "cancel": lambda engine: engine.queries[name].cancel(),
                "pause": lambda engine: engine.queries[name].pause(),
                "resume": lambda engine: engine.queries[name].resume(),
                "replace": lambda engine: engine.replace(name, sql),
            }
            self.both(calls[kind])

    def push(self, n: int) -> None:
        rng, stream = self.rng, self.rng.choice("rrq")
        rows: dict[str, list[Any]] = {name: [rng.choice(VALUES[name]) for _ in range(n)] for name in VALUES}
        times = sorted(self.now + rng.randint(0, 900_000) for _ in range(n))
        self.now = times[-1]
        rows["ts"] = times
        self.both(lambda engine: engine.push(stream, rows) and None)

    def check(self) -> None:
        for engine in self.engines:
            engine.check()
        one, other = ({name: seen(query) for name, query in engine.queries.items()} for engine in self.engines)
        compared(len(one))
        told = [sorted(heard) for heard in self.heard]
        assert told[0] == told[1], "listeners hear the same"
        for heard in self.heard:
            heard.clear()
        for name in one:
            if one[name] != other[name]:
                raise Mismatch(f"{self.engines[0].queries[name].sql}\n{one[name]}\n{other[name]}")


def hear(heard: list[Any], commit: Any) -> None:
    """Note the rows of a part of a commit, by query."""
    queries, offsets, numbers = commit.row_lists()
    if len(queries) == 0:
        return
    columns = [column.to_pylist() for column in commit.columns.values()]
    signs = np.broadcast_to(commit.sign, len(columns[0]))
    for at, query in enumerate(queries.tolist()):
        for row in numbers[offsets[at] : offsets[at + 1]].tolist():
            heard.append(repr((commit.seq, query, int(signs[row]), [folded(column[row]) for column in columns])))


def seen(query: Any) -> Any:
    """What there is to see of a query."""
    answer = query.answer()
    rows = sorted(map(repr, zip(*[map(folded, column) for column in answer.to_pydict().values()])))
    changes = [(change.seq, change.sign, change.time, repr(change.row)) for change in query.changes(0)]
    return rows, sorted(changes, key=repr), query.state


def run(seed: int, n_steps: int) -> Pair:
    pair = Pair(seed)
    for _ in range(n_steps):
        pair.step()
        pair.check()
    return pair


@pytest.mark.parametrize("seed", seeds(range(200), 12))
def test_columns_and_modules_give_the_same(seed: int) -> None:
    pair = run(seed, amount(40, long=60))
    assert pair.n_queries


KINDS = {
    "n + k": ["-3", "6", "0"],
    "x * 2 + y": ["-4.5", "2.0", "7.5"],
    "LOWER(s)": ["'aa'", "'ab'", "'b'"],
    "n = 5": ["TRUE", "FALSE", "TRUE"],
    "ts - INTERVAL 1 SECOND": ["'1970-01-01'", "'1970-01-01 00:00:01'", "'2024-01-01'"],
}


def in_turn(first: str, second: str) -> None:
    """Queries over one expression come, go, and make room for those over another; rows are stored all the while."""
    pair = Pair(7)
    for n, value in enumerate([first, second, first]):
        for k, constant in enumerate(KINDS[value]):
            sql = f"SELECT k, n, x, s FROM r [RANGE 1 HOUR] WHERE {value} {'=<>'[k]} {constant}"
            pair.both(partial(Engine.submit, sql=sql, name=f"q{n}{k}", history="window"))
            pair.check()
        for size in (300, 1, 20):
            pair.push(size)
            pair.check()
        for k in range(3):
            pair.both(partial(Engine.cancel, query=f"q{n}{k}"))
        pair.push(3)
        pair.check()


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_a_filter_serves_another_expression_when_the_first_has_gone(first: str, second: str) -> None:
    in_turn(first, second)


#: what is broken -> a function that breaks it
MUTANTS = breaks = Breaks()


@breaks("a term of one leg is forgotten where there are two")
def _only_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = DerivedFilters.chosen

    def chosen(self: DerivedFilters, *given: Any) -> dict[Any, dict[str, Intervals]]:
        return {value: dict.fromkeys(parts, list(parts.values())[-1]) for value, parts in exact(self, *given).items() if parts}

    monkeypatch.setattr(DerivedFilters, "chosen", chosen)


@breaks("a condition that is negated is not")
def _never_negated(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = compared_with
    monkeypatch.setattr(derived_filters, "compared", lambda call, negated: exact(call, False))


@breaks("a column goes while another leg reads it")
def _gone_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = DerivedColumns.release

    def release(self: DerivedColumns, column: DerivedColumn) -> None:
        column.n_users = 1
        exact(self, column)

    monkeypatch.setattr(DerivedColumns, "release", release)


@breaks("a filter that gets another column keeps the kind of its cells")
def _same_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = GroupedFilter.turn_to

    def turn_to(self: GroupedFilter, column: Column, position: int, dictionary: Dictionary | None) -> None:
        kind = self.cell_kind
        exact(self, column, position, dictionary)
        self.cell_kind = kind

    monkeypatch.setattr(GroupedFilter, "turn_to", turn_to)


@breaks("a filter that gets another column finds regions as before")
def _same_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = GroupedFilter.turn_to

    def turn_to(self: GroupedFilter, column: Column, position: int, dictionary: Dictionary | None) -> None:
        self.position = position
        if self.dictionary is not None or dictionary is not None:
            exact(self, column, position, dictionary)

    monkeypatch.setattr(GroupedFilter, "turn_to", turn_to)


@breaks("stored rows get no region of a new column")
def _no_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalling, "_find_ids", lambda *given: None)


@breaks("rows are read by outcomes that a column's predicate does not keep")
def _by_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "true_rows", lambda expression, frame: np.zeros(frame.n_rows, np.bool_))


@breaks("a user of a column counts failures as matches")
def _failures_match(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = DerivedColumn.encoded

    def encoded(self: DerivedColumn, found: Vector) -> tuple[np.ndarray, None]:
        if self.dictionary is not None:
            self.dictionary.computed("")
        return exact(self, found)[0], None

    monkeypatch.setattr(DerivedColumn, "encoded", encoded)


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_what_breaks_a_rule_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises(Exception):  # noqa: B017  # whatever it runs into
        for first, second in itertools.permutations(KINDS, 2):
            in_turn(first, second)
        for seed in range(500, 540):
            run(seed, 40)
