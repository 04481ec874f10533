"""`docs/papers.md` names tests that exist, one for each of its lines, and leaves out none of those written for a paper."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "papers.md"
FOLDERS = {"P/": "tests/unit/experiments/papers/", "E/": "tests/unit/eddy/"}
#: Files whose every test is about a line of the page.
WHOLE = (
    "tests/unit/experiments/papers/test_errata.py",
    "tests/unit/experiments/papers/test_lmerge_errata.py",
    "tests/unit/experiments/papers/test_lmerge_examples.py",
    "tests/unit/eddy/test_paper_examples.py",
)

_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def written_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def named(text: str) -> list[tuple[str, str]]:
    """(file, test) of all that stands between backticks as one."""
    return [(_path(file), test) for file, test in _NAMED.findall(text)]


def _path(file: str) -> str:
    for short, folder in FOLDERS.items():
        if file.startswith(short):
            return folder + file.removeprefix(short)
    return file


def lines() -> list[str]:
    """The rows of the tables, without their heads."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    heads = {k for k, line in enumerate(rows) if set(line) <= set("|-")}
    return [line for k, line in enumerate(rows) if k not in heads and k + 1 not in heads]


def test_every_line_of_the_page_has_tests_that_exist() -> None:
    assert len(lines()) > 50
    for line in lines():
        tests = named(line)
        assert tests, f"no test is named for {line}"
        for path, test in tests:
            assert test in written_in(path), f"{path} has no {test}"


def test_every_test_of_an_example_or_an_erratum_is_on_the_page() -> None:
    there = set(named(PAGE.read_text()))
    missing = [f"{path}::{test}" for path in WHOLE for test in sorted(written_in(path)) if (path, test) not in there]
    assert missing == []


def test_tests_are_told_from_other_words() -> None:
    assert named("`P/a.py::test_b` `E/c.py` `tests/unit/test_docs.py::test_e` x::test_f") == [
        ("tests/unit/experiments/papers/a.py", "test_b"),
        ("tests/unit/test_docs.py", "test_e"),
    ]
