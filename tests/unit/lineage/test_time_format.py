"""Times by a strptime format, for whole columns."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from lineage.errors import SchemaError
from lineage.time_format import TimeFormat

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
