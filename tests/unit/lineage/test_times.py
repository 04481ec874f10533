"""Times and durations as users give them, one by one and in whole columns."""

from __future__ import annotations

import datetime as dt
import random
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lineage.errors import RowError, SchemaError
from lineage.time_format import TimeFormat
from lineage.times import (
    MAX_US,
    MIN_US,
    datetime64_to_us,
    duration_us,
    numbers_to_us,
    strings_to_us,
    to_datetime,
    to_iso,
    to_us,
)

YEAR_2024 = 1_704_067_200_000_000
PLUS_2 = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "unit", "us"),
    [
        (0, "ms", 0),
        (1000, "ms", 1_000_000),
        (-1, "ms", -1000),
        (3, "s", 3_000_000),
        (3, "us", 3),
        (2999, "ns", 2),
        (-1, "ns", -1),
        (1.5, "ms", 1500),
        (0.0004, "ms", 0),
        (0.0006, "ms", 1),
        (1.1, "s", 1_100_000),
        (1600.0, "ns", 2),
        (np.int32(7), "ms", 7000),
        (np.uint64(7), "s", 7_000_000),
        (np.float32(0.5), "s", 500_000),
        ("1970-01-01", "ms", 0),
        ("2024-01-01T00:00:00Z", "ms", YEAR_2024),
        ("2024-01-01 00:00:00", "s", YEAR_2024),
        ("2024-01-01T02:00:00+02:00", "ms", YEAR_2024),
        ("2024-01-01T02:00+0200", "ms", YEAR_2024),
        ("2024-01-01T02+02", "ms", YEAR_2024),
        ("2023-12-31T23:59:59.999999999Z", "ms", YEAR_2024 - 1),
        ("2024-01-01T00:00:00.5", "ms", YEAR_2024 + 500_000),
        ("1969-12-31T23:59:59.9999999", "ms", -1),
        (dt.datetime(2024, 1, 1), "ms", YEAR_2024),
        (dt.datetime(2024, 1, 1, 2, tzinfo=PLUS_2), "ms", YEAR_2024),
        (dt.date(2024, 1, 1), "ms", YEAR_2024),
        (np.datetime64("2024-01-01"), "ms", YEAR_2024),
        (np.datetime64("2024", "Y"), "ms", YEAR_2024),
        (np.datetime64(-1, "ns"), "ms", -1),
        (np.datetime64(-1, "as"), "ms", -1),
        (np.datetime64(3, ("s", 10)), "ms", 30_000_000),
        (np.datetime64(700, ("ns", 3)), "ms", 2),
        (pd.Timestamp("2024-01-01T00:00:00.000001999"), "ms", YEAR_2024 + 1),
        (pd.Timestamp("2024-01-01T09:00", tz="Asia/Tokyo"), "ms", YEAR_2024),
        (pd.Timestamp(-1, unit="ns"), "ms", -1),
        (MIN_US, "us", MIN_US),
        (MAX_US, "us", MAX_US),
        ("0001-01-01", "ms", MIN_US),
        ("9999-12-31T23:59:59.999999", "ms", MAX_US),
    ],
)
def test_a_time_becomes_microseconds(value: object, unit: str, us: int) -> None:
    got = to_us(value, unit)
    assert got == us and type(got) is int


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.True_,
        None,
        "abc",
        "",
        "2024",
        "2024-1-1",
        "2024-13-01",
        "2024-02-30",
        "20240101",
        "2024-01-01T24:00",
        " 2024-01-01",
    ]
    + ["2024-01-01T10:00:60", "2024-01-01X10:00", "2024-01-01T10:00+25:00", "2024-01-01Z", "now", "0000-01-01", "２０２４-01-01"]
    + [float("nan"), float("inf"), np.float64("nan"), np.datetime64("NaT"), pd.NaT, [1], b"2024-01-01", np.timedelta64(1, "s")],
)
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(RowError, match="is not a time") as caught:
        to_us(value)
    assert caught.value.code == "bad_value" and caught.value.hint


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (MAX_US + 1, "us"),
        (MIN_US - 1, "us"),
        (10**30, "ms"),
        (1e300, "s"),
        (-1e308, "s"),
        (YEAR_2024, "s"),
        ("0001-01-01T00:00+01:00", "ms"),
        ("9999-12-31T23:30-01:00", "ms"),
        (dt.datetime(1, 1, 1, tzinfo=PLUS_2), "ms"),
        (np.datetime64(2**62, "s"), "ms"),
        (np.datetime64(10_000, "Y"), "ms"),
        (np.datetime64(-103_758, ("D", 7)), "ms"),
    ],
)
def test_a_time_outside_the_years_1_to_9999_is_refused(value: object, unit: str) -> None:
    with pytest.raises(RowError, match="not within the years 1 to 9999") as caught:
        to_us(value, unit)
    assert caught.value.code == "time_out_of_range"


