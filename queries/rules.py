"""Files of queries, for `eddy query add --file` and `eddy replay --queries`.

.ndjson    an object a line: {"sql": .., "name": .., "params": {..}, "tags": [..], ..}
.csv       a column sql, and name, tags (with spaces between) and params (JSON) if there are such columns
.sql       texts that end with ; each, named by a line `-- name: hot` before them
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from lineage.errors import EddyError

#: Queries of one call.
PART = 1000
_FORMATS = (".ndjson", ".jsonl", ".csv", ".sql")
_NAME = re.compile(r"^\s*--\s*name:\s*(\S+)\s*$", re.MULTILINE)


class RulesError(EddyError):
    """A file of queries cannot be read."""

    default_code = "bad_file"


class Rule(NamedTuple):
    """A query of a file and the line it begins in."""

    line: int
    definition: dict[str, Any]


def read_rules(file: Path, options: dict[str, Any]) -> list[Rule]:
    """Read the queries of a file; `options` gives the missing settings, and tags are added to each query's own."""
    kind = file.suffix.lower()
    if kind not in _FORMATS:
        raise RulesError(f'"{file.name}" is no file of queries', hint=f"its name ends with {', '.join(_FORMATS)}")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RulesError(f"{file.name} is not UTF-8", detail=f"byte {error.start}") from None
    found = _from_csv(file, text) if kind == ".csv" else _from_sql(text) if kind == ".sql" else _from_lines(file, text)
    rules = [Rule(line, _whole(definition, options)) for line, definition in found]
    if not rules:
        raise RulesError(f"{file.name} holds no query")
    return rules


def _whole(definition: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in options.items() if value is not None} | definition
    tags = [*options["tags"], *(definition.get("tags") or [])]
    return found | {"tags": list(dict.fromkeys(tags))}


def _from_lines(file: Path, text: str) -> list[Rule]:
    found = []
    for n, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise RulesError(f"{file.name}, line {n}: not JSON", detail=str(error)) from None
        value = {"sql": value} if isinstance(value, str) else value
        if not isinstance(value, dict) or "sql" not in value:
            raise RulesError(f"{file.name}, line {n}: no query", hint='{"sql": "SELECT ..", "name": ".."}')
        found.append(Rule(n, value))
    return found


def _from_csv(file: Path, text: str) -> list[Rule]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = [name.strip().lower() for name in reader.fieldnames or []]
    if "sql" not in names:
        raise RulesError(f'{file.name} has no column "sql"', hint="its first line has the names: name,sql,tags,params")
    reader.fieldnames = names
    found = []
    line = reader.line_num + 1
    for row in reader:
        definition: dict[str, Any] = {name: value for name, value in row.items() if name and value}
        try:
            if "params" in definition:
                definition["params"] = json.loads(definition["params"])
        except ValueError as error:
            raise RulesError(f"{file.name}, line {line}: the params are not JSON", detail=str(error)) from None
        if "sql" not in definition:
            raise RulesError(f"{file.name}, line {line}: no query")
        definition["tags"] = str(definition.get("tags", "")).split()
        found.append(Rule(line, definition))
        line = reader.line_num + 1
    return found


def _from_sql(text: str) -> list[Rule]:
    found = []
    at = 0
    for statement in _statements(text):
        first = at + len(statement) - len(statement.lstrip())
        at += len(statement) + 1
        name = _NAME.search(statement)
        sql = "\n".join(line for line in statement.split("\n") if not line.lstrip().startswith("--")).strip()
        if sql:
            found.append(Rule(text.count("\n", 0, first) + 1, {"sql": sql} | ({"name": name[1]} if name else {})))
    return found


def _statements(text: str) -> list[str]:
    """The text cut at each ; that is in no quotes and no comment.

    >>> _statements("a ';' b; -- c; d")
    ["a ';' b", ' -- c; d']
    """
    found, start, quote, comment = [], 0, "", False
    for at, character in enumerate(text):
        if comment:
            comment = character != "\n"
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "-" and text[at : at + 2] == "--":
            comment = True
        elif character == ";":
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]
