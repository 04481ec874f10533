"""The commands `eddy token`: add, list and drop tokens. They edit the file; a running server sees it within seconds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from eddy import EddyError

app = typer.Typer(name="token", help="Tokens of a service: who may do what.", no_args_is_help=True)

_File = Annotated[Path, typer.Option("--token-file", envvar="EDDY_TOKEN_FILE", help="The file that the server is given.")]
_Name = Annotated[str, typer.Argument(help="What the token is called.")]
_Role = Annotated[str, typer.Option("--role", help="device (rows only), reader, writer or admin.")]
_Input = Annotated[str | None, typer.Option("--input", metavar="MERGE/INPUT", help="A device: rows of this input alone.")]
_Json = Annotated[bool, typer.Option("--json", help="For machines.")]


def _fail(error: EddyError) -> typer.Exit:
    print(f"error: {error.fact}" + (f": {error.detail}" if error.detail else ""), file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)
    return typer.Exit(1)


@app.command()
def add(name: _Name, token_file: _File, role: _Role, input_: _Input = None, json: _Json = False) -> None:
    """Make a token and print its secret, once: only its hash is kept."""
    from api.edge.access_tokens import add_token

    try:
        secret = add_token(token_file, name, role, input_)
    except EddyError as error:
        raise _fail(error) from None
    if json:
        print(orjson.dumps({"name": name, "role": role, "input": input_, "secret": secret}).decode())
        return
    print(secret)
    print("This is shown once. Send it as `Authorization: Bearer ...`, or set EDDY_TOKEN.", file=sys.stderr)


@app.command("list")
def list_(token_file: _File, json: _Json = False) -> None:
    """The tokens, without their secrets."""
    from api.edge.access_tokens import read_tokens

    try:
        tokens = read_tokens(token_file).values()
    except EddyError as error:
        raise _fail(error) from None
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
def drop(name: _Name, token_file: _File) -> None:
    """Make a token worthless."""
    from api.edge.access_tokens import drop_token

    try:
        drop_token(token_file, name)
    except EddyError as error:
        raise _fail(error) from None
