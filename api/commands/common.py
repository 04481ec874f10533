"""Shared parts of the commands that talk to a service: connection, output, errors.

A mistake is one to three lines on stderr (the fact, the place, a hint) and exit code 1; Ctrl-C ends with 130 and no words; that
a reader of our output goes away is no mistake.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from eddy import EddyError

if TYPE_CHECKING:
    from eddy.client import Client

P = ParamSpec("P")

Url = Annotated[str | None, typer.Option("--url", envvar="EDDY_URL", help="The service.", show_default="http://127.0.0.1:8000")]
Token = Annotated[str | None, typer.Option("--token", envvar="EDDY_TOKEN", help="The secret that `eddy token add` printed.")]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
Name = Annotated[str, typer.Argument(help="Its name.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Their names.")]

#: Seconds for which a command tries when the service is busy.
PATIENCE = 30.0


def connect(url: str | None, token: str | None, patience: float = PATIENCE) -> Client:
    """Return a client of the service."""
    from eddy.client import Client

    return Client(url, token=token, patience=patience)


def command(work: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that its errors are printed in a few lines."""

    @functools.wraps(work)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            work(*args, **kwargs)
            sys.stdout.flush()
        except EddyError as error:
            tell(error)
            raise typer.Exit(1) from None
        except BrokenPipeError:
            # whoever read our output has seen enough; nothing is left to be flushed at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return told


def tell(error: EddyError) -> None:
    """Print an error: the fact, the place, a hint."""
    lines = [f"error: {error.fact}" + (f": {error.detail}" if error.detail else "")]
    if place := error.place():
        lines.append(f"  at {place}")
    if error.hint:
        lines.append(f"hint: {error.hint}")
    print("\n".join(lines), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a value as JSON on one line."""
    print(json.dumps(value, default=_plain), flush=True)


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{value!r} is not JSON")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = (), title: str = "") -> None:
    """Print a table for people; into a pipe or file as lines with tabs."""
    cells = [[shown(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for line in [columns, *cells]:
            print("\t".join(text.replace("\t", " ").replace("\n", " ") for text in line))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for line in cells:
        table.add_row(*map(Text, line))
    Console().print(table)


def shown(value: Any) -> str:
    """Return a value as text for people."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "isoformat"):
        return str(_plain(value))
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return str(value)


def columns_text(columns: Any) -> str:
    """Return columns in the form that `stream add` takes."""
    return " ".join(f"{name}:{kind}" for name, kind in columns.items())


def as_columns(words: Sequence[str]) -> dict[str, str]:
    """Parse `name:type` words into columns.

    >>> as_columns(["sensor:int", "ts:timestamp[s]"])
    {'sensor': 'int', 'ts': 'timestamp[s]'}
    """
    found: dict[str, str] = {}
    for word in words:
        name, colon, kind = word.partition(":")
        if not colon or not name or not kind:
            raise typer.BadParameter(f'"{word}" is not name:type, such as temp:float', param_hint="COLUMN")
        if name in found:
            raise typer.BadParameter(f'column "{name}" is given twice', param_hint="COLUMN")
        found[name] = kind
    return found


def as_params(words: Sequence[str]) -> dict[str, Any] | None:
    """Parse `name=value` words into parameters; a value is JSON if it parses, else a text.

    >>> as_params(["low=5", "room=lab"])
    {'low': 5, 'room': 'lab'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f'"{word}" is not name=value', param_hint="--param")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        found[name] = text if isinstance(value, dict | list) else value
    return found or None


def as_bytes(n_bytes: float | None) -> str:
    """Return a number of bytes as text for people.

    >>> as_bytes(1536), as_bytes(12), as_bytes(None)
    ('1.5 kB', '12 B', '')
    """
    if n_bytes is None:
        return ""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1024 or unit == "GB":
            return f"{n_bytes:.0f} B" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    raise AssertionError("unreachable")
