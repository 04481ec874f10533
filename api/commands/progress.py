"""A progress bar on a terminal; elsewhere nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ReportProgress(Protocol):
    """Callback of a progress bar: the amount done since the last call, and its rows."""

    def __call__(self, done: float, rows: int = 0) -> None: ...


@contextmanager
def progress(what: str, total: float | None, *, in_bytes: bool = False) -> Iterator[ReportProgress]:
    """Show a progress bar, with rows a second if rows are reported; `total` is None if unknown."""
    if not sys.stderr.isatty():
        yield lambda done, rows=0: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    # on stderr: what is printed on stdout stays clean
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), count, TextColumn("{task.fields[rate]}"), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    began, n_rows = time.monotonic(), 0

    def advance(done: float, rows: int = 0) -> None:
        nonlocal n_rows
        n_rows += rows
        rate = f"{n_rows / max(time.monotonic() - began, 1e-3):,.0f} rows/s" if n_rows else ""
        bar.update(task, advance=done, rate=rate)

    with bar:
        task = bar.add_task(what, total=total, rate="")
        yield advance
