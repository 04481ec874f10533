"""Tests lean on behaviour: how many of them reach inside only goes down.

A test that imports the module it is about is as it should be; one that replaces parts of the engine, or reads what is private,
has to change whenever the inside does. Whoever needs one more takes one away, or finds a way to see it from outside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parents[1]
PACKAGES = {"lineage", "filters", "stems", "windows", "queries", "eddy", "storage", "api", "pipeline", "experiments"}
#: What people import.
PUBLIC = ("eddy.client", "lineage.errors")
#: Names of named tuples and of `os` that begin with an underscore.
NOT_PRIVATE = {"_replace", "_asdict", "_fields", "_make", "_exit"}

#: Parts in a hundred of the test files that import more than the public names.
MOST_INSIDE = 71
MOST_REPLACED = 182
MOST_PRIVATE = 182


class Facts(NamedTuple):
    """What a file imports and which attributes it names."""

    file: str
    imported: frozenset[str]
    #: the name before the dot, empty if it is none; the name after it
    attributes: list[tuple[str, str]]


@cache
def facts() -> list[Facts]:
    """Those of every file of the tests: each is read once for all tests here, and its syntax tree let go of."""
    return [_read(path) for path in sorted(TESTS.rglob("*.py"))]


def _read(path: Path) -> Facts:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    attributes = [
        (node.value.id if isinstance(node.value, ast.Name) else "", node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute)
    ]
    return Facts(path.name, frozenset(_imported(nodes)), attributes)


def _imported(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def inside(module: str) -> bool:
    return module.split(".")[0] in PACKAGES and module != "eddy" and not module.startswith(PUBLIC)


def test_few_test_files_import_internals() -> None:
    found = [any(map(inside, one.imported)) for one in facts() if one.file.startswith("test_")]
    assert 100 * sum(found) <= MOST_INSIDE * len(found), f"{sum(found)} of {len(found)}"


def test_few_tests_replace_parts_of_the_engine() -> None:
    found = [pair for one in facts() for pair in one.attributes if pair == ("monkeypatch", "setattr")]
    assert len(found) <= MOST_REPLACED


def test_few_tests_read_what_is_private() -> None:
    found = [
        attribute
        for one in facts()
        for owner, attribute in one.attributes
        if attribute.startswith("_") and not attribute.startswith("__")
        if owner not in ("self", "cls", "monkeypatch") and attribute not in NOT_PRIVATE
    ]
    assert len(found) <= MOST_PRIVATE
