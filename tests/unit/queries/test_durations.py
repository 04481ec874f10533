"""Durations in their spellings."""

from __future__ import annotations

import pytest

from filters.expressions.expression import Interval
from queries.durations import DurationError, find_unit, measure, parse_duration
from queries.signatures import is_reserved


@pytest.mark.parametrize(
    ("text", "months", "micros"),
    [
        ("5 minutes", 0, 300_000_000),
        ("5minutes", 0, 300_000_000),
        (" 1 hour 30 min ", 0, 5_400_000_000),
        ("1 month, 2 days", 1, 172_800_000_000),
        ("1 year -1 month", 11, 0),
        ("1.5 h", 0, 5_400_000_000),
        (".5 s", 0, 500_000),
        ("-3 ms", 0, -3_000),
        ("- 3 us", 0, -3),
        ("2 quarters", 6, 0),
        ("1 week", 0, 604_800_000_000),
    ],
)
def test_a_duration_is_months_and_microseconds(text: str, months: int, micros: int) -> None:
    assert parse_duration(text) == Interval(months, micros)


@pytest.mark.parametrize(
    "text", ["", " ", "5", "minutes", "5 parsecs", "5 minutes and", "1e5 s", "0.5 us", "0.5 month", "9" * 5000 + " s"]
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)


def test_units_have_plurals_and_short_forms() -> None:
    assert [find_unit(word) for word in ("second", "SECONDS", "ms", "us", "s", "parsec")] == [
        "SECOND",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
        "SECOND",
        None,
    ]


def test_a_huge_exponent_is_too_long_at_once() -> None:
    with pytest.raises(DurationError, match="too long"):
        measure("1e9999", "SECOND")
    with pytest.raises(DurationError, match="no count"):
        measure("1e999999", "SECOND")


def test_no_product_is_rounded() -> None:
    with pytest.raises(DurationError, match="no whole number"):
        measure("1." + "0" * 36 + "1", "WEEK")


def test_names_of_built_in_and_refused_functions_are_reserved() -> None:
    assert all(is_reserved(name) for name in ("abs", "COALESCE", "extract", "count", "now", "cast", "exists", "case", "ceiling"))
    assert not is_reserved("risky")
