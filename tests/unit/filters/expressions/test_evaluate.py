"""The evaluator's logic: NULLs, laziness of conditionals, error counts, folding, user functions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from filters.expressions.evaluate import evaluate, fold, true_rows
from filters.expressions.expression import (
    FALSE,
    TRUE,
    ColumnRef,
    Expression,
    FunctionCall,
    Interval,
    Literal,
    UserCall,
    UserFunction,
)
from filters.expressions.functions import FUNCTIONS
from filters.values.vector import DTYPES, ListFrame, Vector
from lineage.schema import KEY_MAX, KEY_MIN, Type

INT, FLOAT, STRING, BOOL, TIMESTAMP, NULL = Type.INT, Type.FLOAT, Type.STRING, Type.BOOL, Type.TIMESTAMP, Type.NULL
UNKNOWN = Literal(BOOL, None)
BARE_NULL = Literal(NULL, None)


def column(type: Type, cells: list[Any]) -> Vector:
    if type is STRING:
        return Vector.of_strings(cells)
    nulls = np.array([cell is None for cell in cells], np.bool_)
    return Vector(type, np.array([0 if cell is None else cell for cell in cells], DTYPES[type]), nulls if nulls.any() else None)


def lit(value: Any) -> Literal:
    kinds: dict[type, Type] = {bool: BOOL, int: INT, float: FLOAT, str: STRING}
    return Literal(kinds[type(value)], value)


def ref(type: Type, position: int = 0) -> ColumnRef:
    return ColumnRef(type, f"c{position}", position)


def call(type: Type, op: str, *args: Expression) -> FunctionCall:
    return FunctionCall(type, op, args)


def value(expression: Expression) -> Any:
    """The value of an expression without columns, as a Literal would hold it."""
    return evaluate(expression, ListFrame([], n_rows=1)).cell(0)


def over(expression: Expression, *columns: Vector) -> tuple[list[Any], int]:
    """The cells of an expression over columns, and how many errors it counted."""
    frame = ListFrame(columns)
    found = evaluate(expression, frame)
    return [found.cell(row) for row in range(len(found))], frame.errors


LOGIC = [TRUE, FALSE, UNKNOWN]


def test_and_is_false_if_any_is_false_then_null_if_any_is_null() -> None:
    table = [[value(call(BOOL, "and", a, b)) for b in LOGIC] for a in LOGIC]
    assert table == [[True, False, None], [False, False, False], [None, False, None]]


def test_or_is_true_if_any_is_true_then_null_if_any_is_null() -> None:
    table = [[value(call(BOOL, "or", a, b)) for b in LOGIC] for a in LOGIC]
    assert table == [[True, True, True], [True, False, None], [True, None, None]]


def test_and_and_or_take_any_number_of_arguments_and_a_bare_null() -> None:
    assert value(call(BOOL, "and", TRUE, TRUE, BARE_NULL, FALSE)) is False
    assert value(call(BOOL, "or", FALSE, BARE_NULL, FALSE)) is None


def test_not_of_null_is_null() -> None:
    assert [value(call(BOOL, "not", a)) for a in (*LOGIC, BARE_NULL)] == [False, True, None, None]


def test_is_null_is_never_null() -> None:
    found = over(call(BOOL, "is_null", ref(INT)), column(INT, [1, None]))
    assert found == ([False, True], 0)
    assert value(call(BOOL, "is_null", BARE_NULL)) is True


def test_a_comparison_with_a_bare_null_is_null() -> None:
    assert value(call(BOOL, "=", lit(1), BARE_NULL)) is None


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("=", [False, True, False]),
        ("<>", [True, False, True]),
        ("<", [True, False, False]),
        ("<=", [True, True, False]),
        (">", [False, False, True]),
        (">=", [False, True, True]),
    ],
)
def test_strings_of_different_dictionaries_compare_by_text(op: str, expected: list[bool]) -> None:
    a, b = column(STRING, ["a", "b", "é"]), column(STRING, ["z", "b", "A"])
    assert over(call(BOOL, op, ref(STRING, 0), ref(STRING, 1)), a, b) == (expected, 0)


def test_nan_equals_nan_and_is_above_infinity_and_the_zeros_are_equal() -> None:
    assert value(call(BOOL, "=", lit(math.nan), lit(-math.nan))) is True
    assert value(call(BOOL, ">", lit(math.nan), lit(math.inf))) is True
    assert value(call(BOOL, ">", lit(math.nan), lit(KEY_MAX))) is True
    assert value(call(BOOL, "=", lit(-0.0), lit(0.0))) is True
    assert over(call(BOOL, "=", ref(FLOAT), lit(0.0)), column(FLOAT, [-0.0, math.nan])) == ([True, False], 0)


def test_in_is_null_only_without_a_match() -> None:
    member = call(BOOL, "in", ref(INT), lit(1), Literal(INT, None))
    assert over(member, column(INT, [1, 2, None])) == ([True, None, None], 0)
    assert over(call(BOOL, "in", ref(INT), lit(1), lit(3)), column(INT, [1, 2, None])) == ([True, False, None], 0)


def test_in_compares_text_and_floats_like_equality_does() -> None:
    assert over(call(BOOL, "in", ref(STRING), lit("b"), lit("")), column(STRING, ["a", "b", ""])) == ([False, True, True], 0)
    found = over(call(BOOL, "in", ref(FLOAT), lit(math.nan), lit(0.0)), column(FLOAT, [math.nan, -0.0, 1.0]))
    assert found == ([True, True, False], 0)


def test_in_takes_candidates_of_other_number_types_and_computed_ones() -> None:
    assert over(call(BOOL, "in", ref(INT), lit(2.0**53), lit(5.5)), column(INT, [2**53, 2**53 + 1])) == ([True, False], 0)
    computed = call(BOOL, "in", ref(INT), call(INT, "+", ref(INT), lit(0)), BARE_NULL)
    assert over(computed, column(INT, [4, None])) == ([True, None], 0)


def test_a_case_branch_is_computed_only_where_it_is_reached() -> None:
    guarded = call(FLOAT, "case", call(BOOL, "<>", ref(INT), lit(0)), call(FLOAT, "/", lit(1), ref(INT)), BARE_NULL)
    assert over(guarded, column(INT, [2, 0, None])) == ([0.5, None, None], 0)


def test_case_takes_the_first_true_branch_and_mixes_dictionaries() -> None:
    pick = call(
        STRING,
        "case",
        call(BOOL, "=", ref(STRING), lit("a")),
        lit("first"),
        call(BOOL, "<", ref(STRING), lit("c")),
        ref(STRING),
        lit("x"),
    )
    assert over(pick, column(STRING, ["a", "b", "c", None])) == (["first", "b", "x", "x"], 0)


def test_coalesce_computes_later_arguments_only_where_still_null() -> None:
    first = call(FLOAT, "coalesce", BARE_NULL, ref(FLOAT), call(FLOAT, "/", lit(1.0), lit(0.0)))
    assert over(first, column(FLOAT, [1.0, None, 3.0])) == ([1.0, None, 3.0], 1)


def test_and_and_or_compute_later_arguments_only_on_undecided_rows() -> None:
    division = call(BOOL, ">", call(FLOAT, "/", lit(1), ref(INT)), lit(0.1))
    assert over(call(BOOL, "and", call(BOOL, "<>", ref(INT), lit(0)), division), column(INT, [0, 5])) == ([False, True], 0)
    assert over(call(BOOL, "or", call(BOOL, "=", ref(INT), lit(0)), division), column(INT, [0, 50])) == ([True, False], 0)
    assert over(call(BOOL, "and", TRUE, division), column(INT, [0, 5])) == ([None, True], 1)


def test_nullif_is_null_on_equality_and_keeps_the_value_otherwise() -> None:
    assert over(call(INT, "nullif", ref(INT), lit(2)), column(INT, [1, 2, None])) == ([1, None, None], 0)
    assert value(call(STRING, "nullif", lit("a"), BARE_NULL)) == "a"
    assert value(call(FLOAT, "nullif", lit(math.nan), lit(math.nan))) is None


def test_nullif_does_not_compute_its_second_argument_where_the_first_is_null() -> None:
    found = over(call(INT, "nullif", ref(INT), call(INT, "%", lit(7), lit(0))), column(INT, [None, 1]))
    assert found == ([None, 1], 1)


def test_greatest_and_least_skip_nulls() -> None:
    a, b = column(INT, [1, None, None]), column(INT, [5, 2, None])
    assert over(call(INT, "greatest", ref(INT, 0), ref(INT, 1), BARE_NULL), a, b) == ([5, 2, None], 0)
    assert over(call(INT, "least", ref(INT, 0), ref(INT, 1)), a, b) == ([1, 2, None], 0)


def test_greatest_orders_text_by_code_points_and_puts_nan_on_top() -> None:
    assert value(call(STRING, "greatest", lit("a"), lit("B"), lit("é"))) == "é"
    assert value(call(STRING, "least", lit("a"), lit("B"))) == "B"
    assert math.isnan(value(call(FLOAT, "greatest", lit(1.0), lit(math.nan), lit(math.inf))))
    assert value(call(FLOAT, "least", lit(1), lit(math.nan))) == 1.0


def test_true_rows_are_neither_false_nor_null() -> None:
    frame = ListFrame([column(INT, [1, None, 3])])
    assert true_rows(call(BOOL, ">", ref(INT), lit(2)), frame).tolist() == [False, False, True]
    assert true_rows(BARE_NULL, frame).tolist() == [False, False, False]
    assert true_rows(TRUE, frame).tolist() == [True, True, True]


def test_a_null_input_is_no_error() -> None:
    assert over(call(FLOAT, "/", ref(INT), lit(0)), column(INT, [None, 1])) == ([None, None], 1)
    assert over(call(INT, "cast", ref(STRING)), column(STRING, [None, "x"])) == ([None, None], 1)


def test_an_error_is_counted_once_though_its_null_goes_on() -> None:
    assert over(call(FLOAT, "+", call(FLOAT, "/", ref(INT), lit(0)), lit(1.0)), column(INT, [1])) == ([None], 1)


def test_garbage_under_null_is_never_looked_at() -> None:
    """Codes outside the dictionary and numbers that would overflow stand under NULL."""
    text = Vector(STRING, np.array([7, 0]), np.array([True, False]), np.array(["a"], object))
    number = Vector(INT, np.array([KEY_MIN, 1]), np.array([True, False]))
    assert over(call(STRING, "upper", ref(STRING)), text) == ([None, "A"], 0)
    assert over(call(BOOL, "<", ref(STRING), lit("b")), text) == ([None, True], 0)
    assert over(call(INT, "neg", ref(INT)), number) == ([None, -1], 0)


def test_an_expression_over_no_rows_has_no_values() -> None:
    columns = [column(INT, []), column(STRING, []), column(TIMESTAMP, [])]
    assert over(call(STRING, "upper", ref(STRING, 1)), *columns) == ([], 0)
    assert over(call(STRING, "||", ref(STRING, 1), lit("x")), *columns) == ([], 0)
    assert over(call(STRING, "strftime", ref(TIMESTAMP, 2), lit("%Y")), *columns) == ([], 0)
    assert over(call(INT, "*", ref(INT), lit(2)), *columns) == ([], 0)
    assert over(call(BOOL, "and", call(BOOL, "=", ref(STRING, 1), lit("a")), TRUE), *columns) == ([], 0)
    assert over(call(STRING, "case", TRUE, ref(STRING, 1), lit("b")), *columns) == ([], 0)


def test_folding_makes_constant_parts_literals_and_keeps_the_rest() -> None:
    constant = call(INT, "+", lit(1), call(INT, "*", lit(2), lit(3)))
    assert fold(constant) == lit(7)
    assert fold(call(BOOL, ">", ref(INT), constant)) == call(BOOL, ">", ref(INT), lit(7))
    assert fold(call(STRING, "upper", lit("a"))) == lit("A")


def test_folding_keeps_timestamps_as_microseconds() -> None:
    moment = call(TIMESTAMP, "+", call(TIMESTAMP, "cast", lit("1970-01-01")), Literal(Type.INTERVAL, Interval(1, 5)))
    assert fold(moment) == Literal(TIMESTAMP, 31 * 86_400_000_000 + 5)


def test_folding_leaves_what_cannot_be_computed_so_that_each_row_counts_it() -> None:
    broken = fold(call(FLOAT, "/", lit(1), lit(0)))
    assert over(broken, column(INT, [1, 2])) == ([None, None], 2)
    assert fold(call(INT, "case", TRUE, lit(5), call(INT, "%", lit(1), lit(0)))) == lit(5)


def test_folding_never_calls_a_user_function() -> None:
    function = UserFunction("boom", lambda a: 1 / 0, INT, 1.0)
    folded = fold(UserCall(INT, function, (call(INT, "+", lit(1), lit(1)),)))
    assert folded == UserCall(INT, function, (lit(2),))


def user(returns: Type, fn: Any, *args: Expression) -> UserCall:
    return UserCall(returns, UserFunction("f", fn, returns, 1.0), args)


def test_a_user_function_gets_python_values_row_by_row() -> None:
    seen: list[Any] = []
    frame = ListFrame([column(INT, [1, None]), column(STRING, ["a", "b"]), column(TIMESTAMP, [0, 1])])
    evaluate(user(INT, lambda *row: seen.append(row), ref(INT, 0), ref(STRING, 1), ref(TIMESTAMP, 2)), frame)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert seen == [(1, "a", epoch), (None, "b", epoch + timedelta(microseconds=1))]
    assert frame.errors == 0


def test_a_raising_user_function_is_null_and_counted() -> None:
    assert over(user(FLOAT, lambda x: 1 / x, ref(INT)), column(INT, [0, 4])) == ([None, 0.25], 1)


def test_what_is_no_exception_passes_through_a_user_function() -> None:
    def interrupt(x: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        over(user(INT, interrupt, ref(INT)), column(INT, [1]))


@pytest.mark.parametrize(
    ("returns", "result", "accepted"),
    [
        (INT, 3, 3),
        (INT, np.int32(3), 3),
        (INT, True, None),
        (INT, 3.0, None),
        (INT, 2**63, None),
        (FLOAT, 3, 3.0),
        (FLOAT, np.float32(0.5), 0.5),
        (FLOAT, False, None),
        (FLOAT, 10**400, None),
        (STRING, "x", "x"),
        (STRING, b"x", None),
        (STRING, "\ud800", None),
        (BOOL, True, True),
        (BOOL, np.False_, False),
        (BOOL, 1, None),
        (TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
        (TIMESTAMP, datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
        (TIMESTAMP, 5, None),
    ],
)
def test_a_user_function_must_give_its_declared_type(returns: Type, result: Any, accepted: Any) -> None:
    assert over(user(returns, lambda: result), column(INT, [1])) == ([accepted], 1 if accepted is None else 0)


def test_a_user_function_is_not_called_with_a_timestamp_that_datetime_cannot_hold() -> None:
    assert over(user(INT, lambda t: 1, ref(TIMESTAMP)), column(TIMESTAMP, [2**62, 0, None])) == ([None, 1, 1], 1)


def test_a_user_function_in_a_branch_runs_only_on_the_rows_that_reach_it() -> None:
    seen: list[int] = []

    def note(x: int) -> bool:
        seen.append(x)
        return True

    risky = user(BOOL, note, ref(INT))
    over(call(BOOL, "and", call(BOOL, ">", ref(INT), lit(1)), risky), column(INT, [1, 2, 3]))
    assert seen == [2, 3]


def test_errors_inside_nested_branches_reach_the_frame() -> None:
    inner = call(INT, "case", call(BOOL, ">", ref(INT), lit(1)), call(INT, "%", ref(INT), lit(0)), lit(9))
    outer = call(INT, "case", call(BOOL, ">", ref(INT), lit(0)), inner, lit(8))
    assert over(outer, column(INT, [0, 1, 2])) == ([8, 9, None], 1)


def test_the_two_tables_of_operators_share_no_name() -> None:
    from filters.expressions.evaluate import _CONDITIONALS

    assert not FUNCTIONS.keys() & _CONDITIONALS.keys()
