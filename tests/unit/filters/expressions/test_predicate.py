"""WHERE conditions in the engine's form: which parts are indexed, which are residual, and which are the same."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from filters.expressions.evaluate import true_rows
from filters.expressions.expression import FALSE, TRUE, ColumnRef, Expression, FunctionCall, Literal
from filters.expressions.predicate import EVERY_ROW, MAX_CLAUSES, NO_ROW, Condition, IndexAtom, ResidualAtom, normalise
from filters.values.intervals import NOT_NULL, ONLY_NULL, compare
from filters.values.vector import ListFrame, Vector
from lineage.schema import Type

A = ColumnRef(Type.INT, "a", 0)
B = ColumnRef(Type.FLOAT, "b", 1)
S = ColumnRef(Type.STRING, "s", 2)
FLAG = ColumnRef(Type.BOOL, "flag", 3)
NULL = Literal(Type.NULL, None)


def call(op: str, *args: Expression) -> FunctionCall:
    return FunctionCall(Type.BOOL, op, args)


def number(value: float | None) -> Literal:
    return Literal(Type.FLOAT if isinstance(value, float) else Type.INT, value)


def both(*args: Expression) -> FunctionCall:
    return call("and", *args)


def either(*args: Expression) -> FunctionCall:
    return call("or", *args)


def negated(arg: Expression) -> FunctionCall:
    return call("not", arg)


def text(condition: Condition) -> str:
    clauses = [" | ".join(map(str, clause)) for clause in condition.clauses]
    return "never" if condition.never else " & ".join([*map(str, condition.single()), *clauses])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call(">", A, number(7)), "a in [8, )"),
        (call("<", number(7), A), "a in [8, )"),
        (call(">=", number(7), A), "a in [, 8)"),
        (negated(call(">", A, number(7))), "a in [, 8)"),
        (negated(call("<", number(7), A)), "a in [, 8)"),
        (both(call(">=", A, number(2)), call("<=", A, number(5))), "a in [2, 6)"),
        (negated(both(call(">=", A, number(2)), call("<=", A, number(5)))), "a in [, 2) u [6, )"),
        (either(call("=", A, number(2)), call("=", A, number(3))), "a in [2, 4)"),
        (call("in", A, number(4), number(1)), "a in [1, 2) u [4, 5)"),
        (call("in", A, number(4), NULL), "a in [4, 5)"),
        (negated(call("in", A, number(4))), "a in [, 4) u [5, )"),
        (negated(call("in", A, number(4), NULL)), "never"),
        (call("is_null", A), "a in NULL"),
        (negated(call("is_null", A)), "a in [, )"),
        (FLAG, "flag in [1, 2)"),
        (negated(FLAG), "flag in [0, 1)"),
        (negated(negated(FLAG)), "flag in [1, 2)"),
        (call("=", A, NULL), "never"),
        (negated(call("=", A, NULL)), "never"),
        (TRUE, ""),
        (FALSE, "never"),
        (negated(FALSE), ""),
        (Literal(Type.BOOL, None), "never"),
        (negated(Literal(Type.BOOL, None)), "never"),
        (both(TRUE, FLAG), "flag in [1, 2)"),
        (either(TRUE, FLAG), ""),
        (either(FALSE, FLAG), "flag in [1, 2)"),
        (both(FALSE, FLAG), "never"),
        (both(call("<", A, number(3)), call(">", A, number(3))), "never"),
        (both(call("is_null", A), call(">", A, number(3))), "never"),
        (either(call("is_null", A), negated(call("is_null", A))), ""),
        (either(call("is_null", A), call(">", A, number(3))), "a in [4, ) u NULL"),
        (call("<", A, B), '<("a", "b")'),
        (negated(call("<", A, B)), 'not(<("a", "b"))'),
        (call("=", number(1), number(1)), "=(int:1, int:1)"),
        (call("in", A, B, number(1)), 'in("a", "b", int:1)'),
        (call("is_null", call("+", A, number(1))), 'is_null(+("a", int:1))'),
        (either(call("<", A, number(3)), FLAG), "a in [, 3) | flag in [1, 2)"),
        (negated(both(call("<", A, number(3)), FLAG)), "a in [3, ) | flag in [0, 1)"),
        (either(call("=", A, NULL), FLAG), "flag in [1, 2)"),
    ],
)
def test_an_expression_becomes_this_condition(expression: Expression, expected: str) -> None:
    assert text(normalise(expression)) == expected


def test_no_expression_keeps_every_row() -> None:
    assert normalise(None) is EVERY_ROW and list(EVERY_ROW.atoms()) == [] and not EVERY_ROW.never


def test_never_is_one_condition() -> None:
    assert normalise(FALSE) is NO_ROW and NO_ROW.never and NO_ROW != EVERY_ROW


def test_conjuncts_on_one_column_are_one_atom_and_columns_come_by_position() -> None:
    found = normalise(both(call(">", B, number(1.5)), call("<", A, number(9)), call("is_null", S), call(">", A, number(2))))
    assert [atom.position for atom in found.conjuncts] == [0, 1, 2]
    assert found.conjuncts[0].intervals == compare(Type.INT, ">=", 3).intersect(compare(Type.INT, "<=", 8))
    assert found.conjuncts[2].intervals == ONLY_NULL and not found.residuals and not found.clauses


def test_a_disjunction_over_several_columns_keeps_its_atoms_together() -> None:
    found = normalise(either(call("<", A, number(3)), call("<", A, B), call(">", A, number(8)), FLAG, call("=", S, B)))
    assert found.conjuncts == () and found.residuals == ()
    (clause,) = found.clauses
    assert [str(atom) for atom in clause] == ["a in [, 3) u [9, )", "flag in [1, 2)", 'or(<("a", "b"), =("s", "b"))']
    assert list(found.atoms()) == list(clause)


def test_a_disjunction_of_residuals_alone_is_one_residual() -> None:
    found = normalise(either(call("<", A, B), call("like", S, Literal(Type.STRING, "%x"))))
    assert found.clauses == () and found.conjuncts == ()
    (atom,) = found.residuals
    assert isinstance(atom, ResidualAtom) and isinstance(atom.expression, FunctionCall) and atom.expression.op == "or"


def test_or_over_ands_becomes_clauses() -> None:
    found = normalise(either(both(call("<", A, number(1)), FLAG), both(call(">", A, number(5)), call("is_null", B))))
    assert [atom.position for atom in found.conjuncts] == [0], "a < 1 OR a > 5 is one union"
    assert len(found.clauses) == 3 and all(len(clause) == 2 for clause in found.clauses)


def three_columns(i: int) -> FunctionCall:
    """A conjunction that shares no column set with the others, so that a product of them does not collapse."""
    columns = [ColumnRef(Type.INT, f"c{10 * i + k}", 10 * i + k) for k in range(2)]
    return both(*(call("<", column, number(i)) for column in columns))


def test_a_conjunct_of_64_clauses_is_spread_and_one_of_more_is_one_residual() -> None:
    most = either(*(three_columns(i) for i in range(6)))
    assert len(normalise(most).clauses) == 64 == MAX_CLAUSES
    beyond = either(*(three_columns(i) for i in range(7)))
    found = normalise(both(beyond, FLAG))
    assert found.clauses == () and found.residuals == (ResidualAtom(beyond),)
    assert [atom.name for atom in found.conjuncts] == ["flag"], "other conjuncts stay indexed"


def test_a_negated_conjunction_of_more_than_64_disjunctions_is_one_residual_with_its_not() -> None:
    inner = both(*(either(*three_columns(i).args) for i in range(7)))
    found = normalise(negated(inner))
    assert found.residuals == (ResidualAtom(negated(inner)),)


def test_more_than_64_conjuncts_at_the_top_stay_conjuncts() -> None:
    columns = [ColumnRef(Type.INT, f"c{i}", i) for i in range(100)]
    found = normalise(both(*(call("<", column, number(1)) for column in columns)))
    assert len(found.conjuncts) == 100 and not found.residuals


def test_a_deep_conjunction_needs_no_recursion() -> None:
    expression: Expression = call(">", A, number(0))
    for i in range(5000):
        expression = both(expression, call("<", A, number(10_000 - i)))
    assert text(normalise(expression)) == "a in [1, 5001)"


def test_conjuncts_in_any_order_and_nesting_are_one_condition() -> None:
    parts = [
        call(">", A, number(3)),
        call("<", A, B),
        either(FLAG, call("<", B, number(0.5))),
        call("like", S, Literal(Type.STRING, "a%")),
        negated(call("is_null", S)),
    ]
    found = {normalise(both(*order)) for order in permutations(parts)}
    found |= {normalise(both(both(parts[3], parts[0]), both(parts[2], both(parts[4], parts[1]))))}
    found |= {normalise(both(*parts, *parts))}
    assert len(found) == 1


def test_a_disjunction_in_any_order_is_one_condition() -> None:
    parts = [call(">", A, number(3)), FLAG, call("is_null", B)]
    assert len({normalise(either(*order)) for order in permutations(parts)}) == 1


def test_equal_sets_written_differently_are_one_condition() -> None:
    same = [
        call(">", A, number(2)),
        call(">=", A, number(3)),
        call(">", A, number(2.5)),
        negated(call("<=", A, number(2))),
        call("<", number(2), A),
        either(call("=", A, number(3)), call(">", A, number(3))),
    ]
    assert len({normalise(expression) for expression in same}) == 1 and text(normalise(same[0])) == "a in [3, )"


def test_different_conditions_are_different_conditions() -> None:
    different = [
        None,
        FALSE,
        call(">", A, number(2)),
        call(">", B, number(2)),
        negated(call("is_null", A)),
        call("is_null", A),
        both(FLAG, call("is_null", A)),
        either(FLAG, call("is_null", A)),
        call("=", S, Literal(Type.STRING, "a")),
        call("=", S, Literal(Type.STRING, "a | b")),
        call("<", A, B),
        call("=", S, Literal(Type.STRING, "')")),
    ]
    assert len({normalise(expression) for expression in different}) == len(different)


def test_a_null_free_column_condition_is_kept_because_null_is_outside() -> None:
    (atom,) = normalise(negated(call("is_null", A))).conjuncts
    assert atom == IndexAtom(0, "a", NOT_NULL)


def test_residuals_that_differ_in_the_sign_of_a_zero_are_different_conditions() -> None:
    """x * -0.0 is -0.0 where x * 0.0 is 0.0, and as text the two are told apart."""

    def shown(zero: float) -> FunctionCall:
        product = FunctionCall(Type.FLOAT, "*", (B, Literal(Type.FLOAT, zero)))
        return call("=", S, FunctionCall(Type.STRING, "cast", (product,)))

    frame = ListFrame([Vector(Type.INT, np.zeros(1, np.int64)), Vector(Type.FLOAT, np.ones(1)), Vector.of_strings(["-0.0"])])
    assert true_rows(shown(-0.0), frame).tolist() != true_rows(shown(0.0), frame).tolist()
    assert normalise(shown(-0.0)) != normalise(shown(0.0))
