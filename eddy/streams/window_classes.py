"""The window classes of one stream, in the orders in which they are looked up.

    by width      those whose rows the clock ends, or nothing; `oldest` never ascends with the width
    by count      those that count rows, by their keys and widths; of those the ones that no other contains (`outermost`)

A class comes, goes and is found without a look at the others; only where windows differ both in how many rows they count and in
their RANGE, `outermost` looks at each width.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, ValuesView

from eddy.streams.legs import WindowClass
from windows.spec import WindowKind, WindowSpec


def _width(held: WindowClass) -> int:
    return held.window.width_us


class WindowClasses:
    """The window classes with at least one leg, by window."""

    __slots__ = ("_held", "_free", "_by_width", "_counts", "_n_ending")

    def __init__(self) -> None:
        self._held: dict[WindowSpec, WindowClass] = {}
        #: numbers of classes that went
        self._free: list[int] = []
        self._by_width: list[WindowClass] = []
        #: by keys and by width, how many rows windows count, ascending
        self._counts: dict[tuple[int, ...], dict[int, list[int]]] = {}
        self._n_ending = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[WindowSpec]:
        return iter(self._held)

    def __getitem__(self, window: WindowSpec) -> WindowClass:
        return self._held[window]

    def get(self, window: WindowSpec) -> WindowClass | None:
        return self._held.get(window)

    def values(self) -> ValuesView[WindowClass]:
        return self._held.values()

    @property
    def n_numbers(self) -> int:
        """The number of class numbers, free ones included."""
        return len(self._held) + len(self._free)

    @property
    def any_ends(self) -> bool:
        """Whether rows ever leave some window."""
        return self._n_ending > 0

    @property
    def by_width(self) -> list[WindowClass]:
        """The classes of windows without a row count, the narrowest first."""
        return self._by_width

    def add(self, window: WindowSpec, end: int) -> WindowClass:
        """Add a class; it begins with the rows of the next narrower window, or with position `end`."""
        number = self._free.pop() if self._free else len(self._held)
        at = bisect_right(self._by_width, window.width_us, key=_width)
        found = self._held[window] = WindowClass(number, window, self._by_width[at - 1].oldest if at else end)
        self._n_ending += window.ends
        if window.kind is WindowKind.ROWS:
            insort(self._counts.setdefault(window.partition, {}).setdefault(window.width_us, []), window.rows)
        elif not window.is_stream:
            self._by_width.insert(at, found)
        return found

    def remove(self, held: WindowClass) -> None:
        """Remove a class without legs."""
        window = held.window
        del self._held[window]
        self._free.append(held.number)
        self._n_ending -= window.ends
        if window.kind is WindowKind.ROWS:
            widths = self._counts[window.partition]
            counts = widths[window.width_us]
            del counts[bisect_left(counts, window.rows)]
            if not counts:
                del widths[window.width_us]
            if not widths:
                del self._counts[window.partition]
        elif not window.is_stream:
            at = bisect_left(self._by_width, window.width_us, key=_width)
            while self._by_width[at] is not held:
                at += 1
            del self._by_width[at]

    def reach_back(self, width_us: int, oldest: int) -> None:
        """Extend the windows of this width and wider ones back to position `oldest`."""
        for at in range(bisect_left(self._by_width, width_us, key=_width), len(self._by_width)):
            if self._by_width[at].oldest <= oldest:
                break
            self._by_width[at].oldest = oldest

    def outermost(self) -> Iterator[WindowSpec]:
        """Windows with a row count that together hold the rows of all windows with a row count."""
        for partition, widths in self._counts.items():
            most = 0
            for width_us in sorted(widths, reverse=True) if len(widths) > 1 else widths:
                rows = widths[width_us][-1]
                if rows > most:
                    most = rows
                    yield WindowSpec.newest(rows, partition, width_us)

    def check(self) -> None:
        """Assert all invariants."""
        held = self._held.values()
        assert sorted([each.number for each in held] + self._free) == list(range(self.n_numbers)), "numbers are used once"
        assert self._n_ending == sum(window.ends for window in self._held), "windows that end are counted"
        kinds = (WindowKind.NONE, WindowKind.ROWS)
        assert {id(each) for each in self._by_width} == {id(each) for each in held if each.window.kind not in kinds}
        pairs = list(zip(self._by_width, self._by_width[1:]))
        assert all(_width(one) <= _width(other) for one, other in pairs), "classes are in the order of their widths"
        assert all(one.oldest >= other.oldest for one, other in pairs), "a window reaches back as far as a narrower one"
        counted = sorted((w.partition, w.width_us, w.rows) for w in self._held if w.kind is WindowKind.ROWS)
        found = [(keys, width, n) for keys, widths in self._counts.items() for width, counts in widths.items() for n in counts]
        assert sorted(found) == counted, "windows that count rows are known"
