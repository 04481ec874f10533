"""The command `eddy generate`, in a process of its own (`python -m pipeline.generate_command`, started by `api/cli.py`).

    eddy generate sensors | stocks | gateways     rows that are made up
    eddy generate from FILE...                    rows of files, cleaned: the same layout, so one verb

A mistake is a few lines on stderr and exit code 1. Ctrl-C cancels the jobs, leaves nothing behind and ends with 130.
"""

from __future__ import annotations

import json as jsons
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lineage.csv_form import types_of
from lineage.errors import EddyError
from pipeline.chunks import CHUNK_ROWS, write_chunks
from pipeline.dataset import Dataset
from pipeline.draft import Draft
from pipeline.gateways import GATEWAY, Gateways, gateway_rows
from pipeline.ingest import IngestedStream, ingest
from pipeline.progress import Report, reporting
from pipeline.sensors import READINGS, SensorNetwork, readings
from pipeline.session import LOCAL, run_apart, spark_session
from pipeline.source_files import naive_times, sources_of
from pipeline.stocks import STREAMS, Market, stream_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A Monday.
_START = "2024-03-04"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write; it must not exist.", show_default=False)]
_Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same rows.")]
_Start = Annotated[str, typer.Option(help="The first moment, UTC, such as 2024-03-04 or 2024-03-04T08:00.")]
_Master = Annotated[str, typer.Option(help="Where Spark runs; any other than local must see DIR at the same place.")]
_Json = Annotated[bool, typer.Option("--json", help="For machines.")]

app = typer.Typer(
    help="Write a dataset: streams as parquet files in the order of time, to replay and to experiment with.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def sensors(
    out: _Out,
    sensors: Annotated[int, typer.Option(min=1, help="Sensors, ten to a room.")] = 5000,
    hours: Annotated[float, typer.Option(min=0, help="How long.")] = 24.0,
    every: Annotated[float, typer.Option(min=0.001, help="Seconds of an epoch: a sensor reports once in it.")] = 30.0,
    start: _Start = _START, seed: _Seed = 0, master: _Master = LOCAL, json: _Json = False,
) -> None:  # fmt: skip
    """A building of sensors: temperature, humidity, light, voltage, sound, motion; losses, drift, failures, outliers.

    eddy generate sensors --sensors 5000 --hours 24 --out data/sensors
    """
    parameters = {"sensors": sensors, "hours": hours, "every": every, "start": start}

    def write(draft: Draft, spark: SparkSession, building: SensorNetwork) -> Dataset:
        write_chunks(readings(spark, building, seed, CHUNK_ROWS), draft, "readings", READINGS)
        return draft.publish({"readings": READINGS}, {})

    with _told(json):
        epoch_us = round(every * 1e6)
        building = SensorNetwork(sensors, int(hours * 3_600_000_000 / epoch_us), epoch_us, _us(start))
        draft = Draft(out, kind="sensors", seed=seed, parameters=parameters)
        dataset = _run(draft, master, building.n_chunks(CHUNK_ROWS), lambda draft, spark: write(draft, spark, building))
        _show(dataset, json)


@app.command()
def gateways(
    out: _Out,
    gateways: Annotated[int, typer.Option(min=1, max=16, help="Gateways; each gives all readings, in its own way.")] = 3,
    sensors: Annotated[int, typer.Option(min=1, help="Sensors, ten to a room.")] = 500,
    hours: Annotated[float, typer.Option(min=0, help="How long.")] = 24.0,
    every: Annotated[float, typer.Option(min=0.001, help="Seconds of an epoch: a sensor reports once in it.")] = 30.0,
    disorder: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that come late.")] = 0.2,
    delay: Annotated[float, typer.Option(min=0.001, help="How late at most, seconds.")] = 5.0,
    duplicates: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that come twice.")] = 0.1,
    missing: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that never come.")] = 0.05,
    stalls: Annotated[float, typer.Option(min=0, max=1, help="Share of stretches, as long as ten stalls, that have one.")] = 0.05,
    stall: Annotated[float, typer.Option(min=0.001, help="How long a gateway is silent then, seconds.")] = 60.0,
    start: _Start = _START, seed: _Seed = 0, master: _Master = LOCAL, json: _Json = False,
) -> None:  # fmt: skip
    """Gateways that send the readings of one building: in other order, twice, not at all, or after a while of silence.

    The readings are those of `eddy generate sensors` with the same seed and options.

    eddy generate gateways --gateways 3 --sensors 500 --hours 2 --out data/gateways
    """
    parameters: dict[str, Any] = {
        "gateways": gateways, "sensors": sensors, "hours": hours, "every": every, "disorder": disorder, "delay": delay,
        "duplicates": duplicates, "missing": missing, "stalls": stalls, "stall": stall, "start": start,
    }  # fmt: skip

    def write(draft: Draft, spark: SparkSession, building: SensorNetwork, given_by: Gateways) -> Dataset:
        names = given_by.names()
        for number, name in enumerate(names, 1):
            write_chunks(gateway_rows(spark, building, given_by, seed, number, CHUNK_ROWS), draft, name, GATEWAY)
        return draft.publish(dict.fromkeys(names, GATEWAY), {})

    with _told(json):
        epoch_us = round(every * 1e6)
        building = SensorNetwork(sensors, int(hours * 3_600_000_000 / epoch_us), epoch_us, _us(start))
        given_by = Gateways(gateways, disorder, round(delay * 1e6), duplicates, missing, stalls, round(stall * 1e6))
        draft = Draft(out, kind="gateways", seed=seed, parameters=parameters | {"merge": given_by.merge()})
        n_tasks = 2 * gateways * building.n_chunks(CHUNK_ROWS)
        _show(_run(draft, master, n_tasks, lambda draft, spark: write(draft, spark, building, given_by)), json)


