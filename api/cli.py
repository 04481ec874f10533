"""The command line, `eddy`.

Commands that need packages the engine may not import (benchmarks, experiments) run them as child processes of the same
Python, with this terminal as theirs and their exit code as ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from api.commands import push, query, serve, stream, table, token, top, trace

#: The folder that holds our packages, for children started from elsewhere.
_ROOT = Path(__file__).resolve().parent.parent

app = typer.Typer(
    name="eddy",
    help="Thousands of continuous SQL queries over live streams, sharing one engine.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _eddy() -> None:
    """Keeps commands named even while there is only one."""


app.command()(serve.serve)
for _noun in (stream, table, query, token):
    app.add_typer(_noun.app)
app.command()(push.push)
app.command()(trace.trace)
app.command()(top.top)


@app.command(
    # the child knows its own options, --help among them
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    options_metavar="[CASE]... [OPTIONS]",
)
def bench(context: typer.Context) -> None:
    """Measure the engine: against bare kernels, the paper's filter, and its targets. `eddy bench --help` lists the cases."""
    raise typer.Exit(run_module("experiments.bench", context.args))


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    options_metavar="list|run|compare|report [OPTIONS]",
)
def experiment(context: typer.Context) -> None:
    """Rerun the paper's experiments: `eddy experiment run --all --quick` makes a report in a few minutes."""
    raise typer.Exit(run_module("experiments", context.args))


def run_module(module: str, args: Sequence[str]) -> int:
    """Run one of our modules as a child with our input and output; returns its exit code."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
    with subprocess.Popen([sys.executable, "-m", module, *args], env={**os.environ, "PYTHONPATH": path}) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                # the terminal has sent it to the child as well, which ends in its own way
                continue


def main() -> None:
    app()


if __name__ == "__main__":
    main()
