"""Hints after a push of a file: the meaning of its counts, and likely mistakes with times.

A hint says nothing that is not known to be so. Known are the counts of the receipts and, if the token may ask, how the stream and
the clock of its timeline stood before the push and after it; where the cause can only be guessed, the words say so.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from eddy import EddyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eddy.client import Client, MergeReceipt, Receipt

#: So far behind its timeline a stream is pointed out, whatever its queries ask for.
FAR = timedelta(hours=1)

_UNITS = [(name, timedelta(**{f"{name}s": 1})) for name in ("day", "hour", "minute", "second", "millisecond", "microsecond")]


class Totals(NamedTuple):
    """The sum of the receipts of a push."""

    accepted: int = 0
    late: int = 0
    expired: int = 0
    rejected: int = 0

    def plus(self, receipt: Receipt) -> Totals:
        return Totals(
            self.accepted + receipt.accepted, self.late + receipt.late, self.expired + receipt.expired,
            self.rejected + receipt.rejected,
        )  # fmt: skip


class InputTotals(NamedTuple):
    """The sum of the receipts of a push for one input of a merged stream, and the last word of the merge."""

    accepted: int = 0
    duplicate: int = 0
    settled: int = 0
    rejected: int = 0
    settled_before: datetime | None = None
    leader: str | None = None

    def plus(self, receipt: MergeReceipt) -> InputTotals:
        return InputTotals(
            self.accepted + receipt.accepted, self.duplicate + receipt.duplicate, self.settled + receipt.settled,
            self.rejected + receipt.rejected, receipt.settled_before, receipt.leader,
        )  # fmt: skip


class StreamState(NamedTuple):
    """A stream at one moment: its rows, its newest time, and the clock of its timeline; None where there is no time yet."""

    rows: int
    newest: datetime | None
    timeline: str
    clock: datetime | None
    #: whether late rows are dropped, and whether it waits for stragglers
    drops: bool = False
    waits: bool = False


def stream_state(client: Client, stream: str) -> StreamState | None:
    """Return the state of a stream; None if there is none, or if the token, such as a device's, may not read it."""
    try:
        found = client.stream(stream)
        totals = client.totals()
    except EddyError:
        return None
    counts, clock = totals["streams"].get(found.name), totals["timelines"].get(found.timeline)
    if counts is None or found.time is None:
        return None
    return StreamState(
        counts["rows"], _time(counts["newest"]), found.timeline, _time(clock), found.late == "drop", found.lateness_us > 0
    )


def hints(stream: str, totals: Totals, before: StreamState | None, after: StreamState | None) -> Iterator[str]:
    """Yield the lines that a push prints below its counts."""
    n_rows = totals.accepted + (totals.late if after is not None and after.drops else 0)
    behind = _behind(after)
    if totals.expired and totals.expired == totals.accepted:
        yield "expired: no query will ever show any of these rows: each was older than every window when it came"
    elif totals.expired:
        yield f"expired: {totals.expired} of these rows were older than every window when they came, and no query will show them"
    if behind is not None and after is not None and (behind > FAR or totals.expired):
        yield (
            f'note: the newest row of stream "{stream}" is of {_said(after.newest)}, but its timeline "{after.timeline}" is at '
            f"{_said(after.clock)}: windows shorter than {_length(behind)} hold none of its rows"
        )
        yield "hint: a stream of another time needs a clock of its own: give a new stream --timeline NAME"
    if not totals.late:
        return
    done = "were dropped" if after is not None and after.drops else "count at that time, their columns as they are"
    if before is not None and after is not None and _looks_repeated(n_rows, totals, before, after):
        yield (
            f"late: {totals.late} of {n_rows} rows are older than the newest row the stream had, of {_said(before.newest)}, "
            f"which is also the newest time of these; they {done}"
        )
        yield (
            "hint: it looks as if this file was pushed before; if these are other rows of the same time, push all files as one, "
            "sorted by time, or make the stream with --lateness"
        )
        return
    yield f"late: {totals.late} rows are older than the time that the stream had reached when they came; they {done}"
    yield "hint: --sort orders a file by time before it is pushed; a stream made with --lateness waits for stragglers"


def _behind(now: StreamState | None) -> timedelta | None:
    """Return how far a stream is behind its timeline; None if it is not, or if unknown."""
    if now is None or now.newest is None or now.clock is None or now.newest >= now.clock:
        return None
    return now.clock - now.newest


def _looks_repeated(n_rows: int, totals: Totals, before: StreamState, after: StreamState) -> bool:
    """Return whether a file looks pushed twice: the newest time did not change, and the stream had as many rows before. Without
    lateness, a row that is not late is no older than the newest."""
    same = before.newest is not None and before.newest == after.newest and not after.waits
    return same and totals.late < n_rows <= before.rows


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _said(time: datetime | None) -> str:
    return "no time" if time is None else time.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


def _length(span: timedelta) -> str:
    """Return a length of time in its largest unit, rounded down.

    >>> _length(timedelta(days=4000, hours=2)), _length(timedelta(seconds=119)), _length(timedelta(microseconds=20))
    ('4000 days', '119 seconds', '20 microseconds')
    """
    word, unit = next((entry for entry in _UNITS if span >= 2 * entry[1] or span == entry[1]), _UNITS[-1])
    count = span // unit
    return f"{count} {word}{'' if count == 1 else 's'}"
