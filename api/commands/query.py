"""The commands `eddy query`: add, list, show, watch, replace, pause, resume and cancel queries."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from api.commands.common import Json, Token, Url, as_bytes, as_params, command, connect, print_json, print_table, shown, tell
from eddy import EddyError

app = typer.Typer(name="query", help="Queries: what is asked of the streams.", no_args_is_help=True)

_Sql = Annotated[str, typer.Argument(metavar="SQL", help="Its text.")]
_MaybeSql = Annotated[str | None, typer.Argument(metavar="[SQL]", help="Its text.", show_default=False)]
_File = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Many at once: .ndjson, .csv with name and sql, or .sql.")
]
_Query = Annotated[str, typer.Argument(metavar="QUERY", help="Its name.")]
_Queries = Annotated[list[str], typer.Argument(metavar="QUERY...", help="Their names.")]
_MaybeQueries = Annotated[list[str] | None, typer.Argument(metavar="[QUERY]...", help="Their names.", show_default=False)]
_Name = Annotated[str | None, typer.Option(help="What it is called.")]
_Param = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A value for :name; repeatable.")]
_Tag = Annotated[list[str] | None, typer.Option(help="A tag; repeatable.")]
_OneTag = Annotated[str | None, typer.Option(help="All with this tag.")]
_History = Annotated[str, typer.Option(help="new, or window: also rows that are stored.")]
_Emit = Annotated[str, typer.Option(help="Changes net over a commit, or over each event.")]
_Expiry = Annotated[str | None, typer.Option(help="How ends are found.")]
_Partial = Annotated[bool, typer.Option("--partial", help="Of a file: start those that can be, and name the others.")]
_State = Annotated[str | None, typer.Option(help="running or paused.")]
_Stream = Annotated[str | None, typer.Option(help="Those that read this stream.")]
_Sort = Annotated[str, typer.Option(help="id, name or -own_bytes.")]
_Limit = Annotated[int | None, typer.Option(min=1, help="How many at most.")]
_Rows = Annotated[int, typer.Option(min=0, help="Rows of the answer that are shown.")]
_Plan = Annotated[bool, typer.Option("--plan", help="Also how it is run.")]
_Since = Annotated[str, typer.Option(help="snapshot: the answer first; now; or the number of a commit.")]
_Follow = Annotated[bool, typer.Option("--follow/--no-follow", help="Go on as changes happen, until Ctrl-C.")]

#: Seconds for which `watch` waits for a service that has gone.
WATCH_PATIENCE = 600.0


@app.command()
@command
def add(
    sql: _MaybeSql = None, file: _File = None, name: _Name = None, param: _Param = None, tag: _Tag = None,
    history: _History = "new", emit: _Emit = "commit", expiry: _Expiry = None, partial: _Partial = False,
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """Start a query, or all those of a file.

    eddy query add "SELECT sensor, temp FROM readings [RANGE 5 MINUTES] WHERE temp > 30" --name hot
    """
    if (sql is None) == (file is None):
        raise typer.BadParameter("give the text of a query, or --file", param_hint="SQL")
    if file is not None:
        if name is not None or param:
            raise typer.BadParameter("the queries of a file have names and parameters of their own", param_hint="--file")
        _add_file(file, {"tags": tag or [], "history": history, "emit": emit, "expiry": expiry}, partial, url, token, json)
        return
    assert sql is not None
    with connect(url, token) as client:
        made = client.submit(
            sql, name=name, params=as_params(param or []), tags=tag or [], history=history, emit=emit, expiry=expiry
        )
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print(f'query "{made.name}" ({made.kind}): {", ".join(made.columns)}')


def _add_file(
    file: Path, options: dict[str, Any], partial: bool, url: str | None, token: str | None, json: bool
) -> None:  # fmt: skip
    from api.commands.progress import progress
    from queries.rules import PART, read_rules

    rules = read_rules(file, options)
    started: list[str] = []
    refused: list[tuple[int, EddyError]] = []
    with connect(url, token) as client, progress("queries", len(rules)) as advance:
        for first in range(0, len(rules), PART):
            part = rules[first : first + PART]
            try:
                outcome = client.submit_many([rule.definition for rule in part], partial=partial)
            except EddyError as error:
                line = part[getattr(error, "item", 0)].line
                error.fact = f"{file.name}, line {line}: {error.fact}"
                if started:
                    error.detail = f"the {len(started)} queries of earlier parts run"
                raise
            for rule, found in zip(part, outcome):
                if isinstance(found, EddyError):
                    refused.append((rule.line, found))
                else:
                    started.append(found)
            advance(len(part))
    if json:
        errors = [{"line": line, "code": refusal.code, "detail": refusal.fact} for line, refusal in refused]
        print_json({"started": len(started), "refused": len(refused), "errors": errors})
    else:
        print(f"{len(started)} queries started" + (f", {len(refused)} refused" if refused else ""))
        for line, refusal in refused:
            refusal.fact = f"{file.name}, line {line}: {refusal.fact}"
            tell(refusal)
    if refused:
        raise typer.Exit(1)


@app.command("list")
@command
def list_(
    state: _State = None, stream: _Stream = None, tag: _OneTag = None, sort: _Sort = "id", limit: _Limit = None,
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """The queries there are."""
    with connect(url, token) as client:
        found = client.find_queries(state=state, stream=stream, tag=tag, sort=sort, limit=limit)
    if json:
        print_json([dataclasses.asdict(query) for query in found])
        return
    rows = [(q.name, q.state, q.kind, q.tags, as_bytes(q.own_bytes), " ".join(q.sql.split())) for q in found]
    print_table(["name", "state", "kind", "tags", "own", "sql"], rows, right=["own"])


@app.command()
@command
def show(
    query: _Query, rows: _Rows = 20, plan: _Plan = False, url: Url = None, token: Token = None, json: Json = False
) -> None:  # fmt: skip
    """A query, its counters and its answer now."""
    with connect(url, token) as client:
        found, counters, answer = client.query(query), client.stats(query), client.answer(query)
        plan_ = client.explain(query) if plan else None
    shown_rows = answer.slice(0, rows).to_pylist()
    seq, time = int(answer.schema.metadata[b"seq"]), answer.schema.metadata[b"time"].decode()
    if json:
        facts = dataclasses.asdict(found) | {"stats": counters}
        facts["answer"] = {"time": time or None, "seq": seq, "n_rows": answer.num_rows, "rows": shown_rows}
        print_json(facts | ({"plan": plan_} if plan else {}))
        return
    print(f"{found.name}: {found.kind}, {found.state}, update pattern {found.update_pattern}")
    print(f"  {' '.join(found.sql.split())}")
    for name, value in (("params", found.params), ("tags", found.tags), ("whole since", found.complete_since)):
        if value:
            print(f"  {name}: {shown(value)}")
    print(f"  {counters['results']} results so far, {as_bytes(counters['own_bytes'])} of its own, {counters['errors']} errors")
    more = f", the first {rows} of them" if answer.num_rows > rows else ""
    print(f"answer at commit {seq}" + (f", {time}" if time else "") + f": {answer.num_rows} rows{more}")
    if shown_rows:
        print_table(answer.column_names, [list(row.values()) for row in shown_rows])
    if plan_ is not None:
        from json import dumps

        print(dumps(plan_, indent=2, default=str))


@app.command()
@command
def watch(
    queries: _MaybeQueries = None, tag: _Tag = None, since: _Since = "snapshot", follow: _Follow = True,
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """Changes of answers as they happen: + came, - left. Goes on after breaks and restarts of the service."""
    if not queries and not tag:
        raise typer.BadParameter("give a query or --tag", param_hint="QUERY")
    if since not in ("snapshot", "now") and not since.isdigit():
        raise typer.BadParameter(f'"{since}" is not snapshot, now or the number of a commit', param_hint="--since")
    colours = sys.stdout.isatty()
    many = bool(tag) or len(queries or []) > 1
    with connect(url, token, WATCH_PATIENCE) as client:
        start = int(since) if since.isdigit() else since
        for change in client.changes(queries or [], start, tags=tag or [], follow=follow):
            if json:
                # the names and their order are the service's
                facts = {"query": change.query, "seq": change.seq, "time": change.time, "sign": change.sign, "row": change.row}
                print_json(facts)
                continue
            row = "  ".join(f"{name}={shown(value)}" for name, value in change.row.items())
            line = f"{'+' if change.sign > 0 else '-'} {shown(change.time)}  {change.query + '  ' if many else ''}{row}"
            print(typer.style(line, fg="green" if change.sign > 0 else "red") if colours else line, flush=True)


@app.command()
@command
def replace(
    query: _Query, sql: _Sql, param: _Param = None, url: Url = None, token: Token = None, json: Json = False
) -> None:  # fmt: skip
    """Give a running query another text with the same columns."""
    with connect(url, token) as client:
        made = client.replace(query, sql, params=as_params(param or []))
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print(f'query "{made.name}" ({made.kind}): {", ".join(made.columns)}')


@app.command()
@command
def pause(queries: _Queries, url: Url = None, token: Token = None) -> None:
    """Stop queries for now; they keep their last answer."""
    with connect(url, token) as client:
        for query in queries:
            client.pause(query)


@app.command()
@command
def resume(queries: _Queries, url: Url = None, token: Token = None) -> None:
    """Start paused queries as if they were new."""
    with connect(url, token) as client:
        for query in queries:
            client.resume(query)


@app.command()
@command
def cancel(
    queries: _MaybeQueries = None, tag: _OneTag = None, url: Url = None, token: Token = None, json: Json = False
) -> None:  # fmt: skip
    """Stop queries for good: those that are named, or all with a tag."""
    if not queries and tag is None:
        raise typer.BadParameter("give a query or --tag", param_hint="QUERY")
    with connect(url, token) as client:
        n_cancelled = sum(client.cancel(query) for query in queries or [])
        if tag is not None:
            n_cancelled += client.cancel(tag=tag)
    if json:
        print_json({"cancelled": n_cancelled})
    elif tag is not None:
        print(f"{n_cancelled} queries cancelled")
