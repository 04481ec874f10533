"""An error of the engine is the same error on the other side of HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.edge.problems import as_problem
from eddy import (
    ConflictError,
    EddyError,
    GoneError,
    InUseError,
    LimitError,
    NotFoundError,
    QueryError,
    RowError,
    SchemaError,
)
from eddy.client.problems import error_of

ERRORS = [
    QueryError("no such column", code="unknown_column", hint="did you mean a?", line=2, column=7, excerpt="x"),
    QueryError("too long", code="too_long"),
    RowError("not an int", code="bad_value", hint="a number", row=3, column="a"),
    RowError("the time column is missing", code="missing_time", column="ts"),
    SchemaError("unknown type", code="unknown_type"),
    NotFoundError("no stream", code="unknown_stream", hint="there are: s"),
    InUseError("it is read"),
    ConflictError("taken", code="name_taken"),
    GoneError("older than the log"),
    LimitError("there are 5", code="too_many_queries"),
    EddyError("bad option", code="bad_option"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{type(error).__name__}-{error.code}")
def test_an_error_keeps_its_class_code_hint_and_place(error: EddyError) -> None:
    answer = as_problem(error)
    found = error_of(answer.status_code, bytes(answer.body))
    assert type(found) is type(error)
    assert (found.code, found.fact, found.hint, found.place()) == (error.code, error.fact, error.hint, error.place())
    for name in ("line", "column", "row", "excerpt"):
        assert getattr(found, name, None) == getattr(error, name, None)


def test_a_detail_is_part_of_the_fact() -> None:
    answer = as_problem(InUseError("it is read", detail="queries: hot"))
    assert error_of(answer.status_code, bytes(answer.body)).fact == "it is read; queries: hot"


def test_the_place_of_a_query_in_a_batch_is_known() -> None:
    error = QueryError("no such column")
    error.item = 4  # type: ignore[attr-defined]
    answer = as_problem(error)
    assert getattr(error_of(answer.status_code, bytes(answer.body)), "item", None) == 4


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (502, b"<html>Bad gateway</html>", EddyError), (404, b"", NotFoundError), (429, b"slow down", LimitError),
        (503, b"[]", LimitError), (500, b'{"detail": 5}', EddyError), (413, json.dumps({"detail": "large"}).encode(), LimitError),
        (422, json.dumps({"detail": "x", "kind": "row", "position": "nowhere"}).encode(), RowError),
    ],
)  # fmt: skip
def test_what_is_no_problem_document_is_an_error_all_the_same(status: int, body: Any, kind: type[EddyError]) -> None:
    found = error_of(status, body)
    assert type(found) is kind and found.code == f"status_{status}"
