"""Arithmetic, text and time functions, one behaviour a test; the expected values are DuckDB's unless a name says otherwise."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from filters.expressions.evaluate import evaluate
from filters.expressions.expression import Expression, FunctionCall, Interval, Literal
from filters.expressions.text_functions import like
from filters.expressions.time_functions import EXTRACT_PARTS, check_format
from filters.values.dates import (
    DAY_US,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    date_of_days,
    days_of_date,
    parse_timestamp,
    timestamp_text,
)
from filters.values.vector import ListFrame
from lineage.schema import KEY_MAX, KEY_MIN, Type

INT, FLOAT, STRING, BOOL, TIMESTAMP = Type.INT, Type.FLOAT, Type.STRING, Type.BOOL, Type.TIMESTAMP
KINDS: dict[type, Type] = {bool: BOOL, int: INT, float: FLOAT, str: STRING}


def compute(type_: Type, op: str, *args: Any) -> Any:
    """The value of `op` over Python values; `FAILED` where it is NULL and was counted."""
    literals: tuple[Expression, ...] = tuple(arg if isinstance(arg, Literal) else Literal(KINDS[type(arg)], arg) for arg in args)
    frame = ListFrame([], n_rows=1)
    found = evaluate(FunctionCall(type_, op, literals), frame).cell(0)
    assert frame.errors == (found is None)
    return FAILED if found is None else found


FAILED = "failed"


def moment(text: str) -> Literal:
    micros = parse_timestamp(text)
    assert micros is not None
    return Literal(TIMESTAMP, micros)


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("+", KEY_MAX, 0, KEY_MAX),
        ("+", KEY_MAX, 1, FAILED),
        ("+", KEY_MIN, -1, FAILED),
        ("-", KEY_MIN, 0, KEY_MIN),
        ("-", 0, KEY_MIN, FAILED),
        ("-", -1, KEY_MIN, KEY_MAX),
        ("*", 2**32, 2**31, FAILED),
        ("*", -(2**32), 2**31, KEY_MIN),
        ("*", KEY_MIN, -1, FAILED),
        ("*", -1, KEY_MIN, FAILED),
        ("*", 3_037_000_499, 3_037_000_499, 3_037_000_499**2),
        ("*", 3_037_000_500, 3_037_000_500, FAILED),
        ("%", 7, 3, 1),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("%", 7, 0, FAILED),
        ("%", 7, -1, 0),
        ("%", KEY_MIN, -1, FAILED),
    ],
)
def test_int_arithmetic_is_exact_and_fails_outside_64_bits(op: str, a: int, b: int, expected: Any) -> None:
    assert compute(INT, op, a, b) == expected


def test_negation_and_absolute_value_of_the_smallest_int_fail() -> None:
    assert compute(INT, "neg", KEY_MIN) == compute(INT, "abs", KEY_MIN) == FAILED
    assert compute(INT, "neg", 5) == -5
    assert compute(INT, "abs", -5) == 5
    assert compute(FLOAT, "neg", 1.5) == -1.5
    assert compute(FLOAT, "abs", -1.5) == 1.5


def test_division_is_float_and_fails_by_zero() -> None:
    assert compute(FLOAT, "/", 7, 2) == 3.5
    assert compute(FLOAT, "/", KEY_MIN, -1) == 2.0**63
    assert compute(FLOAT, "/", 1, 0) == compute(FLOAT, "/", 1.0, -0.0) == compute(FLOAT, "/", 0.0, 0.0) == FAILED


def test_float_arithmetic_overflows_to_infinity_without_an_error() -> None:
    assert compute(FLOAT, "*", 1e308, 10.0) == math.inf
    assert compute(FLOAT, "+", 1e308, 1e308) == math.inf
    assert math.isnan(compute(FLOAT, "-", math.inf, math.inf))
    assert compute(FLOAT, "+", 1, 0.5) == 1.5


def test_the_float_remainder_has_the_sign_of_the_dividend() -> None:
    assert compute(FLOAT, "%", -7.5, 2.0) == -1.5
    assert compute(FLOAT, "%", 2.0, math.inf) == 2.0
    assert compute(FLOAT, "%", 5.5, 0.0) == FAILED


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((2.5,), 3.0),
        ((-2.5,), -3.0),
        ((0.49999999999999994,), 0.0),
        ((4503599627370497.5,), 4503599627370498.0),
        ((math.inf,), math.inf),
        ((1.005, 2), 1.0),
        ((1234.5, -2), 1200.0),
        ((1e300, 20), 1e300),
        ((1.5, 400), 1.5),
        ((1.5, -400), 0.0),
        ((math.inf, -2), math.inf),
    ],
)
def test_a_float_rounds_half_away_from_zero(args: tuple[Any, ...], expected: float) -> None:
    assert compute(FLOAT, "round", *args) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((7,), 7),
        ((123, 2), 123),
        ((1250, -2), 1300),
        ((-1250, -2), -1300),
        ((1249, -2), 1200),
        ((KEY_MAX, -18), 9 * 10**18),
        ((KEY_MAX, -1), FAILED),
        ((KEY_MAX, -19), FAILED),
        ((KEY_MAX, -20), 0),
        ((4 * 10**18, -19), 0),
    ],
)
def test_an_int_rounds_to_an_int(args: tuple[int, ...], expected: Any) -> None:
    assert compute(INT, "round", *args) == expected


def test_floor_and_ceil_keep_the_type_of_their_argument() -> None:
    assert compute(FLOAT, "floor", -1.5) == -2.0
    assert compute(FLOAT, "ceil", -1.5) == -1.0
    assert compute(INT, "floor", KEY_MAX) == compute(INT, "ceil", KEY_MAX) == KEY_MAX


def test_sqrt_and_ln_fail_outside_their_domain() -> None:
    assert compute(FLOAT, "sqrt", 4) == 2.0
    assert compute(FLOAT, "ln", math.e) == 1.0
    assert compute(FLOAT, "sqrt", -1.0) == compute(FLOAT, "ln", -1.0) == compute(FLOAT, "ln", 0.0) == FAILED
    assert math.isnan(compute(FLOAT, "sqrt", math.nan)) and math.isnan(compute(FLOAT, "ln", math.nan))


def test_power_and_exp_are_float_and_may_be_infinite() -> None:
    assert compute(FLOAT, "power", 2, 10) == 1024.0
    assert compute(FLOAT, "exp", 0) == 1.0
    assert compute(FLOAT, "exp", 1000.0) == compute(FLOAT, "power", 0.0, -1.0) == math.inf


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("||", ("a", "é"), "aé"),
        ("lower", ("ÀİẞΣς",), "àißσς"),
        ("upper", ("straße ŉ ᾳ",), "STRAẞE ŉ ᾼ"),
        ("trim", ("  a\t ",), "a\t"),
        ("trim", ("\u00a0a\u3000",), "a"),
        ("ltrim", ("  a ",), "a "),
        ("rtrim", ("  a ",), "  a"),
        ("replace", ("aaaa", "aa", "b"), "bb"),
        ("replace", ("aaa", "", "x"), "aaa"),
        ("split_part", ("a.b.c", ".", 2), "b"),
        ("split_part", ("a.b.c", ".", -1), "c"),
        ("split_part", ("a.b.c", ".", 0), ""),
        ("split_part", ("a.b.c", ".", 4), ""),
        ("split_part", ("a.b.c", ".", -4), ""),
        ("split_part", ("abc", "", 2), "b"),
        ("substr", ("hello", 2, 3), "ell"),
        ("substr", ("hello", 0, 2), "h"),
        ("substr", ("hello", -2), "lo"),
        ("substr", ("hello", -10, 7), "he"),
        ("substr", ("hello", 3, -2), "he"),
        ("substr", ("hello", 10), ""),
        ("substr", ("👍é", 2, 1), "é"),
        ("substr", ("hello", KEY_MIN, KEY_MAX), "hell"),
    ],
)
def test_text_functions_count_code_points_from_one(op: str, args: tuple[Any, ...], expected: str) -> None:
    assert compute(STRING, op, *args) == expected


def test_length_and_position_count_code_points() -> None:
    assert compute(INT, "length", "a👍e\u0301") == 4
    assert compute(INT, "position", "é", "aéb") == 2
    assert compute(INT, "position", "x", "abc") == 0
    assert compute(INT, "position", "", "abc") == 1


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("é", "_", True),
        ("a\nb", "a_b", True),
        ("abc", "ABC", False),
        ("abcabd", "%ab_", True),
        ("abcabd", "ab%ab", False),
        ("aba", "ab%ba", False),
        ("xaybzc", "%a%b%c", True),
        ("xaybzc", "%b%a%", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
    ],
)
def test_like_matches_percent_and_underscore(text: str, pattern: str, expected: bool) -> None:
    assert compute(BOOL, "like", text, pattern) is expected


def test_like_with_an_escape_takes_the_next_letter_as_it_is() -> None:
    assert compute(BOOL, "like", "a%b", "a\\%b", "\\") is True
    assert compute(BOOL, "like", "axb", "a\\%b", "\\") is False
    assert compute(BOOL, "like", "a\\xb", "a\\%b") is True
    assert compute(BOOL, "like", "ab", "a\\b", "\\") is True


def test_a_like_pattern_that_ends_in_its_escape_fails() -> None:
    assert compute(BOOL, "like", "a", "a\\", "\\") == FAILED
    assert compute(BOOL, "like", "a", "a", "xx") == FAILED


def test_a_hostile_like_pattern_takes_no_exponential_time() -> None:
    started = time.perf_counter()
    assert like("a" * 5000, "%a" * 30 + "b%") is False
    assert like("a" * 5000, "%a_a_" * 30 + "%b%") is False
    assert time.perf_counter() - started < 1.0


def test_a_text_function_runs_once_per_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    from filters.values.distinct_calls import map_distinct
    from filters.values.vector import Vector

    calls: list[tuple[str, int]] = []

    def record(text: str, number: int) -> str:
        calls.append((text, number))
        return text * number

    text = Vector.of_strings(["a", "b"] * 500)
    number = Vector(INT, np.array([1, 2, 1, 2] * 250))
    found = map_distinct(STRING, record, [text, number], ListFrame([text]))
    assert sorted(calls) == [("a", 1), ("b", 2)]
    assert found.to_pylist() == ["a", "bb"] * 500


LEAP = "2024-02-29 13:04:05.678901"


@pytest.mark.parametrize(
    ("part", "expected", "before_1970"),
    [
        ("year", 2024, 1969),
        ("quarter", 1, 4),
        ("month", 2, 12),
        ("day", 29, 28),
        ("hour", 13, 23),
        ("minute", 4, 59),
        ("second", 5, 58),
        ("millisecond", 5678, 58_999),
        ("microsecond", 5_678_901, 58_999_999),
        ("dow", 4, 0),
        ("isodow", 4, 7),
        ("doy", 60, 362),
        ("week", 9, 52),
        ("epoch", 1709211845.678901, -259_201.000001),
    ],
)
def test_extract_reads_the_fields_of_a_timestamp(part: str, expected: float, before_1970: float) -> None:
    type = FLOAT if part == "epoch" else INT
    assert compute(type, f"extract:{part}", moment(LEAP)) == expected
    assert compute(type, f"extract:{part}", moment("1969-12-28 23:59:58.999999")) == before_1970


def test_every_part_has_an_operator_and_the_iso_week_may_belong_to_the_other_year() -> None:
    assert len(EXTRACT_PARTS) == 14
    assert compute(INT, "extract:week", moment("2021-01-03")) == 53
    assert compute(INT, "extract:week", moment("2024-12-30")) == 1


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("year", "2024-01-01"),
        ("quarter", "2024-04-01"),
        ("month", "2024-05-01"),
        ("week", "2024-05-13"),
        ("day", "2024-05-19"),
        ("hour", "2024-05-19 13:00:00"),
        ("minute", "2024-05-19 13:04:00"),
        ("second", "2024-05-19 13:04:05"),
        ("millisecond", "2024-05-19 13:04:05.678"),
        ("microsecond", "2024-05-19 13:04:05.678901"),
    ],
)
def test_date_trunc_gives_the_start_of_the_unit(unit: str, expected: str) -> None:
    assert compute(TIMESTAMP, f"date_trunc:{unit}", moment("2024-05-19 13:04:05.678901")) == moment(expected).value


def test_date_trunc_goes_down_before_1970_and_fails_below_the_first_timestamp() -> None:
    assert compute(TIMESTAMP, "date_trunc:day", Literal(TIMESTAMP, -1)) == -DAY_US
    for unit in ("year", "quarter", "month"):
        assert compute(TIMESTAMP, f"date_trunc:{unit}", Literal(TIMESTAMP, TIMESTAMP_MIN)) == FAILED
    assert compute(TIMESTAMP, "date_trunc:day", Literal(TIMESTAMP, KEY_MIN)) == FAILED


def test_epoch_ms_rounds_down() -> None:
    assert compute(INT, "epoch_ms", Literal(TIMESTAMP, 1999)) == 1
    assert compute(INT, "epoch_ms", Literal(TIMESTAMP, -1)) == -1


@pytest.mark.parametrize(
    ("start", "op", "months", "micros", "expected"),
    [
        ("2024-01-31", "+", 1, 0, "2024-02-29"),
        ("2023-01-31", "+", 1, 0, "2023-02-28"),
        ("2024-03-31 10:00:00", "-", 1, 5_000_000, "2024-02-29 09:59:55"),
        ("2024-03-31 10:00:00", "-", 13, 0, "2023-02-28 10:00:00"),
        ("1969-12-31 23:00:00", "+", 2, 3_600_000_000, "1970-03-01"),
        ("2024-01-01", "-", 0, 1, "2023-12-31 23:59:59.999999"),
    ],
)
def test_an_interval_moves_months_first_and_clamps_to_the_last_day(
    start: str, op: str, months: int, micros: int, expected: str
) -> None:
    interval = Literal(Type.INTERVAL, Interval(months, micros))
    assert compute(TIMESTAMP, op, moment(start), interval) == moment(expected).value
    if op == "+":
        assert compute(TIMESTAMP, op, interval, moment(start)) == moment(expected).value


@pytest.mark.parametrize(
    ("start", "interval"),
    [
        (TIMESTAMP_MAX, Interval(0, 1)),
        (TIMESTAMP_MIN, Interval(0, -1)),
        (TIMESTAMP_MAX, Interval(1, 0)),
        (TIMESTAMP_MIN, Interval(-1, 0)),
        (0, Interval(10**30, 0)),
        (0, Interval(0, 10**30)),
        (0, Interval(12 * 300_000, 0)),
    ],
)
def test_an_interval_that_leaves_the_range_of_timestamps_fails(start: int, interval: Interval) -> None:
    assert compute(TIMESTAMP, "+", Literal(TIMESTAMP, start), Literal(Type.INTERVAL, interval)) == FAILED


def test_strftime_writes_the_fields() -> None:
    everything = "%Y %m %d %H %M %S %f %y %j %a %A %b %B %p %I %u %w %%"
    expected = "2024 02 29 13 04 05 678901 24 060 Thu Thursday Feb February PM 01 4 4 %"
    assert compute(STRING, "strftime", moment(LEAP), everything) == expected
    assert compute(STRING, "strftime", moment("0024-12-31 00:00:00"), "%Y %I %p %j %w") == "0024 12 AM 366 2"


def test_an_unknown_format_code_is_named() -> None:
    assert check_format("%Y-%m-%d %% x") is None
    assert check_format("%Y %Q") == 'the format code "%Q" is not known'
    assert check_format("100%") == 'the format ends with a single "%"'
    assert compute(STRING, "strftime", moment(LEAP), "%Q") == FAILED


def test_calendar_days_and_dates_are_inverse() -> None:
    for days in [*range(-800_000, 800_000, 997), -106_751_991, 106_751_991]:
        assert days_of_date(*date_of_days(days)) == days
    assert date_of_days(0) == (1970, 1, 1)


def test_timestamps_read_back_from_their_text() -> None:
    for micros in (0, -1, 1_709_211_845_678_901, TIMESTAMP_MIN, TIMESTAMP_MAX, -(10**17), 10**18):
        assert parse_timestamp(timestamp_text(micros)) == micros
