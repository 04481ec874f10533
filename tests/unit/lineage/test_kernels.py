"""Kernels have few arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: What declares a kernel, or a helper that is put into kernels.
DECLARES = re.compile(r"(?:numba\.)?(?:kernel|inline|called|jit|njit)\b")
MOST_ARGUMENTS = 16
REASON = re.compile(r"\s*# (\d+) arguments: \S")


def kernels_of(text: str) -> Iterator[tuple[str, int, int | None]]:
    """The kernels of a module: name, number of arguments, and the number that the line above explains."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and any(DECLARES.match(ast.unparse(each)) for each in node.decorator_list):
            arguments = node.args
            n = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
            found = REASON.match(lines[node.decorator_list[0].lineno - 2])
            yield node.name, n, int(found[1]) if found else None


def wrong_kernels(text: str) -> list[str]:
    return [name for name, n, explained in kernels_of(text) if (n if n > MOST_ARGUMENTS else None) != explained]


def test_no_kernel_has_many_arguments_without_a_reason_beside_it() -> None:
    packages = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    texts = {path: path.read_text() for package in packages for path in package.rglob("*.py")}
    modules = {path: text for path, text in texts.items() if "kernel" in text or "jit" in text}
    assert sum(len(list(kernels_of(text))) for text in modules.values()) > 250, "the kernels are found"
    assert {str(path): wrong for path, text in modules.items() if (wrong := wrong_kernels(text))} == {}


@pytest.mark.parametrize("decorator", ["@kernel('void(int64)')", "@inline", "@called", "@numba.njit(cache=True)"])
@pytest.mark.parametrize(
    ("n", "above", "wrong"),
    [
        (16, "", False),
        (17, "", True),
        (17, "# 17 arguments: each is a buffer of its own", False),
        (17, "# 18 arguments: each is a buffer of its own", True),
        (17, "# 17 arguments:", True),
        (3, "# 17 arguments: each is a buffer of its own", True),
    ],
)
def test_many_arguments_and_reasons_that_do_not_fit_are_found(decorator: str, n: int, above: str, wrong: bool) -> None:
    names = ", ".join(f"a{k}" for k in range(n))
    text = f"x = 1\n{above}\n{decorator}\ndef walk({names}):\n    pass\n"
    assert wrong_kernels(text) == (["walk"] if wrong else [])
