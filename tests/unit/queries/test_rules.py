"""Files of queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from queries.rules import Rule, RulesError, read_rules

OPTIONS: dict[str, Any] = {"tags": ["all"], "history": "new", "expiry": None}


def read(tmp_path: Path, name: str, text: str) -> list[Rule]:
    path = tmp_path / name
    path.write_text(text)
    return read_rules(path, OPTIONS)


def rule(line: int, sql: str, **more: Any) -> Rule:
    return Rule(line, {"history": "new", "tags": ["all"], "sql": sql, **more})


def test_a_line_of_ndjson_is_a_query(tmp_path: Path) -> None:
    text = '{"sql": "SELECT 1", "name": "a", "tags": ["x", "all"], "history": "window"}\n\n"SELECT 2"\n'
    assert read(tmp_path, "r.ndjson", text) == [
        rule(1, "SELECT 1", name="a", history="window", tags=["all", "x"]), rule(3, "SELECT 2"),
    ]  # fmt: skip


def test_a_row_of_csv_is_a_query(tmp_path: Path) -> None:
    text = 'Name,SQL,tags,params\na,"SELECT a,\nb FROM s",x y,"{""low"": 5}"\n,SELECT 2,,\n'
    assert read(tmp_path, "r.csv", text) == [
        rule(2, "SELECT a,\nb FROM s", name="a", tags=["all", "x", "y"], params={"low": 5}), rule(4, "SELECT 2"),
    ]  # fmt: skip


def test_sql_is_cut_at_semicolons_and_named_by_comments(tmp_path: Path) -> None:
    text = "-- name: hot\n-- says why; at length\nSELECT ';' AS a -- the; end\nFROM s;\n\n  SELECT 2 ;\n;-- nothing\n"
    assert read(tmp_path, "r.sql", text) == [rule(1, "SELECT ';' AS a -- the; end\nFROM s", name="hot"), rule(6, "SELECT 2")]


@pytest.mark.parametrize(
    ("name", "text", "fact"),
    [
        ("r.txt", "SELECT 1", '"r.txt" is no file of queries'), ("r.ndjson", "{", "r.ndjson, line 1: not JSON"),
        ("r.ndjson", "\n[1]\n", "r.ndjson, line 2: no query"), ("r.csv", "a,b\n1,2\n", 'r.csv has no column "sql"'),
        ("r.csv", "sql,params\nSELECT 1,{\n", "r.csv, line 2: the params are not JSON"),
        ("r.sql", "-- no\n;", "r.sql holds no query"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_with_the_line(tmp_path: Path, name: str, text: str, fact: str) -> None:
    with pytest.raises(RulesError) as caught:
        read(tmp_path, name, text)
    assert caught.value.fact == fact
