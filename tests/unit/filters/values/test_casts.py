"""Casts between all types; the expected values are DuckDB's."""

from __future__ import annotations

import math
from typing import Any

import pytest

from filters.expressions.evaluate import evaluate
from filters.expressions.expression import FunctionCall, Literal
from filters.values.dates import parse_timestamp
from filters.values.vector import ListFrame
from lineage.schema import KEY_MAX, KEY_MIN, Type

INT, FLOAT, STRING, BOOL, TIMESTAMP = Type.INT, Type.FLOAT, Type.STRING, Type.BOOL, Type.TIMESTAMP
KINDS: dict[type, Type] = {bool: BOOL, int: INT, float: FLOAT, str: STRING}
FAILED = "failed"


def convert(to: Type, given: Any) -> Any:
    """The value cast to a type; `FAILED` where it is NULL and was counted."""
    literal = given if isinstance(given, Literal) else Literal(KINDS[type(given)], given)
    frame = ListFrame([], n_rows=1)
    found = evaluate(FunctionCall(to, "cast", (literal,)), frame).cell(0)
    assert frame.errors == (found is None)
    return FAILED if found is None else found


def moment(text: str) -> Literal:
    return Literal(TIMESTAMP, parse_timestamp(text))


CASTS: list[tuple[Type, Any, Any]] = [
    (INT, 2.5, 2),
    (INT, 3.5, 4),
    (INT, -2.5, -2),
    (INT, 9223372036854774784.0, 9223372036854774784),
    (INT, 2.0**63, FAILED),
    (INT, -(2.0**63), KEY_MIN),
    (INT, math.nan, FAILED),
    (INT, True, 1),
    (INT, " 12 ", 12),
    (INT, "2.5", 3),
    (INT, "-2.5", -3),
    (INT, "1.4999999999999999999999", 1),
    (INT, "1e3", 1000),
    (INT, "25e-1", 3),
    (INT, "1_000", 1000),
    (INT, "1__0", FAILED),
    (INT, "0x10", 16),
    (INT, "0b11", 3),
    (INT, "9223372036854775807.4", KEY_MAX),
    (INT, "9223372036854775808", FAILED),
    (INT, "1e30", FAILED),
    (INT, "1e-400", 0),
    (INT, "0e99", 0),
    (INT, "1e99999999999999999999999", FAILED),
    (INT, "1e-99999999999999999999999", 0),
    (INT, "", FAILED),
    (INT, "٣", FAILED),
    (INT, "abc", FAILED),
    (FLOAT, 3, 3.0),
    (FLOAT, True, 1.0),
    (FLOAT, "-1.5e3", -1500.0),
    (FLOAT, ".5", 0.5),
    (FLOAT, "1.", 1.0),
    (FLOAT, "1_0.5", 10.5),
    (FLOAT, "INF", math.inf),
    (FLOAT, "-infinity", -math.inf),
    (FLOAT, "1e400", math.inf),
    (FLOAT, "infinit", FAILED),
    (FLOAT, "1,5", FAILED),
    (FLOAT, "0x10", FAILED),
    (BOOL, 0, False),
    (BOOL, 2, True),
    (BOOL, 0.3, True),
    (BOOL, -0.0, False),
    (BOOL, math.nan, True),
    (BOOL, "tRuE", True),
    (BOOL, "N", False),
    (BOOL, " true ", FAILED),
    (BOOL, "on", FAILED),
    (STRING, 12, "12"),
    (STRING, 1.0, "1.0"),
    (STRING, 1e15, "1000000000000000.0"),
    (STRING, 1e16, "1e+16"),
    (STRING, 1e-5, "1e-05"),
    (STRING, -0.0, "-0.0"),
    (STRING, math.nan, "nan"),
    (STRING, -math.inf, "-inf"),
    (STRING, True, "true"),
    (STRING, False, "false"),
    (STRING, moment("2024-02-29 13:04:05.5"), "2024-02-29 13:04:05.5"),
    (STRING, moment("2024-02-29"), "2024-02-29 00:00:00"),
    (STRING, Literal(TIMESTAMP, -62_167_219_200_000_001), "0002-12-31 (BC) 23:59:59.999999"),
    (STRING, "x", "x"),
]


@pytest.mark.parametrize(("type", "given", "expected"), CASTS)
def test_a_cast_converts_or_fails(type: Type, given: Any, expected: Any) -> None:
    assert convert(type, given) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29", 1709164800_000000),
        ("2024-2-9", 1707436800_000000),
        ("2024/02/29", 1709164800_000000),
        ("2024-02-29T13:04:05Z", 1709211845_000000),
        ("2024-02-29 13:04:05 UTC", 1709211845_000000),
        ("2024-02-29 13:04:05+02:00", 1709204645_000000),
        ("2024-02-29 13:04:05-0130", 1709217245_000000),
        ("2024-02-29T13:04+02", 1709204640_000000),
        ("2024-02-29 13:04:05.1234567", 1709211845_123456),
        ("2024-02-29 24:00:00", 1709251200_000000),
        ("2024-02-29 24:00:01", FAILED),
        ("2023-02-29", FAILED),
        ("0000-01-01 (BC)", FAILED),
        ("2024-13-01", FAILED),
        ("2024-02-29 13:04:60", FAILED),
        ("2024-02-29 13", FAILED),
        (" 2024-02-29", FAILED),
        ("999999-01-01", FAILED),
        ("infinity", FAILED),
        ("", FAILED),
    ],
)
def test_text_becomes_a_timestamp_by_iso_8601(text: str, expected: Any) -> None:
    assert convert(TIMESTAMP, text) == expected


def test_a_cast_of_a_bare_null_is_null_and_no_error() -> None:
    frame = ListFrame([], n_rows=1)
    for type in (INT, FLOAT, STRING, BOOL, TIMESTAMP):
        assert evaluate(FunctionCall(type, "cast", (Literal(Type.NULL, None),)), frame).cell(0) is None
    assert frame.errors == 0
