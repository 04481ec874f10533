"""The window of one FROM item, as a lifetime.

A row with effective time `t`, taken at `start`, lives in a window during `[start, t + width)`:

    [RANGE w]                        width = w
    [NOW]                            width = 1 us (only rows with t = T)
    [RANGE UNBOUNDED]                no end
    [ROWS n]                         no scheduled end; row n + 1 ends the oldest at its own start
    [PARTITION BY k, .. ROWS n]      the same, counted per key; NULL is a key
    [.. ROWS n RANGE w]              width = w, and what comes first ends the row
    [RANGE w SLIDE s], TUMBLE, HOP   the rows with `B - w <= t` and `start < B`, B = the last multiple of s since 1970 UTC <= T
    (no window)                      the query is a stream: each row counts once, as it comes, and nothing ends

so `[RANGE w]` holds exactly the rows with `T - w < t <= T`, and `[ROWS n]` the newest n by (time, arrival).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

# as FOREVER: the width of a window whose rows do not end by the clock
from lineage.elements import FOREVER as FOREVER

#: The largest n of `[ROWS n]`: what a row store could ever number in memory.
MAX_ROWS = 2**30


_UNITS = [
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
    ("MILLISECOND", 1_000),
]


class WindowKind(enum.Enum):
    NONE = "none"
    RANGE = "range"
    NOW = "now"
    UNBOUNDED = "unbounded"
    ROWS = "rows"
    SLIDE = "slide"


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """The declared window of a FROM item. Equal specs hold the same rows of a stream."""

    kind: WindowKind
    #: the length of a row's life by the clock, `FOREVER` if the clock never ends it; of NONE `FOREVER` iff it is `timed`
    width_us: int
    #: how many rows it holds, of each key; 0 iff the kind is not ROWS
    rows: int = 0
    #: positions of the PARTITION BY columns in the stream's own schema, ascending; empty unless the kind is ROWS
    partition: tuple[int, ...] = ()
    #: of SLIDE the distance of the boundaries at which its extents are shown; of RANGE the part of the width for which rows are
    #: only kept, after their time in an extent (`kept`); else 0
    slide_us: int = 0

    @classmethod
    def none(cls) -> WindowSpec:
        return cls(WindowKind.NONE, 0)

    @classmethod
    def timed(cls) -> WindowSpec:
        """No window, for a merge: each row as it comes with its own time, which a lagging row begins after."""
        return cls(WindowKind.NONE, FOREVER)

    @classmethod
    def now(cls) -> WindowSpec:
        return cls(WindowKind.NOW, 1)

    @classmethod
    def unbounded(cls) -> WindowSpec:
        return cls(WindowKind.UNBOUNDED, FOREVER)

    @classmethod
    def range(cls, width_us: int) -> WindowSpec:
        return cls(WindowKind.RANGE, width_us)

    @classmethod
    def newest(cls, rows: int, partition: Sequence[int] = (), width_us: int = FOREVER) -> WindowSpec:
        """`[PARTITION BY partition ROWS rows RANGE width]`; the order and repetition of key columns mean nothing."""
        return cls(WindowKind.ROWS, width_us, rows, tuple(sorted(set(partition))))

    @classmethod
    def sliding(cls, width_us: int, slide_us: int) -> WindowSpec:
        """`[RANGE width SLIDE slide]`."""
        return cls(WindowKind.SLIDE, width_us, slide_us=slide_us)

    @classmethod
    def kept(cls, extent: WindowSpec) -> WindowSpec:
        """The window that holds every row of a SLIDE window's shown extent, which stands until the next boundary."""
        return cls(WindowKind.RANGE, extent.width_us + extent.slide_us, slide_us=extent.slide_us)

    @property
    def life_us(self) -> int:
        """The longest time after its own at which a row can still begin to count; `FOREVER` if the clock sets no bound.

        >>> WindowSpec.kept(WindowSpec.sliding(60, 10)).life_us
        60
        """
        if self.kind is WindowKind.NONE:
            return FOREVER
        return self.width_us - self.slide_us if self.kind is WindowKind.RANGE else self.width_us

    @property
    def is_stream(self) -> bool:
        """Whether a query over it is a stream (only +) rather than a relation."""
        return self.kind is WindowKind.NONE

    @property
    def is_timed(self) -> bool:
        """Whether it is a stream whose rows have their own times, those that are stored with the others."""
        return self.kind is WindowKind.NONE and self.width_us == FOREVER

    @property
    def ends(self) -> bool:
        """Whether rows in it ever leave."""
        return self.kind in (WindowKind.RANGE, WindowKind.NOW, WindowKind.ROWS, WindowKind.SLIDE)

    @property
    def ends_by_clock(self) -> bool:
        """Whether rows leave it in the order they came, at times known when they come."""
        return self.kind in (WindowKind.RANGE, WindowKind.NOW, WindowKind.SLIDE)

    @property
    def update_pattern(self) -> str:
        """The update pattern of this leaf: unbounded is monotonic, sliding weakest, and a row count ends rows unscheduled."""
        if self.kind is WindowKind.ROWS:
            return "strict"
        return "weakest" if self.ends else "monotonic"

    def say(self, names: Sequence[str]) -> str:
        """The window as a user writes it, over a stream with these columns.

        >>> WindowSpec.newest(10, [1], 60_000_000).say(["sensor", "room"])
        '[PARTITION BY room ROWS 10 RANGE 1 MINUTE]'
        """
        return self._words([names[position] for position in self.partition])

    def __str__(self) -> str:
        return self._words([f"#{position}" for position in self.partition])

    def _words(self, keys: Sequence[str]) -> str:
        match self.kind:
            case WindowKind.NONE:
                return "no window"
            case WindowKind.NOW:
                return "[NOW]"
            case WindowKind.UNBOUNDED:
                return "[RANGE UNBOUNDED]"
            case WindowKind.RANGE:
                return f"[RANGE {_say_width(self.width_us)}]"
            case WindowKind.SLIDE:
                return f"[RANGE {_say_width(self.width_us)} SLIDE {_say_width(self.slide_us)}]"
        parts = [f"PARTITION BY {', '.join(keys)}"] if keys else []
        parts.append(f"ROWS {self.rows}")
        if self.width_us < FOREVER:
            parts.append(f"RANGE {_say_width(self.width_us)}")
        return f"[{' '.join(parts)}]"


def _say_width(width_us: int) -> str:
    for unit, micros in _UNITS:
        if width_us % micros == 0:
            count = width_us // micros
            return f"{count} {unit}{'S' if count != 1 else ''}"
    return f"{width_us} MICROSECONDS"
