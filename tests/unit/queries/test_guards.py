"""Bounds on hostile texts: refused early, with a place, and never by a RecursionError."""

from __future__ import annotations

import sys

import pytest

from filters.expressions.expression import FunctionCall, children
from lineage.errors import QueryError
from lineage.schema import Schema
from queries.binder import bind
from queries.bound import Readable
from queries.guards import MAX_BYTES, MAX_DEPTH, MAX_TOKENS
from queries.parser import parse

SCHEMA = Schema.parse({"a": "int", "ok": "bool"}, "s")


def refusal(sql: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(sql)
    return caught.value


def where(condition: str) -> str:
    return f"SELECT a FROM s WHERE {condition}"


def test_a_megabyte_of_parentheses_is_too_long() -> None:
    error = refusal("(" * 1_000_000)
    assert (error.code, error.line, error.column) == ("query_too_long", 1, 1)


def test_length_is_counted_in_bytes() -> None:
    assert refusal("-- " + "é" * (MAX_BYTES // 2)).code == "query_too_long"
    assert refusal("-- " + "e" * (MAX_BYTES // 2)).code == "syntax_error"


@pytest.mark.parametrize(
    ("opening", "inner", "closing"),
    [
        ("(", "ok", ")"),
        ("NOT (", "ok", ")"),
        ("NOT ", "ok", ""),
        ("- ", "a", " = 1"),
        ("-+", "a", " = 1"),
        ("CASE WHEN ", "ok", " THEN ok END"),
        ("CASE WHEN ok THEN ok ELSE ", "ok", " END"),
        ("coalesce(", "ok", ")"),
        ("ok = (", "ok", ")"),
        ("ok IN (", "ok", ")"),
        ("cast(", "ok", " AS bool)"),
    ],
)
def test_nesting_is_bounded(opening: str, inner: str, closing: str) -> None:
    def build(levels: int) -> str:
        ends = closing if "=" in closing else closing * levels
        return where(opening * levels + inner + ends)

    error = refusal(build(MAX_DEPTH * 2))
    assert error.code == "query_too_deep"
    assert error.line == 1 and error.column is not None and error.column > len(where(""))
    shallow = MAX_DEPTH // 2 if opening in ("NOT (", "-+") else MAX_DEPTH - 1
    bind(parse(build(shallow)), {"s": Readable(SCHEMA)}.get)


def test_the_error_points_at_the_level_that_is_too_deep() -> None:
    error = refusal(where("(" * 100))
    assert error.column == len(where("")) + MAX_DEPTH + 1


def test_parentheses_in_strings_names_and_comments_do_not_nest() -> None:
    text = "(" * 100
    parse(f"SELECT '{text}' AS x /* {text} */ FROM s -- {text}\n WHERE \"a\" = 1")
    assert refusal(f'SELECT "{text}" AS "{text}" FROM s').code == "bad_name"


def test_a_name_is_bounded() -> None:
    error = refusal("SELECT " + "x" * 129 + " FROM s")
    assert (error.code, error.column, error.fact) == ("bad_name", 8, "the name is longer than 128 characters")


def test_tokens_are_bounded() -> None:
    error = refusal("SELECT " + "a, " * MAX_TOKENS + "a FROM s")
    assert error.code == "too_many_tokens"
    assert error.column is not None and error.column > MAX_TOKENS


def test_a_chain_of_other_operators_is_bounded_in_height() -> None:
    parse(where(" + ".join(["a"] * 60) + " = 1"))
    error = refusal(where(" + ".join(["a"] * 200) + " = 1"))
    assert (error.code, error.fact) == ("query_too_deep", "the expression is deeper than 64 operators")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("(", " BETWEEN ok AND ok)"),
        ("(CASE ", " WHEN ok THEN ok WHEN ok THEN ok END)"),
        ("(", " IN (ok, ok, ok))"),
    ],
)
def test_repeated_operands_cannot_grow_without_bound(opening: str, closing: str) -> None:
    error = refusal(where(opening * 15 + "ok" + closing * 15))
    assert (error.code, error.fact) == ("too_many_tokens", "the expression has more than 8000 operators")


def frames_used(sql: str) -> int:
    """The deepest stack that parsing and binding `sql` needs, in frames."""
    deepest = depth = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal deepest, depth
        depth += 1 if event == "call" else -1 if event == "return" else 0
        deepest = max(deepest, depth)

    sys.setprofile(count)
    try:
        bind(parse(sql), {"s": Readable(SCHEMA)}.get)
    finally:
        sys.setprofile(None)
    return deepest


def test_the_deepest_query_needs_a_small_part_of_the_stack() -> None:
    forms = [
        ("ok OR ok AND ok = (", "ok", ")"),
        ("ok AND coalesce(", "ok", ")"),
        ("CASE WHEN ok THEN ok ELSE ok AND ok = ", "ok", " END"),
        ("ok OR cast(", "ok", " AS bool)"),
    ]
    levels = MAX_DEPTH // 2 - 1
    for opening, inner, closing in forms:
        assert frames_used(where(opening * levels + inner + closing * levels)) < 400


def calls_made(sql: str) -> int:
    """How many Python functions are called to parse `sql`: a measure of work that no machine changes."""
    n_calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal n_calls
        n_calls += event == "call"

    sys.setprofile(count)
    try:
        parse(sql)
    finally:
        sys.setprofile(None)
    return n_calls


@pytest.mark.parametrize("term", ["a = 1 OR ", "a IN (1, 2) AND ", "NOT ok AND ", "a BETWEEN 1 AND 2 OR "])
def test_the_work_of_parsing_is_linear(term: str) -> None:
    small, large = (calls_made(where(term * n + "ok")) for n in (50, 200))
    assert large < 4.2 * small


def test_a_flat_chain_has_no_depth() -> None:
    condition = bind(parse(where(" OR ".join(["(a = 1 AND ok)"] * 200))), {"s": Readable(SCHEMA)}.get).condition
    assert isinstance(condition, FunctionCall) and condition.op == "or" and len(children(condition)) == 200


def test_a_text_that_is_no_text_is_refused() -> None:
    assert refusal("SELECT '\ud800' FROM s").fact == "the query is no UTF-8 text"
    assert refusal("SELECT a\0 FROM s").fact == "the query holds a NUL character"
