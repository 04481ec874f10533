"""The command `eddy replay`, in a process of its own (`python -m pipeline.replay_command`, started by `api/cli.py`).

A mistake is a few lines on stderr and exit code 1. Ctrl-C says where the replay stopped and whether the next one goes on from
there, and ends with 130.
"""

from __future__ import annotations

import json as jsons
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lineage.errors import EddyError
from pipeline.dataset import Dataset
from pipeline.pace import ReplayPace, parse_speed
from pipeline.replay import ReplayProgress, Target, replay
from pipeline.session import spark_session
from pipeline.stream_job import MAX_ROWS, run_job

if TYPE_CHECKING:
    from eddy import Engine

#: Seconds between two looks of the bar at the progress.
_LOOK = 0.1
#: Queries that are shown at the end, those with most results.
_SHOWN = 10

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A dataset, as eddy generate writes it.")]
_Speed = Annotated[str, typer.Option(help="60x plays a minute in a second; max does not wait.")]
_Queries = Annotated[
    Path | None, typer.Option(help="Queries to start first: .ndjson, .csv or .sql.", exists=True, dir_okay=False)
]
_Timeline = Annotated[str, typer.Option(help="The timeline of the streams.")]
_Merge = Annotated[
    str | None, typer.Option("--merge", metavar="NAME", help="Make the streams the inputs of one merged stream of this name.")
]
_Url = Annotated[
    str | None, typer.Option(envvar="EDDY_URL", help="A service that takes the rows; without it an engine in this process does.")
]
_Token = Annotated[str | None, typer.Option(envvar="EDDY_TOKEN", help="The secret that `eddy token add` printed.")]
_Json = Annotated[bool, typer.Option("--json", help="For machines.")]
_Master = Annotated[
    str | None, typer.Option(help="Spark's master, such as local[2]: replay as a job of Spark's Structured Streaming.")
]
_Out = Annotated[Path | None, typer.Option(help="With --master: where results, state and checkpoint go.")]
_MaxRows = Annotated[int, typer.Option(min=1, help="With --master: rows of a micro-batch, at most.")]


