"""Codes of values: equal rows have equal codes, and codes of values that are gone are used again."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.values.vector import Vector, strings_array
from lineage.dictionary import Dictionary
from lineage.growth import LEAST
from lineage.schema import Type
from tests.reference.dictionaries import encode_list
from windows.state.texts import Texts
from windows.state.values import ValueCodes

ensure()

TYPES = (Type.INT, Type.FLOAT, Type.STRING, Type.BOOL)


def folded(value: Any) -> Any:
    """A value as Python compares it the way codes must."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def vectors(rows: list[tuple[Any, ...]], rng: random.Random) -> list[Vector]:
    """Columns of the rows, the strings under a dictionary in some order."""
    columns = []
    for k, type in enumerate(TYPES):
        cells = [row[k] for row in rows]
        nulls = np.array([cell is None for cell in cells], np.bool_)
        if type is Type.STRING:
            texts = ["x", "y", "", "zz", "never"]
            rng.shuffle(texts)
            codes = np.array([0 if cell is None else texts.index(cell) for cell in cells], np.int64)
            columns.append(Vector(type, codes, nulls, strings_array(texts)))
        else:
            values = np.array([0 if cell is None else cell for cell in cells], {Type.INT: "i8", Type.FLOAT: "f8"}.get(type, "?"))
            columns.append(Vector(type, values, nulls if nulls.any() else None))
    return columns


def random_row(rng: random.Random) -> tuple[Any, ...]:
    return (
        rng.choice([None, 0, 1, 2**62]),
        rng.choice([None, 0.0, -0.0, 1.5, math.nan, -math.nan, math.inf]),
        rng.choice([None, "x", "y", "", "zz"]),
        rng.choice([None, True, False]),
    )


@pytest.mark.parametrize("seed", range(10))
def test_rows_have_one_code_iff_they_are_equal_and_it_gives_the_row_back(seed: int) -> None:
    rng = random.Random(seed)
    codes = ValueCodes(TYPES)
    code_of: dict[tuple[Any, ...], int] = {}
    held: list[tuple[tuple[Any, ...], int]] = []
    for _ in range(30):
        rows = [random_row(rng) for _ in range(rng.choice([0, 1, 5, 200]))]
        found = codes.encode(vectors(rows, rng), len(rows))
        back = zip(*[column.to_pylist() for column in codes.take(found)]) if rows else []
        for row, code, value in zip(rows, found.tolist(), back, strict=True):
            key = tuple(map(folded, row))
            assert tuple(map(folded, value)) == key
            assert code_of.setdefault(key, code) == code
            held.append((key, code))
        assert len(set(code_of.values())) == len(code_of), "two values have one code"
        codes.check()
        rng.shuffle(held)
        gone, held = held[: len(held) // 2], held[len(held) // 2 :]
        codes.release(np.array([code for _, code in gone], np.int64))
        alive = {key for key, _ in held}
        code_of = {key: code for key, code in code_of.items() if key in alive}
        assert len(codes) == len(code_of)
        codes.check()
    codes.release(np.array([code for _, code in held], np.int64))
    assert len(codes) == 0 and codes.bytes == ValueCodes(TYPES).bytes and codes.capacity == LEAST


def test_codes_stay_dense_when_values_come_and_go() -> None:
    codes = ValueCodes([Type.INT])
    for start in range(0, 100_000, 100):
        fresh = codes.encode([Vector(Type.INT, np.arange(start, start + 100))], 100)
        kept = codes.encode([Vector(Type.INT, np.array([-1]))], 1)
        assert fresh.max() <= 101 and codes.capacity <= 256
        codes.release(fresh)
        if start:
            codes.release(kept)
    assert len(codes) == 1


def test_a_row_without_columns_is_one_value() -> None:
    codes = ValueCodes([])
    assert codes.encode([], 3).tolist() == [0, 0, 0] and codes.take(np.zeros(3, np.int64)) == []
    codes.release(np.zeros(3, np.int64))
    assert len(codes) == 0


def test_texts_of_values_that_are_gone_are_thrown_out() -> None:
    codes = ValueCodes([Type.STRING])
    kept = codes.encode([Vector.of_strings(["kept", None])], 2)
    for start in range(0, 20_000, 500):
        texts = Vector.of_strings([f"text {start + k}" for k in range(500)])
        codes.release(codes.encode([texts], 500))
        assert codes.encode([Vector.of_strings([None, "kept"])], 2).tolist() == kept[::-1].tolist()
        codes.check()
    assert codes.bytes < 600_000
    assert codes.take(kept)[0].to_pylist() == ["kept", None]


def test_a_dictionary_that_grows_is_translated_once_for_each_text() -> None:
    texts, dictionary = Texts(), Dictionary()
    for k in range(100):
        codes = encode_list(dictionary, [f"text {k}", "text 0"])
        found = texts.encode(Vector(Type.STRING, codes, None, dictionary.as_array()))
        assert found.tolist() == [k, 0]
    texts.check()


def test_many_references_of_one_value_are_counted() -> None:
    codes = ValueCodes([Type.FLOAT])
    found = codes.encode([Vector.constant(Type.FLOAT, math.nan, 10_000)], 10_000)
    codes.acquire(found[:5])
    assert codes.references(np.array([0])).tolist() == [10_005] and codes.capacity <= 2 * 4096
    codes.release(found)
    assert codes.live().tolist() == [0]
