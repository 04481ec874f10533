"""Which rows of a stream's store somebody needs: windows now, and the log, as far back as it reaches.

    needed by a window      those alive in it now
    needed by the log       those that came in a logged commit, and those that the windows by which it is read held when it begins
    needed by `keep`        those of the time that is kept for later queries

All others are forgotten (`settle`). A stream that nobody can ask the log about (`Source.logged`) is settled as if that began now.
"""

from __future__ import annotations

from eddy.streams.source import Source
from windows.spec import FOREVER, WindowKind


def row_bytes(source: Source) -> int:
    """What a row takes in the store at most, by the columns and the filters there are."""
    beside = len(source.store.columns) + 16 + 4 * len(source.modules.bank.filters) + len(source.modules.by_text)
    return source.store.row_bytes() + beside


def n_only_logged(source: Source, gone: int, log_clock: int) -> int:
    """How many rows would be kept for the log alone if it began after commit `gone`, at a clock."""
    without = _oldest(source, FOREVER, source.timeline.now, source.store.end)
    return without - _oldest(source, gone, log_clock, max(source.log.first, source.end_at(gone)))


def n_needless(source: Source, last: int) -> int:
    """How many of the rows held nobody needs without a log; `last` is the last commit."""
    return max(0, _oldest(source, last, source.timeline.now, source.store.end) - source.store.watermark)


def settle(source: Source, log_clock: int, n_spared: int = 0) -> None:
    """Forget the rows that nobody needs, with a log that begins at a clock; but for the newest `n_spared`."""
    gone = source.log.gone
    if not source.log.read:
        gone, log_clock = FOREVER, source.timeline.now
    watermark = _oldest(source, gone, log_clock, source.log.first)
    store, own_ends = source.store, source.own_ends
    for window in (*source.placement.classes, *(window for window, _ in source.log.paused)):
        column = source.row_ends.find(window.rows, window.partition) if window.kind is WindowKind.ROWS else None
        if column is not None:
            column.move_to(source.log.first)
    if own_ends is not None:
        own_ends.move_to(log_clock, gone)
        for held in source.placement.classes.values():
            held.oldest = max(held.oldest, watermark)
    if n_spared and source.placement.classes:
        watermark = min(watermark, max(store.watermark, store.end - n_spared))
    if watermark > store.watermark:
        if own_ends is not None:
            own_ends.forget(watermark)
        source.row_ends.forget(watermark)
        store.forget(watermark)
        source.stems.forget()
    source.modules.bank.release_ids(store.watermark)
    source.compact_dictionaries()
    source.log.row_bytes = row_bytes(source)


def _oldest(source: Source, gone: int, log_clock: int, logged_from: int) -> int:
    """The oldest position that is needed, with a log that begins after a commit, at a clock and a position."""
    store, watermark, now = source.store, logged_from, source.timeline.now
    paused = [window for window, _ in source.log.paused]
    read = [held.window for held in source.placement.classes.values() if held.n_legs or held.n_logged]
    for clock, windows in ((now, source.placement.classes), (log_clock, (*read, *paused))):
        widths = [window.width_us for window in windows if not window.is_stream and window.kind is not WindowKind.ROWS]
        if widths:
            watermark = min(watermark, store.first_after(clock - max(widths)))
    watermark = min([watermark, *(held.oldest for held in source.placement.classes.values() if held.window.ends_by_clock)])
    for window in (*source.placement.classes, *paused):
        # the log is read as it was: rows that came in a logged commit displace, in an earlier one they had not come
        column = source.row_ends.find(window.rows, window.partition) if window.kind is WindowKind.ROWS else None
        if column is not None:
            alive = max(column.alive_from(logged_from), store.first_after(log_clock - window.width_us))
            watermark = min(watermark, alive)
    if source.stored.keep_us:
        watermark = min(watermark, store.first_after(now - source.stored.keep_us))
    if source.own_ends is not None:
        # whoever was over when the log begins is out for everybody
        watermark = max(watermark, source.own_ends.alive_from(log_clock, gone))
    return watermark
