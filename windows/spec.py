"""The window of one FROM item, as a lifetime.

A row with effective time `t`, taken at `start`, lives in a window during `[start, t + width)`:

    [RANGE w]            width = w
    [NOW]                width = 1 us (only rows with t = T)
    [RANGE UNBOUNDED]    no end
    (no window)          the query is a stream: each row counts once, as it comes, and nothing ends

so `[RANGE w]` holds exactly the rows with `T - w < t <= T`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

#: Larger than any time: the width of a window that never ends.
FOREVER = 2**62


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


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """The declared window of a FROM item. `width_us` is the length of a row's life; meaningless for NONE."""

    kind: WindowKind
    width_us: int

    @classmethod
    def none(cls) -> WindowSpec:
        return cls(WindowKind.NONE, 0)

    @classmethod
    def now(cls) -> WindowSpec:
        return cls(WindowKind.NOW, 1)

    @classmethod
    def unbounded(cls) -> WindowSpec:
        return cls(WindowKind.UNBOUNDED, FOREVER)

    @classmethod
    def range(cls, width_us: int) -> WindowSpec:
        return cls(WindowKind.RANGE, width_us)

    @property
    def is_stream(self) -> bool:
        """Whether a query over it is a stream (only +) rather than a relation."""
        return self.kind is WindowKind.NONE

    @property
    def ends(self) -> bool:
        """Whether rows in it ever leave."""
        return self.kind in (WindowKind.RANGE, WindowKind.NOW)

    @property
    def update_pattern(self) -> str:
        """The update pattern of this leaf: unbounded inputs are monotonic, sliding ones weakest."""
        return "weakest" if self.ends else "monotonic"

    def __str__(self) -> str:
        match self.kind:
            case WindowKind.NONE:
                return "no window"
            case WindowKind.NOW:
                return "[NOW]"
            case WindowKind.UNBOUNDED:
                return "[RANGE UNBOUNDED]"
        for unit, micros in _UNITS:
            if self.width_us % micros == 0:
                count = self.width_us // micros
                return f"[RANGE {count} {unit}{'S' if count != 1 else ''}]"
        return f"[RANGE {self.width_us} MICROSECONDS]"
