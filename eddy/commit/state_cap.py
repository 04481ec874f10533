"""The cap on an engine's memory: rows or queries that would pass it are refused, and nothing else happens.

Accounting walks over pages, so it is not done with every push: between two accounts each push is charged what its rows can
cost at most, and only when the charges have used up what was left the bytes are counted again.

The log is given up where that makes enough room: rows that are in no window are then forgotten at once. Where it does not,
nothing is given up: a refusal changes nothing.

    bytes held <= account + charges since         so   a push is admitted only if account + charges + its own <= limit

Each operator that a stream feeds is charged what it may keep of a row. The combinations that a join of operators makes, like the
matches of any join, can be more than the rows they are made of: those, and what readers of running queries keep, are seen with
the next account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eddy.base.checking import changing
from eddy.operators.templates import Templates
from eddy.streams.source import Source
from lineage.errors import EddyError, LimitError

#: Bytes that an engine may hold unless told otherwise.
STATE_BYTES = 8 << 30
#: What a row costs in an index at most, on average: its link, its place in a half-full table that has just doubled.
_INDEX_BYTES = 72
#: What a row is charged while there is plenty.
_ROW_BYTES = 1024
#: What a query is charged.
_QUERY_BYTES = 4096


def check_state_bytes(limit: int) -> None:
    """Raise unless a limit of bytes is a whole number in its range."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1 << 20:
        raise EddyError(f"state_bytes is {limit!r}", code="bad_option", hint="a whole number from 2**20 on")


class StateCap:
    """The bytes held by the sources and operators of one engine, against a limit.

    `sources` gives the sources, `forget` frees rows that no window needs, which is at least `spare` bytes.
    """

    def __init__(
        self, limit: int, sources: Callable[[], Iterable[Source]], templates: Templates, spare: Callable[[], int],
        forget: Callable[[], None],
    ) -> None:  # fmt: skip
        self.limit = limit
        self._sources = sources
        self._templates = templates
        self._spare = spare
        self._forget = forget
        #: what may be taken before the bytes are counted again
        self._left = 0

    def set_limit(self, limit: int) -> None:
        """Hold the engine to another limit from the next charge on."""
        self.limit, self._left = limit, 0

    def charge_rows(self, source: Source, n_rows: int) -> None:
        """Admit rows of a stream, or raise and change nothing."""
        kept = self._templates.row_bytes(source)
        cost = n_rows * (_ROW_BYTES + kept)
        if cost > self._left:
            width = (
                source.store.row_bytes()
                + 9 * len(source.store.columns)
                + 8
                + 4 * len(source.modules.bank.filters)
                + len(source.modules.by_text)
            )
            width += _INDEX_BYTES * source.stems.n_indexes + source.row_ends.row_bytes()
            width += kept + (0 if source.own_ends is None else source.own_ends.row_bytes()) + source.intake.row_bytes()
            self._charge(n_rows * width, f"{n_rows} rows of {source.name}")
        else:
            self._left -= cost

    def charge_queries(self, n: int) -> None:
        """Admit queries, or raise and change nothing."""
        self._charge(n * _QUERY_BYTES, "a query" if n == 1 else f"{n} queries")

    def _charge(self, cost: int, what: str) -> None:
        if cost > self._left:
            held = self._count()
            if cost > self._left:
                if held + cost - self._spare() > self.limit:
                    raise LimitError(
                        f"{what} would take the engine past its {self.limit:,} bytes", code="state_full",
                        detail=f"it holds {held:,}",
                        hint="advance the timeline, cancel queries with large windows, or raise Engine(state_bytes=...)",
                    )  # fmt: skip
                with changing:
                    self._forget()
                    self._count()
        self._left -= cost

    def held(self) -> int:
        """The bytes held now."""
        return self._templates.bytes + sum(sum(source.bytes().values()) for source in self._sources())

    def _count(self) -> int:
        held = self.held()
        self._left = max(0, self.limit - held)
        return held
