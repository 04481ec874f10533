"""Every citation resolves: points of the semantics, sections of the contract, decisions, documents and files by name.

Read are all Python files and documents. A citation is a document's word and numbers, as in a comment that names a point of
`docs/semantics.md`, the name of a document, or a path of this repository between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from functools import cache
from pathlib import Path

from tests.unit.test_docs import ROOT, named_paths

DOCS = ROOT / "docs"
#: Folders that are no part of the repository's text.
_ELSEWHERE = {".git", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "data", "build"}
#: Documents without numbered points, or that are not ours: a number of one of them leads nowhere.
_NOT_NUMBERED = ("design", "house", "style", "sharing", "promises", "glossary", "architecture", "guide")
_NUMBERS = r"\d+(?:(?:\s*-\s*|\s+to\s+|,\s*|\s+and\s+)\d+)*\b"
_CITED = re.compile(
    rf"\b(semantics|contract|decisions?|points?|{'|'.join(_NOT_NUMBERED)})(?:\.md)?`?,?\s+(?:\#:?\s+)?"
    rf"(?:points?\s+|sections?\s+|§\s*)?({_NUMBERS})(?!\w|%|\s%|\.\d)",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(r"[\w./-]*\b[\w-]+\.md\b")
_DECISION_FILE = re.compile(r"docs/decisions/(\d{4})\b(?!-)")
#: What a path of ours is like. Others are shortened (`docs/papers.md`), in every folder, types of content, or a user's files.
_FOLDERS = "api docs eddy experiments filters lineage pipeline queries scripts stems storage tests windows".replace(" ", "|")
_OURS = re.compile(rf"(?![PE]/|__init__\.py$)(?:.*\.(?:py|md|html)|(?:{_FOLDERS})/.*)")


def texts() -> Iterator[Path]:
    """Every Python file and every document."""
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in (".py", ".md") and not _ELSEWHERE & set(path.relative_to(ROOT).parts):
            yield path


@cache
def points(document: str) -> frozenset[int]:
    """The numbers that a document has: items of its lists, numbered headings, or the decisions."""
    match document:
        case "semantics":
            return frozenset(int(n) for n in re.findall(r"^(\d+)\. ", (DOCS / "semantics.md").read_text(), re.MULTILINE))
        case "contract":
            return frozenset(int(n) for n in re.findall(r"^## (\d+)\. ", (DOCS / "contract.md").read_text(), re.MULTILINE))
        case "decision":
            return frozenset(int(path.name[:4]) for path in (DOCS / "decisions").glob("[0-9]*.md"))
    return frozenset()


def numbers(text: str) -> Set[int]:
    """The numbers of a list: "1-3, 5 and 8"."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:\s*(?:-|to)\s*(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def dangling_numbers(text: str) -> list[tuple[int, str]]:
    """(line, citation) of each citation by number that leads nowhere."""
    found = []
    for cited in _CITED.finditer(text):
        document = cited[1].lower().removesuffix("s") if cited[1].lower() != "semantics" else "semantics"
        if numbers(cited[2]) - points("semantics" if document == "point" else document):
            found.append((_line(text, cited.start()), " ".join(cited[0].split())))
    for cited in _DECISION_FILE.finditer(text):
        if int(cited[1]) not in points("decision"):
            found.append((_line(text, cited.start()), cited[0]))
    return found


def dangling_names(text: str, folder: Path) -> list[tuple[int, str]]:
    """(line, name) of each document, and each path between backticks, that does not exist."""
    names = {*_DOCUMENT.findall(text), *named_paths(text)}
    homes = (ROOT, folder, DOCS, DOCS / "decisions")
    missing = [name for name in names if _OURS.fullmatch(name) and not any((home / name).exists() for home in homes)]
    return sorted((_line(text, text.index(name)), name) for name in missing)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _told(look: Callable[[Path], list[tuple[int, str]]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}: {name}" for path in texts() for line, name in look(path)]


def test_every_number_that_is_cited_is_there() -> None:
    told = _told(lambda path: dangling_numbers(path.read_text()))
    assert not told, "citations that lead nowhere:\n" + "\n".join(told)


def test_every_document_and_file_that_is_named_is_there() -> None:
    told = _told(lambda path: dangling_names(path.read_text(), path.parent))
    assert not told, "names of what does not exist:\n" + "\n".join(told)


def test_the_documents_have_their_points() -> None:
    assert points("semantics") == set(range(1, 40)) and points("contract") == set(range(1, 9))
    assert points("decision") >= set(range(1, 33))


def test_an_invented_citation_is_noticed() -> None:
    """The samples are put together here, so that this file cites nothing that is not there."""
    n, suffix = 99, ".md"
    wrong = (
        f"semantics {n}",
        f"(semantics 3, {n})",
        f"`semantics.md` 4-{n}",
        f"points 1 to {n}",
        f"Contract {n}:",
        f"decision\n{n}",
    )
    for text in wrong:
        assert [line for line, _ in dangling_numbers(f"a line\n{text}")] == [2], text
    assert dangling_numbers(f"#: a bar, contract\n#: {n}.") == [(1, f"contract #: {n}")]
    assert dangling_numbers(f"docs/decisions/{n:04}") == [(1, f"docs/decisions/{n:04}")]
    for word in _NOT_NUMBERED:
        assert dangling_numbers(f"({word} {n})"), word
    right = ("semantics 15, 16", "`semantics.md` 1-3", "points 17 and 20", "Contract 4: it", "decision 12.", "a decision of 12 %")
    for text in right:
        assert not dangling_numbers(text), text
    file, document = "eddy/no_such.py", f"no-such{suffix}"
    assert dangling_names(f"`{file}` and {document}", ROOT) == [(1, file), (1, document)]
    assert not dangling_names("`eddy/engine.py`, `serve` and docs/semantics.md", ROOT)
