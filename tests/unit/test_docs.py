"""The documents cannot rot: their programs print what they say, docstring examples hold, and they stay short.

That names and citations lead somewhere is looked at by `tests/unit/test_citations.py`.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide.md"
CONTRACT = ROOT / "docs" / "contract.md"
#: Documents with programs.
PROGRAMS = (README, GUIDE, CONTRACT)
ARCHITECTURE = ROOT / "docs" / "architecture.md"
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = ("lineage", "filters", "stems", "windows", "lmerge", "queries", "eddy", "storage", "api", "pipeline")

#: `eddy/engine.py`, `docs/`, `check`-like bare names are not paths; a `:line` or `::name` suffix is not part of one.
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md|toml|sql|json|ndjson|csv)")
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*\n?", re.MULTILINE | re.DOTALL)
#: First words of a shell line that are on every machine.
_SHELL_COMMANDS = {"cd", "curl", "sleep", "git", "echo", "python3", "cat", "printf", "eddy", "export", "source", "."}


def text_of(path: Path) -> str:
    assert path.is_file(), f"{path.relative_to(ROOT)} is missing"
    return path.read_text()


def named_paths(text: str) -> list[str]:
    """What looks like a path of this repository between single backticks, outside fenced blocks."""
    prose = _FENCE.sub("", text)
    words = [word.split("::")[0].split(":")[0] for word in re.findall(r"`([^`\n]+)`", prose)]
    return [word for word in words if _PATH.fullmatch(word)]


def blocks(text: str) -> list[tuple[str, str, int, bool]]:
    """(language, body, line, follows directly) of each fenced block; *directly* = only blank lines since the last block."""
    found = []
    last_end = None
    for match in _FENCE.finditer(text):
        directly = last_end is not None and not text[last_end : match.start()].strip()
        found.append((match[1], match[2], text.count("\n", 0, match.start()) + 1, directly))
        last_end = match.end()
    return found


def programs(text: str) -> list[tuple[int, str, str | None]]:
    """(line, program, what it prints or None) of each python block; those with a client are run by tests/e2e/test_readme.py."""
    found = blocks(text)
    result = []
    for i, (language, body, line, _) in enumerate(found):
        if language == "python" and "eddy.client" not in body:
            follower = found[i + 1] if i + 1 < len(found) else None
            shown = follower[1] if follower and follower[0] == "text" and follower[3] else None
            result.append((line, body, shown))
    return result


def printed(program: str, line: int, document: Path) -> str:
    """Run a block in its own namespace; a traceback names the line in the document."""
    out = io.StringIO()
    code = compile("\n" * line + program, str(document), "exec")
    with contextlib.redirect_stdout(out):
        exec(code, {"__name__": "__readme__"})
    return out.getvalue()


def test_the_architecture_names_only_files_that_exist() -> None:
    text = text_of(ARCHITECTURE)
    names = [*named_paths(text), *re.findall(r"\b(?:\w+/)+\w+\.py\b", text)]
    assert names, "docs/architecture.md names no file between backticks"
    missing = sorted({name for name in names if not (ROOT / name).exists() and not (ARCHITECTURE.parent / name).exists()})
    assert not missing, f"docs/architecture.md names files that do not exist: {', '.join(missing)}"


@pytest.mark.parametrize("document", PROGRAMS, ids=lambda path: path.name)
def test_the_programs_of_a_document_print_what_it_says(document: Path) -> None:
    found = programs(text_of(document))
    assert found, f"{document.name} holds no ```python block"
    for line, program, shown in found:
        out = printed(program, line, document)
        if shown is not None:
            assert out == shown, f"{document.name} line {line}: the block prints\n{out}"


def test_programs_are_followed_by_what_they_print() -> None:
    shown = {document.name: [text is not None for _, _, text in programs(text_of(document))] for document in PROGRAMS}
    assert shown == {"README.md": [True], "guide.md": [True] * 10, "contract.md": [False]}


def test_a_newcomer_sees_the_picture_and_the_numbers_first() -> None:
    lines = text_of(README).splitlines()
    assert len(lines) <= 160
    first = "\n".join(lines[:60])
    assert "[ eddy ]" in first and "| rows/s |" in first and "Where we lose" in first


def test_the_architecture_is_one_read() -> None:
    assert len(text_of(ARCHITECTURE).splitlines()) <= 160


def test_the_glossary_has_each_word_once_by_the_alphabet() -> None:
    rows = [line for line in text_of(GLOSSARY).splitlines() if line.startswith("| **")]
    words = [re.findall(r"\*\*(.+?)\*\*", row.split("|")[1]) for row in rows]
    every = [word.casefold() for found in words for word in found]
    assert 50 < len(every) <= 60 and sorted(set(every)) == sorted(every)
    first = [found[0].casefold() for found in words]
    assert first == sorted(first)


@pytest.mark.parametrize("document", [README, GUIDE], ids=lambda path: path.name)
def test_the_commands_of_a_document_exist(document: Path) -> None:
    commands = []
    for language, body, line, _ in blocks(text_of(document)):
        if language in ("bash", "sh", "console"):
            for text in body.replace("\\\n", " ").splitlines():
                words = text.removeprefix("$ ").split()
                if words and not words[0].startswith("#") and not text.startswith(" "):
                    commands.append((line, words[0]))
    assert commands, f"{document.name} holds no ```bash block"
    for line, command in commands:
        here = command.startswith("./") and (ROOT / command).is_file()
        assert here or command in _SHELL_COMMANDS, f"{document.name}, block at line {line}: there is no command {command}"


@pytest.mark.parametrize("package", [package for package in PACKAGES if (ROOT / package / "__init__.py").is_file()])
def test_the_examples_in_docstrings_hold(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        if ">>> " not in path.read_text():
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        out = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            runner.run(test, out=out.write)
        assert runner.failures == 0, out.getvalue()


def test_each_dependency_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for requirement in tomllib.loads(text)["project"]["dependencies"]:
        line = next(line for line in text.splitlines() if f'"{requirement}"' in line)
        assert "# " in line, f"{requirement} has no reason in pyproject.toml"


def test_paths_are_told_from_other_words() -> None:
    text = "`eddy/engine.py` `lineage/` `Engine` `a / b` `README.md` `eddy/query.py:12`\n"
    text += "```\n`no/such.py`\n```\n`queries/bound.py::X`"
    assert named_paths(text) == ["eddy/engine.py", "lineage/", "README.md", "eddy/query.py", "queries/bound.py"]


def test_a_program_is_paired_with_the_text_right_after_it() -> None:
    text = "```python\nprint(1)\n```\n\n```text\n1\n```\n```python\nx = 2\n```\nprose\n```text\n2\n```\n"
    assert programs(text) == [(1, "print(1)\n", "1\n"), (8, "x = 2\n", None)]
    assert printed("print(1)\n", 1, README) == "1\n"
