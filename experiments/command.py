"""The command `eddy experiment list | run | compare | report`."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from api.commands.common import command, print_json, print_table
from experiments.compare import comparison
from experiments.compare import described as described_comparison
from experiments.drawing import need_matplotlib
from experiments.experiment import Experiment, Setting, shown
from experiments.registry import EXPERIMENTS
from experiments.report import write_report
from experiments.runs import ROWS, FinishedRun, check_files, read_rows, run
from lineage.errors import EddyError, NotFoundError, did_you_mean

#: What a report may hold.
SHOWN = EXPERIMENTS | {"compare": described_comparison()}
OUT = Path("eddy-experiments")

app = typer.Typer(
    help="Rerun the papers' experiments, and judge what comes out.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[Path, typer.Option("--out", help="The folder of results, one folder an experiment.")]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Of rows, queries and policies.")]


@app.command("list")
@command
def list_(json: Json = False) -> None:
    """The experiments: what each asks, and where its paper does."""
    if json:
        print_json([described(experiment) for experiment in EXPERIMENTS.values()])
        return
    table = Table(box=None, pad_edge=False)
    for name in ("name", "question", "figure"):
        table.add_column(name, overflow="fold")
    for experiment in EXPERIMENTS.values():
        needs = f"; reads {', '.join(experiment.files)} (--data)" if experiment.files else ""
        table.add_row(experiment.name, Text(experiment.question), Text(experiment.figure + needs))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def described(experiment: Experiment) -> dict[str, Any]:
    """An experiment for machines."""
    return {
        "name": experiment.name,
        "question": experiment.question,
        "figure": experiment.figure,
        "expected": experiment.expected,
        "parameters": [asdict(parameter) for parameter in experiment.parameters],
        "columns": dict(experiment.columns),
        "by": experiment.by,
        "files": list(experiment.files),
    }


@app.command("run")
@command
def run_(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", show_default=False, help="Which ones.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All of them; those that read real data only with --data.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and queries: minutes for all of them.")] = False,
    data: Annotated[Path | None, typer.Option(help="A folder of real data, for those that read it.")] = None,
    out: Out = OUT,
    seed: Seed = 1,
    json: Json = False,
    attended: Annotated[bool, typer.Option("--attended", hidden=True)] = False,
) -> None:
    """Run experiments: a CSV, a picture and a verdict each, and a report of all.

    Exit code 0 also when a verdict does not hold: it is a finding, not a mistake.
    """
    if attended:
        threading.Thread(target=_end_with_starter, daemon=True).start()
    setting = Setting(quick, seed, data)
    chosen = chosen_of(names or [], all_, setting)
    need_matplotlib()
    say = _Said(json)
    with say:
        for n, experiment in enumerate(chosen):
            say.finished(experiment, run(experiment, setting, out, say.progress_of(experiment, n, len(chosen))))
    report_to = write_report(out, SHOWN)
    if not json:
        print(f"report: {report_to}")


def _end_with_starter() -> None:
    """End this process at once when its input ends, because the process that started it has gone."""
    # not through sys.stdin, whose lock this thread would hold when the interpreter ends
    while os.read(0, 1):
        pass
    os._exit(1)


def chosen_of(names: list[str], all_: bool, setting: Setting) -> list[Experiment]:
    """The experiments that somebody asked for."""
    if all_ == bool(names):
        hint = f"--all, or some of {', '.join(EXPERIMENTS)}"
        raise EddyError("which experiments are to be run?", code="bad_option", hint=hint)
    if all_:
        return [one for one in EXPERIMENTS.values() if not one.files or setting.data is not None]
    for name in names:
        if name not in EXPERIMENTS:
            raise NotFoundError(
                f'there is no experiment "{name}"', code="unknown_experiment", hint=did_you_mean(name, list(EXPERIMENTS))
            )
    chosen = [EXPERIMENTS[name] for name in dict.fromkeys(names)]
    for experiment in chosen:
        check_files(experiment, setting)
    return chosen


class _Said:
    """The output of running experiments: a bar and verdicts for people, a JSON object a line for machines."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        # the bar goes to the terminal only; piped output holds nothing but results
        self._console = Console(stderr=True)
        self._out = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        off = as_json or not self._console.is_terminal
        self._bar = Progress(*columns, console=self._console, transient=True, disable=off)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def progress_of(self, experiment: Experiment, n: int, total: int) -> Any:
        def told(done: int, steps: int) -> None:
            if self._json:
                print_json({"experiment": experiment.name, "done": done, "steps": steps})
            self._bar.update(self._task, description=f"{experiment.name} ({n + 1}/{total})", completed=done, total=steps)

        return told

    def finished(self, experiment: Experiment, found: FinishedRun) -> None:
        if self._json:
            print_json({"experiment": experiment.name, "holds": found.verdict.holds, "verdict": asdict(found.verdict)})
            return
        verdict = found.verdict
        style = "green" if verdict.holds else "bold red"
        word = "holds" if verdict.holds else "does not hold"
        self._out.print(Text.assemble((experiment.name, "bold"), ": ", (word, style), f", {found.seconds:.0f} s"))
        for check in verdict.checks:
            mark = ("  ok      ", "green") if check.holds else ("  missed  ", "bold red")
            self._out.print(Text.assemble(mark, f"{check.claim}: {shown(check.value)} ({check.bar})"))
        if verdict.note:
            self._out.print(Text(f"  {verdict.note}", style="dim"))


@app.command()
@command
def compare(
    data: Annotated[Path, typer.Option(help="A dataset, as eddy generate writes it.")],
    queries: Annotated[Path, typer.Option(help="Queries: .ndjson, .csv or .sql.", exists=True, dir_okay=False)],
    policies: Annotated[str, typer.Option(help="Policies with commas between; fixed:.. stands last.")] = "auto,lottery,random",
    out: Out = OUT,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Route the rows of a dataset by several policies, and compare CPU time and visits.

    eddy experiment compare --data data/sensors --queries rules.sql --policies auto,lottery
    """
    need_matplotlib()
    chosen, _, fixed = policies.partition("fixed:")
    names = [name.strip() for name in chosen.split(",") if name.strip()] + ([f"fixed:{fixed}"] if fixed else [])
    experiment = comparison(data, queries, names, seed)
    say = _Said(json)
    with say:
        found = run(experiment, Setting(seed=seed), out, say.progress_of(experiment, 0, 1))
    rows = read_rows(out / experiment.name / ROWS)
    if json:
        print_json(rows)
        return
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    say.finished(experiment, found)
    print(f"report: {write_report(out, SHOWN)}")


@app.command()
@command
def report(out: Out = OUT) -> None:
    """Make the page of all results in a folder again: one HTML file, nothing beside it."""
    print(write_report(out, SHOWN))


def main() -> None:
    app(prog_name="eddy experiment")
