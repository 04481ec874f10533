"""A bar for work that takes a while, on a terminal; elsewhere nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: float | None, *, in_bytes: bool = False) -> Iterator[Callable[[float], None]]:
    """Gives what tells how much more is done; `total` is None if nobody knows."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    # on stderr: what is printed on stdout stays clean
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