def command(
    folder: _Folder, speed: _Speed = "max", queries: _Queries = None, timeline: _Timeline = "replay",
    merge: _Merge = None, url: _Url = None, token: _Token = None, json: _Json = False,
    master: _Master = None, out: _Out = None, max_rows: _MaxRows = MAX_ROWS,
) -> None:  # fmt: skip
    """Replay a dataset: its streams merged in the order of event time, at a steady pace against the clock.

    Into a service or as a job of Spark it goes on where the one before stopped, whatever stopped it, without loss or duplicate.

    eddy replay data/sensors --speed 60x --url http://127.0.0.1:8000
    eddy replay data/gateways --merge floor --url http://127.0.0.1:8000
    """
    if master is not None or out is not None:
        _as_job(folder, speed, queries, url, merge, json, master, out, max_rows)
        return
    progress = ReplayProgress(0)
    try:
        pace = ReplayPace(parse_speed(speed))
        dataset = Dataset.open(folder)
        rules = [] if queries is None else _named(queries)
        if url is None:
            results = _into_engine(dataset, pace, timeline, merge, rules, progress)
        else:
            results = {}
            _into_service(dataset, pace, timeline, merge, rules, progress, url, token, quiet=json)
    except EddyError as error:
        print(f"error: {error}", file=sys.stderr)
        if progress.rows:
            print(_stopped(progress, url is not None), file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print(_stopped(progress, url is not None), file=sys.stderr)
        raise typer.Exit(130) from None
    if json:
        print(jsons.dumps(_facts(progress, results)), flush=True)
    else:
        _show(progress, results)


def _named(file: Path) -> list[dict[str, Any]]:
    """Return the queries of a file; one without a name gets a name from its place."""
    from queries.rules import read_rules

    rules = read_rules(file, {"tags": ["replay"]})
    return [{"name": f"replay_{n}"} | rule.definition for n, rule in enumerate(rules, 1)]


def _as_job(
    folder: Path, speed: str, queries: Path | None, url: str | None, merge: str | None, json: bool, master: str | None,
    out: Path | None, max_rows: int,
) -> None:  # fmt: skip
    """Replay as a job of Spark, with one file of results for each micro-batch."""
    try:
        if master is None or out is None or queries is None or url is not None or merge is not None:
            raise EddyError("a job of Spark takes --master, --queries and --out, no --url and no --merge", code="bad_option")
        parse_speed(speed)
        dataset, rules = Dataset.open(folder), _named(queries)
        with spark_session(out.absolute() / "spark", master=master) as spark:
            n_batches = run_job(spark, dataset, rules, out, speed=speed, max_rows=max_rows)
    except EddyError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("stopped; the same command goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    results = out / "results"
    print(jsons.dumps({"batches": n_batches, "results": str(results)}) if json else f"{n_batches} batches, results in {results}")


def _into_engine(
    dataset: Dataset, pace: ReplayPace, timeline: str, merge: str | None, rules: list[dict[str, Any]], progress: ReplayProgress
) -> dict[str, int]:  # fmt: skip
    """Replay into an engine of this process; return the number of results of each query."""
    from eddy import Engine
    from pipeline.merge_targets import EngineMergeTarget
    from pipeline.targets import EngineTarget

    with Engine() as engine:
        target: Target
        span_us = None
        if merge is None:
            target = EngineTarget(engine, dataset, timeline)
        else:
            target = EngineMergeTarget(engine, dataset, merge, timeline)
            span_us = target.options.span_us
        for rule in rules:
            _submit(engine, rule)
        _run(dataset, target, pace, progress, span_us)
        return {name: entry["results"] for name, entry in engine.stats()["queries"].items()}


def _submit(engine: Engine, rule: dict[str, Any]) -> None:
    try:
        engine.submit(**rule)
    except EddyError as error:
        error.fact = f'query "{rule["name"]}": {error.fact}'
        raise


def _into_service(
    dataset: Dataset, pace: ReplayPace, timeline: str, merge: str | None, rules: list[dict[str, Any]], progress: ReplayProgress,
    url: str, token: str | None, *, quiet: bool,
) -> None:  # fmt: skip
    from eddy.client import Client
    from pipeline.merge_targets import ServiceMergeTarget
    from pipeline.targets import ServiceTarget, submit_missing

    with Client(url, token=token) as client:
        target: Target
        span_us = None
        if merge is None:
            target = ServiceTarget(client, dataset, timeline)
        else:
            target = ServiceMergeTarget(client, dataset, merge, timeline)
            span_us = target.options.span_us
        started = submit_missing(client, rules)
        if started and not quiet:
            print(f"{started} queries started", file=sys.stderr)
        _run(dataset, target, pace, progress, span_us)


def _run(dataset: Dataset, target: Target, pace: ReplayPace, progress: ReplayProgress, span_us: int | None) -> None:
    with _bar(pace) as tell:
        replay(dataset, target, pace, span_us=span_us, tell=tell, progress=progress)


@contextmanager
def _bar(pace: ReplayPace) -> Iterator[Callable[[ReplayProgress], None]]:
    """A bar with rows, rows/s, the time in the data and lag, on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.fields[words]}")
    columns = (TextColumn("replay"), BarColumn(), MofNCompleteColumn(), words, TimeElapsedColumn())
    looked = 0.0
    # on stderr: what is printed on stdout stays clean
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replay", total=None, words="")

        def tell(progress: ReplayProgress) -> None:
            nonlocal looked
            now = time.monotonic()
            if now - looked > _LOOK:
                looked = now
                lag = "" if pace.speed is None else f"  lag {progress.lag:.1f} s"
                words = f"{progress.rows_per_s:,.0f} rows/s  {_time(progress)}{lag}"
                bar.update(task, completed=progress.before + progress.rows, total=progress.total, words=words)

        yield tell


def _time(progress: ReplayProgress) -> str:
    from lineage.times import to_iso

    return "" if progress.time_us is None else to_iso(progress.time_us)


def _stopped(progress: ReplayProgress, kept: bool) -> str:
    done = progress.before + progress.rows
    at = f", {_time(progress)}" if progress.time_us is not None else ""
    after = (
        "the same command goes on from there" if kept else "an engine in this process keeps nothing: the next replay begins anew"
    )
    return f"stopped after row {done:,} of {progress.total:,}{at}; {after}"


def _facts(progress: ReplayProgress, results: dict[str, int]) -> dict[str, Any]:
    return {
        "rows": progress.rows,
        "before": progress.before,
        "total": progress.total,
        "late": progress.late,
        "seconds": round(progress.seconds, 6),
        "rows_per_s": round(progress.rows_per_s, 1),
        "max_lag": round(progress.max_lag, 6),
        "time": _time(progress) or None,
        "position": progress.position,
        "results": results,
    }


def _show(progress: ReplayProgress, results: dict[str, int]) -> None:
    before = f" after {progress.before:,} before" if progress.before else ""
    late = f", {progress.late:,} late" if progress.late else ""
    lag = f", at most {progress.max_lag:.2f} s behind" if progress.max_lag else ""
    print(f"{progress.rows:,} rows{before} in {progress.seconds:.2f} s: {progress.rows_per_s:,.0f} rows/s{late}{lag}")
    if not results:
        return
    print(f"{sum(results.values()):,} results of {len(results):,} queries")
    for name in sorted(results, key=lambda name: -results[name])[:_SHOWN]:
        print(f"{results[name]:>14,}  {name}")
    if len(results) > _SHOWN:
        print(f"{'...':>14}  and {len(results) - _SHOWN:,} more")


def main() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    app(prog_name="eddy replay")


if __name__ == "__main__":
    main()