def test_the_message_of_a_bad_time() -> None:
    with pytest.raises(RowError) as caught:
        to_us("yesterday")
    assert str(caught.value) == '"yesterday" is not a time\nhint: ISO 8601, such as 2024-05-01T12:00:00.5Z or 2024-05-01'


@given(st.integers(MIN_US, MAX_US))
def test_a_time_comes_back_from_datetime_and_from_text(us: int) -> None:
    assert to_us(to_datetime(us)) == us
    assert to_us(to_iso(us)) == us
    assert to_us(us, "us") == us
    assert to_datetime(us).tzinfo is dt.UTC


def test_text_has_a_fraction_only_where_there_is_one() -> None:
    assert to_iso(0) == "1970-01-01T00:00:00Z"
    assert to_iso(-1) == "1969-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    ("value", "us"),
    [
        (0, 0),
        (5000, 5_000_000),
        (0.5, 500),
        (np.int64(2), 2000),
        (np.float32(0.5), 500),
        (dt.timedelta(minutes=5), 300_000_000),
        (np.timedelta64(2, "s"), 2_000_000),
        (np.timedelta64(1, "W"), 604_800_000_000),
        (np.timedelta64(1999, "ns"), 1),
        (pd.Timedelta("1s"), 1_000_000),
    ],
)
def test_a_duration_becomes_microseconds(value: object, us: int) -> None:
    assert duration_us(value) == us


@pytest.mark.parametrize(
    "value",
    [
        -1,
        True,
        "5s",
        None,
        float("nan"),
        float("inf"),
        dt.timedelta(-1),
        np.timedelta64("NaT"),
        np.timedelta64(1, "Y"),
        10**18,
        pd.NaT,
    ],
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(SchemaError) as caught:
        duration_us(value)
    assert caught.value.code == "bad_duration"


UNITS = st.sampled_from(["s", "ms", "us", "ns"])


def each(values: list[object], unit: str = "ms") -> list[int] | None:
    """The slow twin of the array conversions."""
    try:
        return [to_us(value, unit) for value in values]
    except RowError:
        return None


def listed(us: np.ndarray | None) -> list[int] | None:
    return None if us is None else us.tolist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**12), 10**12), max_size=5), UNITS)
def test_an_array_of_ints_is_converted_as_each_of_them(values: list[int], unit: str) -> None:
    assert listed(numbers_to_us(np.array(values, np.int64), unit)) == each(values, unit)


@given(st.lists(st.floats() | st.floats(-1e12, 1e12) | st.sampled_from([MAX_US / 1e3, MIN_US / 1e3]), max_size=5), UNITS)
def test_an_array_of_floats_is_converted_as_each_of_them(values: list[float], unit: str) -> None:
    assert listed(numbers_to_us(np.array(values, np.float64), unit)) == each(values, unit)


@given(
    st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(10**5), 10**5), max_size=5),
    st.sampled_from(
        ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "7D", "25s", "3ns", "2000ns", "250ns"]
    ),
    st.sampled_from("<>"),
)
@example([-248_542_387_200_000_001], "250ns", "<")
def test_an_array_of_datetime64_is_converted_as_each_of_them(values: list[int], unit: str, order: str) -> None:
    array = np.array(values, np.int64).view(f"M8[{unit}]").astype(f"{order}M8[{unit}]")
    assert listed(datetime64_to_us(array)) == each(list(array))


