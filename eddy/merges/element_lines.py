"""The lines of one call for an input of a merged stream: its rows, adjusts and points, told apart.

    {"sensor": 1, "ts": 1000, ..}       a row
    {"adjust": {"sensor": 1, ..}}       an adjust
    {"stable": 1000}                    a point

A line is no row if that word is all it has: a row has its time too. In one call the rows count first, then the adjusts in their
order, then the largest point. So points are judged after the whole call, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from lineage.elements import BEGINNING
from lineage.errors import RowError
from lineage.times import to_us

ADJUST, STABLE = "adjust", "stable"


class ElementLines(NamedTuple):
    """Rows and adjusts with their places in the call, and the points."""

    rows: list[Any]
    row_places: list[int]
    adjusts: list[Any]
    adjust_places: list[int]
    #: the largest point said before each row, and before each adjust; BEGINNING if none was
    before_rows: list[int]
    before_adjusts: list[int]
    #: the largest of all, and its place; BEGINNING if there is none
    point: int
    point_place: int


def word_of(line: Any, time: str) -> str | None:
    """`adjust` or `stable`, or None for a row of a stream with that time column."""
    if type(line) is dict and len(line) == 1:
        word = next(iter(line))
        if word in (ADJUST, STABLE) and word != time.lower():
            return str(word)
    return None


def split_lines(lines: Sequence[Any], time: str) -> ElementLines:
    """Tell the lines of a call apart; `time` is the time column of the stream."""
    found = ElementLines([], [], [], [], [], [], BEGINNING, 0)
    point, point_place = BEGINNING, 0
    for place, line in enumerate(lines):
        word = word_of(line, time)
        if word is None:
            found.rows.append(line)
            found.row_places.append(place)
            found.before_rows.append(point)
        elif word == ADJUST:
            found.adjusts.append(line[ADJUST])
            found.adjust_places.append(place)
            found.before_adjusts.append(point)
        else:
            with at_places([place]):
                said = _point(line[STABLE])
            if said > point:
                point, point_place = said, place
    return found._replace(point=point, point_place=point_place)


def _point(time: Any) -> int:
    try:
        return to_us(time)
    except RowError as error:
        error.row = 0
        raise


@contextmanager
def at_places(places: Sequence[int]) -> Iterator[None]:
    """Let errors about a row name its place in the call."""
    try:
        yield
    except RowError as error:
        if error.row is not None:
            error.row = int(places[error.row])
        raise


def check_points(times: np.ndarray, before: Sequence[int], what: str, column: str) -> None:
    """Raise if a time is below a point that an earlier line of the call said."""
    wrong = times < np.asarray(before, np.int64)
    if wrong.any():
        fact = f"an earlier line said that {what}"
        raise RowError(fact, code="below_point", row=int(np.argmax(wrong)), column=column)
