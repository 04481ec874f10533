"""The commands `eddy token`: add, list and drop tokens. They edit the file; a running server sees it within seconds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from api.commands.common import Json, command

app = typer.Typer(name="token", help="Tokens of a service: who may do what.", no_args_is_help=True)

_File = Annotated[Path, typer.Option("--token-file", envvar="EDDY_TOKEN_FILE", help="The file that the server is given.")]
_Name = Annotated[str, typer.Argument(help="What the token is called.")]
_Role = Annotated[str, typer.Option("--role", help="device (rows only), reader, writer or admin.")]
_Input = Annotated[str | None, typer.Option("--input", metavar="MERGE/INPUT", help="A device: rows of this input alone.")]


@app.command()
@command
def add(name: _Name, token_file: _File, role: _Role, input_: _Input = None, json: Json = False) -> None:
    """Make a token and print its secret, once: only its hash is kept."""
    from api.edge.access_tokens import add_token

    secret = add_token(token_file, name, role, input_)
    if json:
        print(orjson.dumps({"name": name, "role": role, "input": input_, "secret": secret}).decode())
        return
    print(secret)
    print("This is shown once. Send it as `Authorization: Bearer ...`, or set EDDY_TOKEN.", file=sys.stderr)


@app.command("list")
@command
def list_(token_file: _File, json: Json = False) -> None:
    """The tokens, without their secrets."""
    from api.edge.access_tokens import read_tokens

    tokens = read_tokens(token_file).values()
    if json:
        facts = [{"name": token.name, "role": token.role, "input": token.input, "created": token.created} for token in tokens]
        print(orjson.dumps(facts).decode())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "role", "input", "created")
    for token in tokens:
        table.add_row(token.name, token.role, token.input or "", token.created)
    Console().print(table)


@app.command()
@command
def drop(name: _Name, token_file: _File) -> None:
    """Make a token worthless."""
    from api.edge.access_tokens import drop_token

    drop_token(token_file, name)
