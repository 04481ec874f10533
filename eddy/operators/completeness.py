"""The time from which the answer of a query with operators misses no row from before the query (semantics 16).

a block          when the last row that it misses would have left its window (`eddy/reading/opening.py`); a stream at once
a running query  at once: it counts whole, as it is
a window over    what the stream gave up to then leaves it: after the width, after the last extent that holds it;
a stream         where rows are counted, and where they stay for ever, nobody knows when, unless nothing is missed
operators        when all their inputs are complete
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddy.reading.opening import complete_since
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from lineage.elements import BEGINNING
from queries.nodes import Block, LMerge, NamedQuery, Node, Slide, Window
from windows.spec import FOREVER, WindowSpec

#: What a block reads: its sources, their windows and the first row of each that it sees.
Read = tuple[Sequence[Source], Sequence[WindowSpec], Sequence[int]]

#: Nobody knows when.
NEVER = FOREVER


def tree_complete_since(root: Node, now: int, blocks: Mapping[Block, Read]) -> int | None:
    """`Query.complete_since` of a tree, in microseconds; None: never, or there is no clock yet."""
    if now == BEGINNING:
        return None
    since = _since(root, now, blocks)
    return None if since >= NEVER else since


def _since(node: Node, now: int, blocks: Mapping[Block, Read]) -> int:
    match node:
        case Block():
            found = complete_since(now, *blocks[node])
            return NEVER if found is None else found
        case NamedQuery():
            return now
        case Slide(child=child, window=window):
            missed = _missed(child, now, blocks)
            if missed is None or missed >= NEVER:
                return now if missed is None else NEVER
            last = (missed + window.width_us) // window.slide_us * window.slide_us
            return max(now, last + window.slide_us)
        case Window(child=child, window=window):
            missed = _missed(child, now, blocks)
            if missed is None:
                return now
            return min(NEVER, max(now, missed + window.width_us)) if window.width_us < FOREVER else NEVER
        case _:
            return max(_since(child, now, blocks) for child in node.children)


def _missed(child: Node, now: int, blocks: Mapping[Block, Read]) -> int | None:
    """Latest time of a row missing or wrong in a window over `child`; None if the window is complete."""
    if isinstance(child, LMerge):
        return max((missed for item in child.inputs if (missed := _missed(item, now, blocks)) is not None), default=None)
    if not isinstance(child, Block):
        return _since(child, now, blocks)
    sources, _, births = blocks[child]
    found = [source.store.time_before(born) for source, born in zip(sources, births) if not isinstance(source, TableSource)]
    return max((time for time in found if time is not None), default=None)
