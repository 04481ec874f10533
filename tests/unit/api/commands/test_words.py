"""Words of the command line: help texts come out as they are written, and the version is told."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import click
import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

from api.cli import app


def commands(of: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, of
    for word, one in getattr(of, "commands", {}).items():
        yield from commands(one, f"{name} {word}")


def test_no_help_text_is_eaten_as_markup() -> None:
    found = list(commands(typer.main.get_command(app), "eddy"))
    assert len(found) > 20
    for name, command in found:
        texts = [command.help or "", *(getattr(param, "help", None) or "" for param in command.params)]
        for text in texts:
            assert Text.from_markup(text).plain == text.replace("\\[", "["), f"{name}: write \\[ for a bracket"


def test_the_units_of_times_are_in_the_help_of_stream_add() -> None:
    shown = CliRunner().invoke(app, ["stream", "add", "--help"], env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    assert shown.exit_code == 0 and "timestamp[s|ms|us|ns]" in shown.stdout


@pytest.mark.parametrize("words", [["--version"], ["--version", "stream", "list"]])
def test_the_version_is_told_without_asking_any_service(words: list[str]) -> None:
    shown = CliRunner().invoke(app, words)
    assert (shown.exit_code, shown.stdout) == (0, f"eddy {version('eddy-cq')}\n")
