"""Parameters: what is missing, unknown or of the wrong kind."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from lineage.errors import QueryError
from tests.unit.queries.bindings import condition, run

SQL = "SELECT temp FROM readings WHERE temp > :max"
WINDOW = "SELECT temp FROM readings [RANGE :w]"


@pytest.mark.parametrize(
    ("sql", "params", "code", "column", "fact", "hint"),
    [
        (SQL, None, "missing_param", 40, 'parameter ":max" has no value', 'params={"max": ...}'),
        (SQL, {"Max": 1}, "unknown_param", 1, 'the query has no parameter ":Max"', 'did you mean "max"?'),
        (SQL, {"max": 1, "min": 2}, "unknown_param", 1, 'the query has no parameter ":min"', "there are: max"),
        (
            "SELECT temp FROM readings",
            {"x": 1},
            "unknown_param",
            1,
            'the query has no parameter ":x"',
            "the query has no parameters",
        ),
        (SQL, {"max": 2**63}, "number_too_large", 40, 'parameter ":max" is too large', "integers are 64 bits wide"),
        (
            SQL,
            {"max": "x"},
            "type_mismatch",
            33,
            "float and string cannot be compared",
            "write the number without quotes, or CAST one side",
        ),
        (
            SQL,
            {"max": [1]},
            "bad_param",
            40,
            'parameter ":max" is of type list',
            "a parameter is an int, float, str, bool, None, datetime or timedelta",
        ),
        (SQL.replace("temp >", "room >"), {"max": "\ud800"}, "bad_param", 40, 'parameter ":max" is no UTF-8 text', ""),
        (WINDOW, None, "missing_param", 34, 'parameter ":w" has no value', 'params={"w": ...}'),
        (
            WINDOW,
            {"w": 5},
            "bad_param",
            34,
            'parameter ":w" is of type int, not a duration',
            "give a timedelta or a text such as '5 minutes'",
        ),
        (
            WINDOW,
            {"w": timedelta(0)},
            "bad_window",
            34,
            "a window must be longer than zero",
            "[NOW] holds the rows of this instant",
        ),
        (
            WINDOW,
            {"w": "-5 minutes"},
            "bad_window",
            34,
            "a window must be longer than zero",
            "[NOW] holds the rows of this instant",
        ),
        (WINDOW, {"w": "1 month"}, "bad_window", 34, "a window cannot be months long", "months vary in length: use DAYS"),
        (
            WINDOW,
            {"w": "soon"},
            "bad_interval",
            34,
            "'soon' is no duration",
            "units are MICROSECONDS MILLISECONDS SECONDS MINUTES HOURS DAYS WEEKS",
        ),
        (
            "SELECT temp FROM readings [RANGE :w MINUTES]",
            {"w": 5},
            "syntax_error",
            37,
            "a parameter for a window carries its own unit",
            "give a timedelta or '5 minutes'",
        ),
    ],
)
def test_a_wrong_parameter_is_refused(sql: str, params: dict[str, object], code: str, column: int, fact: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        run(sql, params)
    error = caught.value
    assert (error.code, error.line, error.column, error.fact, error.hint) == (code, 1, column, fact, hint)


def test_numpy_numbers_are_numbers() -> None:
    assert condition("temp > :p", {"p": np.int64(3)}) == '>("temp", int:3)'
    assert condition("temp > :p", {"p": np.float64(1.5)}) == '>("temp", float:1.5)'


def test_a_parameter_in_a_string_or_comment_is_none() -> None:
    assert str(run("SELECT temp FROM readings WHERE room = ':a' -- :b").condition) == "=(\"room\", string:':a')"


def test_a_word_of_the_grammar_may_name_a_parameter() -> None:
    assert condition("temp > :from AND temp < :select", {"from": 1, "select": 2}) == 'and(>("temp", int:1), <("temp", int:2))'
