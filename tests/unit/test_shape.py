"""How large files, folders and classes may be, and that a class name has one meaning.

Read from the syntax trees, like the arrows of `tests/unit/test_layering.py`.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

PRODUCT = ("lineage", "filters", "stems", "windows", "lmerge", "queries", "eddy", "storage", "api", "pipeline", "experiments")
#: Packages whose folders a newcomer reads as a list.
FOLDED = ("eddy", "windows", "api", "filters")

MAX_LINES = 600
MAX_MODULES = 20
MAX_METHODS = 30
MAX_ATTRIBUTES = 25

#: Classes that may be larger, and why.
LARGE = {
    "Engine": "a method for every call of the library",
    "Query": "the way queries run: a handle and a run in one, until the two are parted",
    "SharedGroup": "the way queries run",
    "Limits": "a field for every bound that `GET /v1/limits` shows",
}

#: Class names with several homes: the client's classes, and models of bodies, are wire forms of the engine's and the hub's.
WIRE_FORMS = {
    "Change": ["eddy/base/description.py", "eddy/client/facts.py"],
    "Changes": ["eddy/changes.py", "eddy/client/changes.py"],
    "End": ["api/core/hub.py", "eddy/client/following.py"],
    "Gap": ["api/core/hub.py", "eddy/client/following.py"],
    "MergeReceipt": ["api/wire/models.py", "eddy/base/description.py", "eddy/client/facts.py"],
    "Query": ["eddy/client/facts.py", "eddy/query.py"],
    "Receipt": ["api/wire/models.py", "eddy/base/description.py", "eddy/client/facts.py"],
    "TableReceipt": ["api/wire/models.py", "eddy/base/description.py", "eddy/client/facts.py"],
}


def long_files(texts: dict[str, str]) -> list[str]:
    return [f"{file}: {n} lines" for file, text in texts.items() if (n := len(text.splitlines())) > MAX_LINES]


def full_folders(files: Iterable[str]) -> list[str]:
    """Folders with too many modules directly in them."""
    modules = Counter(file.rpartition("/")[0] for file in files if not file.endswith("/__init__.py"))
    return [f"{folder}: {n} modules" for folder, n in modules.items() if n > MAX_MODULES]


def large_classes(source: str) -> list[str]:
    """Classes with too many methods or attributes; an attribute is a field, or is set on `self`."""
    return [
        f"{one.name}: {one.n_methods} methods, {one.n_attributes} attributes"
        for one in _classes(source)
        if one.name not in LARGE and (one.n_methods > MAX_METHODS or one.n_attributes > MAX_ATTRIBUTES)
    ]


def names_with_two_meanings(texts: dict[str, str]) -> list[str]:
    """Class names that stand in several places, but for those that are each other's wire form."""
    return [
        f"{name}: {', '.join(files)}"
        for name, files in sorted(homes(texts).items())
        if len(files) > 1 and files != WIRE_FORMS.get(name)
    ]


def homes(texts: dict[str, str]) -> dict[str, list[str]]:
    """The files of every class name, once for each class."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(texts):
        for node in _classes(texts[file]):
            found[node.name].append(file)
    return found


class Class(NamedTuple):
    """A class of a file."""

    name: str
    n_methods: int
    n_attributes: int


@cache
def _classes(source: str) -> list[Class]:
    return [_class(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def _class(node: ast.ClassDef) -> Class:
    methods = [part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    fields = {part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)}
    fields |= {
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
    }
    return Class(node.name, len(methods), len(fields))


def python_texts(folders: Iterable[str]) -> dict[str, str]:
    """The text of every Python file in some folders, by path."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def test_no_file_is_too_long() -> None:
    texts = python_texts([*PRODUCT, "tests"])
    assert {"eddy/engine.py", "tests/unit/test_shape.py"} <= texts.keys()
    found = long_files(texts)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", FOLDED)
def test_no_folder_has_too_many_modules(package: str) -> None:
    assert full_folders(python_texts([package])) == []


def test_no_class_is_too_large() -> None:
    found = [f"{file} {fault}" for file, text in python_texts(PRODUCT).items() for fault in large_classes(text)]
    assert not found, "\n".join(found)


def test_a_class_name_has_one_meaning() -> None:
    found = names_with_two_meanings(python_texts(PRODUCT))
    assert not found, "\n".join(found)


def test_every_exception_is_needed() -> None:
    found = homes(python_texts(PRODUCT))
    assert {name: found[name] for name in WIRE_FORMS} == WIRE_FORMS
    assert found.keys() >= LARGE.keys()


def test_a_long_file_is_found() -> None:
    assert long_files({"eddy/a.py": "x\n" * 600, "eddy/b.py": "x\n" * 601}) == ["eddy/b.py: 601 lines"]


def test_a_full_folder_is_found() -> None:
    files = [f"eddy/a/m{n}.py" for n in range(20)]
    assert full_folders([*files, "eddy/a/__init__.py", "eddy/a/b/m.py"]) == []
    assert full_folders([*files, "eddy/a/one_more.py"]) == ["eddy/a: 21 modules"]


@pytest.mark.parametrize(
    ("name", "n_methods", "n_fields", "n_set", "large"),
    [
        ("Small", 30, 12, 13, False),
        ("Busy", 31, 0, 0, True),
        ("Heavy", 1, 13, 13, True),
        ("Fields", 1, 26, 0, True),
        ("Engine", 60, 0, 30, False),
    ],
)
def test_a_large_class_is_found(name: str, n_methods: int, n_fields: int, n_set: int, large: bool) -> None:
    lines = [f"class {name}:"]
    lines += [f"    field{n}: int" for n in range(n_fields)]
    lines += [f"    def method{n}(self): ..." for n in range(n_methods - 1)]
    lines += ["    def set(self):", *(f"        self.value{n} = other.value{n}.x = 1" for n in range(n_set)), "        pass"]
    assert bool(large_classes("\n".join(lines))) == large


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({"eddy/a.py": "class Part: ...", "api/b.py": "class Parts: ..."}, []),
        ({"eddy/a.py": "class Part: ...", "api/b.py": "class Part: ..."}, ["Part: api/b.py, eddy/a.py"]),
        ({"eddy/a.py": "class Part: ...\ndef f():\n    class Part: ..."}, ["Part: eddy/a.py, eddy/a.py"]),
        ({"eddy/base/description.py": "class Change: ...", "eddy/client/facts.py": "class Change: ..."}, []),
        (
            {"eddy/query.py": "class Change: ...", "eddy/client/facts.py": "class Change: ..."},
            ["Change: eddy/client/facts.py, eddy/query.py"],
        ),
    ],
)
def test_a_name_with_two_meanings_is_found(texts: dict[str, str], found: list[str]) -> None:
    assert names_with_two_meanings(texts) == found
