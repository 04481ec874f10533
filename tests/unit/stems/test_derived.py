"""Derived columns of one store: computed once a row, shared, complete, and gone with their last user."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.expressions.evaluate import evaluate
from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Literal, UserCall, UserFunction
from filters.values.vector import Frame, Vector
from lineage.dictionary import MAX_STRING_BYTES, Dictionary
from lineage.ingest import Ingestor
from lineage.schema import Schema, Type
from stems.derived import DerivedColumn, DerivedColumns
from stems.indexes import Indexes
from stems.row_store import PAGE_ROWS, RowStore

ensure()

SCHEMA = Schema.parse({"s": "string", "x": "float", "n": "int", "at": "timestamp[us]"}, "t")
S, X, N, _ = (ColumnRef(column.type, column.name, k) for k, column in enumerate(SCHEMA.columns))


def number(value: int) -> Literal:
    return Literal(Type.INT, value)


MODULO = FunctionCall(Type.INT, "%", (N, number(10)))
EXPRESSIONS: dict[str, tuple[Expression, Any]] = {
    "int": (MODULO, lambda row: None if row["n"] is None else row["n"] % 10),
    "division": (FunctionCall(Type.FLOAT, "/", (number(12), N)), lambda row: 12 / row["n"] if row["n"] else None),
    "negated": (FunctionCall(Type.FLOAT, "neg", (X,)), lambda row: None if row["x"] is None else -row["x"]),
    "text": (FunctionCall(Type.STRING, "upper", (S,)), lambda row: None if row["s"] is None else row["s"].upper()),
    "null": (FunctionCall(Type.BOOL, "is_null", (S,)), lambda row: row["s"] is None),
    "two columns": (FunctionCall(Type.INT, "+", (N, FunctionCall(Type.INT, "length", (S,)))), lambda row: _plus_length(row)),
    "length": (FunctionCall(Type.INT, "length", (S,)), lambda row: None if row["s"] is None else len(row["s"])),
    "never": (FunctionCall(Type.INT, "%", (N, number(0))), lambda row: None),
    "else": (FunctionCall(Type.STRING, "coalesce", (S, Literal(Type.STRING, "none"))), lambda row: row["s"] or "none"),
}


def _plus_length(row: dict[str, Any]) -> int | None:
    return None if None in (row["n"], row["s"]) else row["n"] + len(row["s"])


class Stream:
    """A store with its derived columns, its indexes and the rows as they were given."""

    def __init__(self) -> None:
        self.store = RowStore(SCHEMA)
        self.dictionaries: list[Dictionary | None] = [Dictionary(), None, None, None]
        self.derived = DerivedColumns(self.store, self.dictionaries)
        self.indexes = Indexes(self.store)
        self.rows: list[dict[str, Any]] = []
        self._ingestor = Ingestor(SCHEMA, None, self.dictionaries)

    def push(self, rows: list[dict[str, Any]]) -> None:
        taken = self._ingestor.take(rows)
        done = 0
        while done < len(rows):
            stop = min(len(rows), done + self.store.room())
            page, at = self.store.append(taken.cells, taken.nulls, done, stop, 0, 0, self.store.end)
            self.derived.build(page, at, at + stop - done)
            self.indexes.build(page, at, at + stop - done)
            done = stop
        self.rows += rows

    def values(self, column: DerivedColumn) -> list[Any]:
        """The cells of a column as values, of all rows held."""
        found: list[Any] = []
        for page, at, stop in self.store.slices(self.store.watermark, self.store.end):
            cells = page.cells[column.position, at:stop]
            nulls = np.zeros(stop - at) if page.nulls is None else page.nulls[column.position, at:stop]
            typed: list[Any] = cells.view(np.float64).tolist() if column.expression.type is Type.FLOAT else cells.tolist()
            if column.dictionary is not None:
                typed = [column.dictionary.strings[code] if not null else None for code, null in zip(typed, nulls)]
            found += [None if null else cell for cell, null in zip(typed, nulls)]
        return found

    def expected(self, meaning: Any) -> list[Any]:
        return [meaning(row) for row in self.rows[self.store.watermark :]]

    def check(self) -> None:
        self.store.check()
        self.derived.check()
        self.indexes.check()


def make_rows(n: int, seed: int = 0, nulls: bool = True) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    none = [None] if nulls else []
    return [
        {
            "s": rng.choice(["a", "b", "Ab", "é", *none]),
            "x": rng.choice([0.0, -0.0, 1.5, float("inf"), *none]),
            "n": rng.choice([0, 1, 2, 13, 144, *none]),
            "at": rng.choice([0, 5]),
        }
        for _ in range(n)
    ]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_column_is_computed_for_rows_that_are_there_and_for_rows_that_come(name: str) -> None:
    expression, meaning = EXPRESSIONS[name]
    stream = Stream()
    stream.push(make_rows(50, 1, nulls=False))
    column = stream.derived.hold(expression)
    stream.push(make_rows(PAGE_ROWS, 2))
    stream.push(make_rows(7, 3, nulls=False))
    assert stream.values(column) == stream.expected(meaning)
    stream.check()


def test_what_cannot_be_computed_is_null_and_counted_once_a_row() -> None:
    stream = Stream()
    stream.push([{"s": "a", "x": 1.0, "n": n, "at": 0} for n in (0, 0, 3, None)])
    column = stream.derived.hold(EXPRESSIONS["division"][0])
    assert column.errors == 2, "of the rows that were stored"
    stream.push([{"s": "a", "x": 1.0, "n": n, "at": 0} for n in (0, 4)])
    assert column.errors == 3 and stream.values(column) == [None, None, 4.0, None, None, 3.0]
    stream.derived.hold(EXPRESSIONS["division"][0])
    assert column.errors == 3, "it is not computed again for the next who wants it"


def test_equal_expressions_are_one_column_that_goes_with_its_last_user() -> None:
    stream = Stream()
    stream.push(make_rows(3 * PAGE_ROWS, nulls=False))
    before = stream.store.bytes()
    one = stream.derived.hold(MODULO)
    taken = stream.store.bytes()
    assert taken == before + 8 * len(stream.rows)
    two = stream.derived.hold(FunctionCall(Type.INT, "%", (N, number(10))))
    assert one is two and stream.store.bytes() == taken
    assert stream.derived.stats() == {"(n % 10)": {"users": 2, "errors": 0}}
    stream.derived.release(one)
    assert len(stream.derived.columns) == 1
    stream.derived.release(two)
    assert stream.store.bytes() == before and stream.derived.stats() == {} and len(stream.dictionaries) == len(SCHEMA)
    stream.check()


def test_a_place_that_was_given_back_is_taken_again() -> None:
    stream = Stream()
    stream.push(make_rows(100))
    columns = [stream.derived.hold(EXPRESSIONS[name][0]) for name in ("text", "int", "division")]
    assert [column.position for column in columns] == [4, 5, 6]
    stream.derived.release(columns[1])
    again = stream.derived.hold(EXPRESSIONS["else"][0])
    assert again.position == 5 and stream.values(again) == stream.expected(EXPRESSIONS["else"][1])
    stream.push(make_rows(100, 4, nulls=False))
    for name, column in (("text", columns[0]), ("else", again), ("division", columns[2])):
        assert stream.values(column) == stream.expected(EXPRESSIONS[name][1])
    stream.check()


def test_many_columns_move_each_row_a_few_times_only() -> None:
    stream = Stream()
    stream.push(make_rows(10))
    cells = [stream.store.pages[0].cells]
    held = []
    for k in range(64):
        held.append(stream.derived.hold(FunctionCall(Type.INT, "+", (N, number(k)))))
        cells.append(stream.store.pages[0].cells)
    n_moved = sum(after is not before for before, after in pairwise(cells))
    assert n_moved == 7
    for column in held:
        stream.derived.release(column)
        cells.append(stream.store.pages[0].cells)
    assert n_moved < sum(after is not before for before, after in pairwise(cells)) <= 11
    stream.check()


def test_an_index_finds_rows_by_a_derived_column_as_by_any_other() -> None:
    stream = Stream()
    stream.push(make_rows(40, 5))
    column = stream.derived.hold(MODULO)
    index = stream.indexes.hash_on([column.position])
    stream.indexes.recall(index)
    stream.push(make_rows(PAGE_ROWS, 6))
    keys = index.folding.fold([np.array([3])], [None])
    rows, positions = np.empty(40_000, np.int32), np.empty(40_000, np.int64)
    found = index.probe(keys, 0, stream.store.end).fill(rows, positions)
    expected = [at for at, row in enumerate(stream.rows) if row["n"] is not None and row["n"] % 10 == 3]
    assert sorted(positions[:found].tolist()) == expected
    assert set(stream.indexes.stats()) == {"(n % 10)"}
    stream.check()


def test_a_computed_text_may_be_longer_than_one_that_is_pushed() -> None:
    stream = Stream()
    half = "a" * (MAX_STRING_BYTES // 2 + 1)
    stream.push([{"s": half, "x": 0.0, "n": 0, "at": 0}])
    column = stream.derived.hold(FunctionCall(Type.STRING, "||", (S, S)))
    assert stream.values(column) == [half + half]
    assert column.dictionary is not None
    column.dictionary.compact([0])
    column.dictionary.check()
    stream.check()


def test_what_reads_texts_alone_is_computed_once_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []

    def counted(expression: Expression, frame: Frame) -> Vector:
        computed.append(frame.n_rows)
        return evaluate(expression, frame)

    stream = Stream()
    column = stream.derived.hold(EXPRESSIONS["text"][0])
    monkeypatch.setattr("stems.derived.evaluate", counted)
    for seed in range(5):
        stream.push(make_rows(1000, seed))
    assert sum(computed) == 5, "four texts and NULL, not five thousand rows"
    assert stream.values(column) == stream.expected(EXPRESSIONS["text"][1])
    # compacted dictionaries have other codes, of the texts that are computed from as of those that are computed
    for position in (0, column.position):
        texts = stream.dictionaries[position]
        assert texts is not None
        stream.store.recode(position, texts.compact(stream.store.used_codes(position)))
    stream.push([{**row, "s": row["s"] and row["s"] + "!"} for row in make_rows(1000, 9)])
    assert stream.values(column) == stream.expected(EXPRESSIONS["text"][1])
    stream.check()


def test_a_text_that_cannot_be_computed_is_counted_once_a_row() -> None:
    stream = Stream()
    column = stream.derived.hold(FunctionCall(Type.INT, "cast", (S,)))
    rows = [{"s": text, "x": 0.0, "n": 0, "at": 0} for text in ("1", "2", None, "1")]
    stream.push(rows)
    assert column.errors == 0 and stream.values(column) == [1, 2, None, 1]
    stream.push([{**rows[0], "s": text} for text in ("1", "one", "one", None, "3")])
    stream.push([{**rows[0], "s": "one"}])
    assert column.errors == 3 and stream.values(column) == [1, 2, None, 1, 1, None, None, None, 3, None]
    stream.check()


def test_a_user_function_is_no_derived_column() -> None:
    function = UserFunction("f", lambda value: value, Type.INT, 1.0)
    with pytest.raises(AssertionError):
        Stream().derived.hold(UserCall(Type.INT, function, (N,)))


@pytest.mark.parametrize("seed", range(6))
def test_any_mix_of_holding_pushing_and_forgetting_keeps_every_column_right(seed: int) -> None:
    rng = random.Random(seed)
    stream = Stream()
    held: list[tuple[str, DerivedColumn]] = []
    for step in range(60):
        act = rng.choice(["push", "push", "hold", "release", "forget", "close ranks"])
        if act == "push":
            stream.push(make_rows(rng.choice([1, 5, 300, PAGE_ROWS // 2]), seed * 100 + step, rng.random() < 0.5))
        elif act == "hold":
            name = rng.choice(list(EXPRESSIONS))
            held.append((name, stream.derived.hold(EXPRESSIONS[name][0])))
        elif act == "release" and held:
            stream.derived.release(held.pop(rng.randrange(len(held)))[1])
        elif act == "forget":
            stream.store.forget(rng.randint(stream.store.watermark, stream.store.end))
        elif act == "close ranks" and stream.store.watermark < stream.store.end:
            first, end = stream.store.watermark, stream.store.end
            kept = sorted(rng.sample(range(first, end), rng.randint(0, min(50, end - first))))
            rows = [stream.rows[position] for position in kept]
            stream.store.close_ranks(np.array(kept, np.int64))
            stream.rows[end - len(kept) :] = rows
        stream.check()
        for name, column in held:
            assert stream.values(column) == stream.expected(EXPRESSIONS[name][1])