@app.command()
def stocks(
    out: _Out,
    symbols: Annotated[int, typer.Option(min=1, help="Symbols; a few have most of the rows.")] = 500,
    days: Annotated[int, typer.Option(min=1, help="Trading days.")] = 1,
    trades: Annotated[int, typer.Option(min=0, help="Trades a day.")] = 1_000_000,
    quotes: Annotated[int, typer.Option(min=0, help="Quotes a day.")] = 2_000_000,
    articles: Annotated[int, typer.Option(min=0, help="Articles a day; each names one to three symbols, a row each.")] = 20_000,
    start: _Start = _START, seed: _Seed = 0, master: _Master = LOCAL, json: _Json = False,
) -> None:  # fmt: skip
    """A market: trades, quotes, and articles that name symbols; opening bursts, hot symbols.

    eddy generate stocks --symbols 500 --days 5 --out data/stocks
    """
    parameters = {
        "symbols": symbols, "days": days, "trades": trades, "quotes": quotes, "articles": articles, "start": start,
    }  # fmt: skip

    def write(draft: Draft, spark: SparkSession, market: Market) -> Dataset:
        for stream, declared in STREAMS.items():
            write_chunks(stream_rows(spark, market, seed, stream, CHUNK_ROWS), draft, stream, declared)
        return draft.publish(STREAMS, {})

    with _told(json):
        market = Market(symbols, days, trades, quotes, articles, _us(start))
        draft = Draft(out, kind="stocks", seed=seed, parameters=parameters)
        n_tasks = sum(max(1, market.n_chunks(stream, CHUNK_ROWS)) for stream in STREAMS)
        _show(_run(draft, master, n_tasks, lambda draft, spark: write(draft, spark, market)), json)


@app.command(name="from")
def from_(
    files: Annotated[list[str], typer.Argument(metavar="[NAME=]FILE...", help="Files of rows, with the name of their stream.")],
    out: _Out,
    time: Annotated[
        str | None,
        typer.Option(help="The column with the time of a row, if more than one could be. CSV: ts=date,time makes one."),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="'name:type ...' of one stream, else by what the values look like.")] = None,
    format_: Annotated[str | None, typer.Option("--format", help="csv, intel or parquet, if the name does not say.")] = None,
    types: Annotated[list[str] | None, typer.Option(metavar="COLUMN=TYPE,..", help="Types not to be guessed.")] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="CSV: what stands between cells; tab for a tab.", show_default="by the first lines")
    ] = None,
    names: Annotated[str | None, typer.Option(metavar="A,B,..", help="CSV: the columns' names, if no line has them.")] = None,
    rename: Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="CSV: another name for a column.")] = None,
    null: Annotated[list[str] | None, typer.Option(metavar="WORD", help="CSV: a word that is NULL in every column.")] = None,
    time_format: Annotated[str | None, typer.Option(metavar="FORMAT", help="CSV: how times are written: '%d/%m/%Y'.")] = None,
    tz: Annotated[str | None, typer.Option(metavar="ZONE", help="CSV: whose times they are that have no zone.")] = None,
    decimal: Annotated[str | None, typer.Option(help="CSV: a comma, if that stands before decimals.")] = None,
    master: _Master = LOCAL, json: _Json = False,
) -> None:  # fmt: skip
    """A dataset from files: CSV, parquet, or the Intel lab's text. Rows that do not fit are put aside with the reason.

    eddy generate from trades=2024-03-*.csv news=articles.parquet --time ts --out data/real
    """
    with _told(json):
        made = time if time is not None and "=" in time else None
        told = {
            "delimiter": delimiter, "names": names, "rename": rename, "null": null, "time": made, "time_format": time_format,
            "tz": tz, "decimal": decimal,
        }  # fmt: skip
        csv = {name: value for name, value in told.items() if value}
        sources = sources_of(files, format_, csv)
        for source in sources if not json else ():
            if naive := naive_times(source):
                words = f'times of {", ".join(naive)} of stream "{source.stream}" do not say their zone'
                print(f"note: {words} and are taken as UTC; --tz Europe/Berlin says whose they are", file=sys.stderr)
        declared = _declared(columns)
        typed = types_of(types or [])
        if declared is not None and len(sources) > 1:
            raise typer.BadParameter("several streams cannot have the same columns", param_hint="--columns")
        parameters = {"files": files, "time": time, "columns": declared, "format": format_, "csv": csv, "types": typed}

        def write(draft: Draft, spark: SparkSession) -> Dataset:
            done = {source.stream: ingest(spark, draft, source, declared, time, types=typed) for source in sources}
            return draft.publish({name: one.declared for name, one in done.items()}, _reasons(done))

        _show(_run(Draft(out, kind="ingested", seed=None, parameters=parameters), master, 0, write), json)


