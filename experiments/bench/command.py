"""The command `eddy bench CASE... [options]`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.bench.base.lines import Line, show
from experiments.bench.base.options import Options
from experiments.bench.cases import CASES, PART_OF

_HELP = f"""Measure the engine against bare kernels, the paper's per-tuple filter and the targets of the design.

Cases: {", ".join(CASES)}; none means all.
"""


def bench(
    cases: Annotated[list[str] | None, typer.Argument(metavar="CASE", show_default=False)] = None,
    queries: Annotated[str | None, typer.Option(help="Numbers of queries, such as 128,1024; at most 65536.")] = None,
    rows: Annotated[int, typer.Option(min=64, max=1 << 20, help="Rows a push, where the case does not vary them.")] = 4096,
    seconds: Annotated[float, typer.Option(min=0.0, help="Seconds of measuring a line.")] = 1.0,
    peers: Annotated[bool, typer.Option("--peers", help="Also time polars, numpy and plain Python on the same work.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    names = cases or list(CASES)
    for name in names:
        if name not in CASES:
            raise typer.BadParameter(f'there is no case "{name}"; cases are {", ".join(CASES)}', param_hint="CASE")
    names = [name for name in names if PART_OF.get(name) not in names]
    options = Options(_counts(queries), rows, seconds, peers)
    planned = [(name, step) for name in names for step in CASES[name](options)]
    lines: list[Line] = []
    # the bar goes to the terminal only; piped output holds nothing but results
    console = Console(stderr=not sys.stdout.isatty())
    columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(planned))
        for name, step in planned:
            progress.update(task, description=name)
            found = step()
            if as_json:
                for line in found:
                    print(line.as_json(), flush=True)
            lines += found
            progress.advance(task)
    if not as_json:
        show(Console(width=None if sys.stdout.isatty() else 160), lines)


def _counts(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a list of numbers such as 128,1024', param_hint="--queries") from None
    if not all(1 <= n <= 65_536 for n in found):
        raise typer.BadParameter("numbers of queries lie in 1..65536", param_hint="--queries")
    return found


def main() -> None:
    app = typer.Typer(add_completion=False, help=_HELP)
    app.command(help=_HELP)(bench)
    app(prog_name="eddy bench")
