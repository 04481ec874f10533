"""The commands `eddy table`: add, list and drop tables."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from api.commands.common import Json, Name, Names, Token, Url, as_columns, columns_text, command, connect, print_json, print_table

app = typer.Typer(name="table", help="Tables: relations that streams are joined with.", no_args_is_help=True)

_Columns = Annotated[list[str], typer.Argument(metavar="COLUMN:TYPE...", help="int, float, string, bool or timestamp.")]
_Key = Annotated[list[str], typer.Option(help="A column of the key; repeatable.")]
_Retroactive = Annotated[bool, typer.Option("--retroactive", help="Changes also touch results that stand.")]


@app.command()
@command
def add(
    name: Name, columns: _Columns, key: _Key, retroactive: _Retroactive = False,
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """Declare a table; an equal one that is there already is fine.

    eddy table add sensors sensor:int room:string --key sensor
    """
    with connect(url, token) as client:
        made = client.create_table(name, as_columns(columns), key=key, retroactive=retroactive)
    if json:
        print_json(dataclasses.asdict(made))
    else:
        print(f'table "{made.name}": {columns_text(made.columns)}')


@app.command("list")
@command
def list_(url: Url = None, token: Token = None, json: Json = False) -> None:
    """The tables there are."""
    with connect(url, token) as client:
        found = list(client.tables.values())
    if json:
        print_json([dataclasses.asdict(table) for table in found])
        return
    rows = [(table.name, table.key, table.retroactive, columns_text(table.columns)) for table in found]
    print_table(["name", "key", "retroactive", "columns"], rows)


@app.command()
@command
def drop(names: Names, url: Url = None, token: Token = None) -> None:
    """Remove tables that no query reads."""
    with connect(url, token) as client:
        for name in names:
            client.table(name)  # a stream of that name is not meant
            client.drop(name)
