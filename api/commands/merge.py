"""The commands `eddy merge`: add, list, show and drop merged streams, attach and detach their inputs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from api.commands.common import Json, Token, Url, as_columns, columns_text, command, connect, print_json, print_table
from api.commands.stream import facts as stream_facts
from eddy import MergedStream

app = typer.Typer(name="merge", help="Merged streams: one stream out of several inputs.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(help="Its name.")]
_Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Their names.")]
_Input = Annotated[str, typer.Argument(metavar="INPUT", help="The input.")]
_Columns = Annotated[
    list[str], typer.Argument(metavar="COLUMN:TYPE...", help="int, float, string, bool, timestamp, timestamp\\[s|ms|us|ns].")
]
_Time = Annotated[str, typer.Option(help="The column with the time of a row.")]
_Inputs = Annotated[list[str], typer.Option("--input", help="Who gives rows; repeatable, ties go to the first.")]
_Unique = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="What makes rows of one time one event; repeatable, * for all columns."),
]
_Missing = Annotated[str, typer.Option(help="Rows that the deciding input lacks: leader leaves them out, any keeps them.")]
_Key = Annotated[list[str] | None, typer.Option(help="A column by which rows replace each other; repeatable.")]
_End = Annotated[str | None, typer.Option(help="The column with the end of a row's life.")]
_Case = Annotated[str, typer.Option(help="R0 to R4; auto: by the other options.")]
_Policy = Annotated[str, typer.Option(help="When a row enters: stable, first, leader, fraction:0.5, ..")]
_Order = Annotated[str | None, typer.Option(help="The order of each input: strict, ordered or any.")]
_Lateness = Annotated[float, typer.Option(help="How far behind its newest row an input may be, milliseconds.")]
_Lag = Annotated[float, typer.Option(help="How far the merge's point stays behind its inputs', milliseconds.")]
_Timeline = Annotated[str, typer.Option(help="The timeline whose clock it shares.")]
_Keep = Annotated[float | None, typer.Option(help="How long rows are kept for later queries, milliseconds.")]
_Since = Annotated[
    str | None, typer.Option(help="It has all rows from this time on, ISO 8601.", show_default="the largest time given so far")
]


def facts(merge: MergedStream) -> dict[str, Any]:
    """Return a merged stream as JSON, as the service shows it."""
    found = stream_facts(merge)
    lag, unique = found.pop("lag_us"), found.pop("unique")
    return found | {"kind": merge.kind, "lag": lag / 1000, "unique": False if unique is None else unique}


@app.command()
@command
def add(
    name: _Name, columns: _Columns, time: _Time, inputs: _Inputs, unique: _Unique = None, missing: _Missing = "leader",
    key: _Key = None, end: _End = None, case: _Case = "auto", policy: _Policy = "stable", order: _Order = None,
    lateness: _Lateness = 0.0, lag: _Lag = 0.0, timeline: _Timeline = "main", keep: _Keep = None,
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """Declare a merged stream; an equal one that is there already is fine.

    eddy merge add floor sensor:int temp:float ts:timestamp --time ts --input gw1 --input gw2 --unique sensor --missing any
    """
    with connect(url, token) as client:
        made = client.create_merge(
            name, as_columns(columns), time=time, inputs=inputs, unique=unique == ["*"] or unique or False, missing=missing,
            key=key, end=end, case=case, policy=policy, order=order, lateness=lateness, lag=lag, timeline=timeline, keep=keep,
        )  # fmt: skip
    if json:
        print_json(facts(made))
    else:
        print(f'merge "{made.name}" of {", ".join(made.inputs)}, case {made.case}: {columns_text(made.columns)}')


@app.command("list")
@command
def list_(url: Url = None, token: Token = None, json: Json = False) -> None:
    """The merged streams there are."""
    with connect(url, token) as client:
        found = list(client.merges.values())
    if json:
        print_json([facts(merge) for merge in found])
        return
    rows = [(one.name, one.inputs, one.case, one.policy, one.missing, columns_text(one.columns)) for one in found]
    print_table(["name", "inputs", "case", "policy", "missing", "columns"], rows)


@app.command()
@command
def show(name: _Name, url: Url = None, token: Token = None, json: Json = False) -> None:
    """One merged stream: its point, its leader, and what each input gave."""
    with connect(url, token) as client:
        state = client.merge_stats(name)
    if json:
        print_json(state)
        return
    print(f"settled before: {state['stable'] or 'nothing'}; leader: {state['leader'] or 'none'}; case {state['case']}")
    gaps = state["gaps"]["count"]
    print(f"{state['live_events']} live events, {state['bytes']} bytes, {state['chatter']} adjusts given out, {gaps} gaps")
    columns = ["joined", "rows", "duplicates", "settled", "contradictions", "stable", "leads"]
    rows = [(of, *(f"{one[c]:.0%}" if c == "leads" else one[c] for c in columns)) for of, one in state["inputs"].items()]
    print_table(["input", *columns], rows, right=["rows", "duplicates", "settled", "contradictions", "leads"])
    for one in state["contradictions"]:
        event = ", ".join(f"{name}={value}" for name, value in one["event"].items())
        place = f"{one['column']} of {event} at {one['time']}"
        print(f"contradiction: {place}: {one['kept']}, {one['input']} says {one['given']}")


@app.command()
@command
def drop(names: _Names, url: Url = None, token: Token = None) -> None:
    """Remove merged streams that no query reads."""
    with connect(url, token) as client:
        for name in names:
            client.merge_stats(name)  # a plain stream or a table of that name is not meant
            client.drop(name)


@app.command()
@command
def attach(name: _Name, input_: _Input, since: _Since = None, url: Url = None, token: Token = None) -> None:
    """Attach an input, which has a say once the merge is where it begins."""
    with connect(url, token) as client:
        client.attach(name, input_, since)


@app.command()
@command
def detach(name: _Name, input_: _Input, url: Url = None, token: Token = None) -> None:
    """Detach an input: it has no say any more."""
    with connect(url, token) as client:
        client.detach(name, input_)