PARTS = st.sampled_from(
    ["2024-05-06", "0001-01-01", "9999-12-31", "0000-01-01", "2024-02-30", "2024-5-6", "12024-05-06", "20240506", ""]
)
HOURS = st.sampled_from(["", "T10", "T10:30", " 10:30:59", "T1030", "T24:00", "T23:59:60", "t10:30", "T10:30:00 ", "T", "X10:00"])
FRACTIONS = st.sampled_from(["", ".5", ".123456", ".1234567890", ",5", "."])
ZONES = st.sampled_from(["", "Z", "z", "+01:00", "-0130", "+01", "+1", "+24:00", "-01:60", "+01:00:30", " Z"])


@given(st.lists(st.builds("{}{}{}{}".format, PARTS, HOURS, FRACTIONS, ZONES), min_size=1, max_size=4))
def test_an_array_of_texts_is_converted_as_each_of_them(values: list[str]) -> None:
    got = listed(strings_to_us(pa.array(values, pa.string())))
    # giving up is allowed, a wrong answer is not; the caller then goes row by row
    assert got is None or got == each(values)


GOOD_HOURS = st.sampled_from(["", "T10", "T10:30", " 10:30:59", "T10:30:59.5", "T10:30:59.1234567890"])


@given(st.lists(st.tuples(GOOD_HOURS, st.sampled_from(["", "Z", "+01:00", "-0130", "+01"])), min_size=1, max_size=4))
def test_good_texts_never_need_the_slow_way(parts: list[tuple[str, str]]) -> None:
    values = [f"2024-05-06{hours}{zone if hours else ''}" for hours, zone in parts]
    assert listed(strings_to_us(pa.array(values, pa.string()))) == each(values) is not None


# -- Times by a strptime format, for whole columns ---------------------------------------------------------------------


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMATS = [
    "%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%y", "%d.%m.%Y", "%b %d, %Y %I:%M %p", "%d %B %Y", "%Y%m%d%H%M%S", "%Y-%j",
    "%Y-%m-%dT%H:%M:%S.%f", "%a %b %d %H:%M:%S %Y", "%F %T%z", "[%d/%b/%Y:%H:%M:%S %z]", "%D %T",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMATS)
def test_a_format_reads_what_python_writes_and_reads(text: str) -> None:
    draw = random.Random(text)
    format_ = TimeFormat(text)
    python = text.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S").replace("%D", "%m/%d/%y")
    written = []
    for _ in range(300):
        moment = datetime(1970, 1, 1) + timedelta(seconds=draw.randrange(0, 3 * 10**9), microseconds=draw.randrange(10**6))
        zone = timezone(timedelta(minutes=15 * draw.randrange(-48, 57)))
        written.append(moment.replace(tzinfo=zone).strftime(python))
    found = format_.read(pa.array(written)).to_pylist()
    for one, us in zip(written, found):
        wanted = datetime.strptime(one, python)
        assert us == (wanted.replace(tzinfo=wanted.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1), one
    assert format_.zoned == ("%z" in text)


def test_fields_may_be_short_and_words_in_any_case() -> None:
    assert TimeFormat("%d/%m/%Y %H:%M").read(pa.array(["1/5/2024 9:05"]))[0].as_py() == 1_714_554_300_000_000
    assert TimeFormat("%d %b %Y").read(pa.array(["1 MAY 2024"]))[0].as_py() == 1_714_521_600_000_000


@pytest.mark.parametrize(
    "text", ["2024-02-30", "2023-02-29", "2024-13-01", "2024-00-10", "2024-1-1 ", "x2024-01-01", "", "0000-01-01"]
)
def test_what_does_not_fit_is_no_time(text: str) -> None:
    assert TimeFormat("%Y-%m-%d").read(pa.array([text, None, "2024-02-29"])).to_pylist() == [None, None, 1_709_164_800_000_000]


@pytest.mark.parametrize(
    "text", ["", "%d", "%Y-%m", "%Q%Y%m%d", "%Y%Y%m%d", "%Y-%m-%d %I:%M", "%Y-%m-%d %", "%Y %y %m %d", "%d %b %m %Y"]
)
def test_a_format_without_a_day_or_with_a_riddle_is_refused(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        TimeFormat(text)
    assert "strptime" in caught.value.hint