def _declared(columns: str | None) -> dict[str, str] | None:
    if columns is None:
        return None
    found: dict[str, str] = {}
    for word in columns.replace(",", " ").split():
        name, _, kind = word.partition(":")
        if not name or not kind or name in found:
            raise typer.BadParameter(f'"{word}" is not name:type, such as temp:float', param_hint="--columns")
        found[name] = kind
    return found


def _reasons(done: Mapping[str, IngestedStream]) -> dict[str, int]:
    """How many rows were refused, by stream and reason."""
    return {f"{stream}: {reason}": n for stream, one in done.items() for reason, n in one.quarantined.items()}


def _us(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a time such as 2024-03-04T08:00', param_hint="--start") from None
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)


def _run(draft: Draft, master: str, n_tasks: int, write: Callable[[Draft, SparkSession], Dataset]) -> Dataset:
    """Do the work of a command in a draft, with a session and a bar."""
    with ExitStack() as stack:
        stack.enter_context(draft)
        report = stack.enter_context(_bar(n_tasks))
        spark = stack.enter_context(spark_session(draft.scratch, master=master))

        def work() -> Dataset:
            with reporting(spark, report, n_tasks):
                return write(draft, spark)

        return run_apart(spark, work)


@contextmanager
def _told(json: bool) -> Iterator[None]:
    """Print mistakes in a few lines, Ctrl-C in one."""
    try:
        yield
    except EddyError as error:
        lines = [f"error: {error.fact}" + (f": {error.detail}" if error.detail else "")]
        print("\n".join(lines + ([f"hint: {error.hint}"] if error.hint else [])), file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        if not json:
            print("stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None


@contextmanager
def _bar(n_tasks: int) -> Iterator[Report]:
    """One bar for all jobs, on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=n_tasks or None)
        yield lambda done, total: bar.update(task, description="parts", completed=done, total=total or None)


def _show(dataset: Dataset, json: bool) -> None:
    """Print the written dataset."""
    if json:
        facts: dict[str, Any] = {"path": str(dataset.path), "kind": dataset.kind, "seed": dataset.seed}
        facts["streams"] = {
            name: {"rows": s.rows, "first": _iso(s.first), "last": _iso(s.last), "chunks": len(s.chunks)}
            for name, s in dataset.streams.items()
        }
        print(jsons.dumps({**facts, "quarantined": dict(dataset.quarantined)}), flush=True)
        return
    for name, stream in dataset.streams.items():
        span = f", {_iso(stream.first)} to {_iso(stream.last)}" if stream.rows else ""
        print(f"{stream.rows:>14,}  {name}{span}")
    for reason, n_rows in dataset.quarantined.items():
        print(f"{n_rows:>14,}  put aside, {reason}")
    print(f"dataset {dataset.path}")
    if dataset.quarantined:
        print(f"what was put aside: {dataset.path / 'quarantine'}")


def _iso(us: int | None) -> str | None:
    return None if us is None else (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def main() -> None:
    # what the bridge to Java logs when Ctrl-C comes in the middle of a call is nobody's business
    logging.getLogger().addHandler(logging.NullHandler())
    app(prog_name="eddy generate")


if __name__ == "__main__":
    main()
