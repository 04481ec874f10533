"""The command line `eddy`: its commands and their entry point.

Commands that need packages the service may not import (benchmarks, experiments, pipeline) become another program of the same
Python: the process stays the same, so whoever stops us stops it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from api.commands import merge, push, query, serve, stream, table, token, top, trace

#: The folder that holds our packages, for programs started from elsewhere.
_ROOT = Path(__file__).resolve().parent.parent

app = typer.Typer(
    name="eddy",
    help="Thousands of continuous SQL queries over live streams, sharing one engine.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"eddy {version('eddy-cq')}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="The version, and nothing else.")
]


@app.callback()
def _eddy(show_version: _Version = False) -> None:
    """The options of no command."""


app.command()(serve.serve)
for _noun in (stream, merge, table, query, token):
    app.add_typer(_noun.app)
app.command()(push.push)
app.command()(trace.trace)
app.command()(top.top)


def _program(name: str, module: str, usage: str, text: str) -> None:
    """Add a command that becomes another program; that program knows its own options, --help among them."""
    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

    @app.command(name, help=text, add_help_option=False, context_settings=settings, options_metavar=usage)
    def start(context: typer.Context) -> None:
        become(module, context.args)


_program(
    "bench", "experiments.bench", "[CASE]... [OPTIONS]",
    "Measure the engine: against bare kernels, the paper's filter, and its targets. `eddy bench --help` lists the cases.",
)  # fmt: skip
_program(
    "experiment", "experiments", "list|run|compare|report [OPTIONS]",
    "Rerun the papers' experiments: `eddy experiment run --all --quick` makes a report in a few minutes.",
)  # fmt: skip
_program(
    "generate", "pipeline.generate_command", "sensors|stocks|gateways|from [OPTIONS]",
    "Write a dataset of sensors, stocks, gateways or files, with Spark. `eddy generate sensors --help` lists the options.",
)  # fmt: skip
_program(
    "replay", "pipeline.replay_command", "DIR [OPTIONS]",
    "Replay a dataset into a service or an engine, at its own pace or faster. `eddy replay --help` lists the options.",
)  # fmt: skip


def become(module: str, args: Sequence[str]) -> NoReturn:
    """Replace this process by one of our modules, with arguments."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
    os.execve(sys.executable, [sys.executable, "-m", module, *args], {**os.environ, "PYTHONPATH": path})


def main() -> None:
    app()


if __name__ == "__main__":
    main()
