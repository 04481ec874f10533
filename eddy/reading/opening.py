"""The start of a query: the older rows it sees, and the parts of its opening commit.

    first_seen        the first row of a stream that counts for it: all that is stored, or what came since its birth
    complete_since    when the last row that it misses would have left its window; of a window by keys as if it missed one of each
    opening_parts     its answer as listeners of `on_commit` get it, in the commit that opens it

A query that is opened (submitted, resumed, replaced) starts from these; `eddy/history/recall.py` makes the rows fit to be seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddy.base.plans import Birth, Kept
from eddy.joins.join_group import JoinGroup
from eddy.matching.row_lists import OpeningRows
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from filters.values.vector import Vector
from lineage.elements import BEGINNING
from lineage.schema import Type
from windows.spec import FOREVER, WindowKind, WindowSpec
from windows.state.netting import uncancelled

#: The rows of an answer over one stream, or the matches of one over several.
Held = tuple[Source | JoinGroup, Kept]


def first_seen(birth: Birth | None, source: Source, window: WindowSpec, seq: int) -> int:
    """The first position of an input that a query may see; `seq` is the last commit. A table is seen whole."""
    if isinstance(source, TableSource):
        return 0
    stored = source.stored.settle(seq)
    if window.is_stream and not window.is_timed:
        return source.store.end
    return stored if birth is None else max(stored, birth.end_of(source.number))


def complete_since(now: int, sources: Sequence[Source], windows: Sequence[WindowSpec], births: Sequence[int]) -> int | None:
    """The time from which no row older than the births is missing; None: never, or there is no clock yet. Tables are whole."""
    since = now
    if since == BEGINNING:
        return None
    for source, window, born in zip(sources, windows, births, strict=True):
        counted = window.kind is WindowKind.ROWS and not window.partition and source.store.end - born >= window.rows
        whole = counted or window.is_stream or isinstance(source, TableSource)
        missed = None if whole else source.store.time_before(born)
        if missed is not None and window.width_us == FOREVER:
            return None
        if missed is not None:
            since = max(since, missed + window.width_us)
    return since


def opening_parts(
    query: int, left: Held | None, came: Held | None, at_us: int
) -> list[tuple[Source | JoinGroup, OpeningRows, int]]:
    """Return the parts of an opening commit: rows that left and rows that came; a row of both answers is in neither part."""
    held = [(sign, *one) for sign, one in ((-1, left), (1, came)) if one is not None]
    rows: Sequence[np.ndarray] = [np.arange(kept.n_rows) for _, _, kept in held]
    if left is not None and came is not None and left[0].name == came[0].name:
        rows = uncancelled(_numbers(left[1]), _numbers(came[1]))
    return [(of, OpeningRows(query, kept, mine, at_us), sign) for (sign, of, kept), mine in zip(held, rows) if len(mine)]


def _numbers(kept: Kept) -> list[Vector]:
    """The numbers of rows, which tell them from each other; of matches those of all inputs."""
    return [Vector(Type.INT, column) for column in np.atleast_2d(kept.row_numbers.T)]
