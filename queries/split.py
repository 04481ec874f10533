"""Splitting the condition of a query over several inputs into the parts of `queries/joins.py`.

    1. conjuncts     the condition as a conjunction; NOT is pushed through OR, NOT and comparisons, which is exact where only
                     TRUE counts
    2. equalities    `x = y` of two plain columns, or of two expressions each over one input and not over the same: the classes
                     of columns and expressions that are equal, over all inputs. Each input is represented in a class by its
                     first column, by an expression where it has none; edges join the representatives, and its other members
                     equal the first by a condition of the input alone. Expressions with user functions are left to step 5: an
                     edge would call them for rows that no condition lets through
    3. constants     a comparison of a column with constants also holds for the columns of its class in other inputs
    4. bands         what `queries/bands.py` can read, intersected per pair of columns
    5. the rest      by the inputs it reads: none or one, that input's own condition; more, a residual

Each step replaces conjuncts by others that together are TRUE on the same combinations of rows. O(conjuncts * inputs**2).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from filters.expressions.expression import (
    FALSE,
    TRUE,
    ColumnRef,
    Expression,
    FunctionCall,
    Literal,
    columns_of,
    replace_columns,
    user_functions_of,
)
from filters.expressions.predicate import FLIPPED, NEGATED
from lineage.schema import COLUMN_TYPES, KEY_MAX, Type
from queries.bands import Band, read_band
from queries.joins import BandEdge, EqualityEdge, Join, JoinResidual, KeyColumn


def split(condition: Expression | None, names: Sequence[str], widths: Sequence[int]) -> Join:
    """The parts of a condition over the concatenation of inputs with these names and numbers of columns."""
    return _Splitter(names, widths).split(condition)


class _Splitter:
    """The parts found so far."""

    def __init__(self, names: Sequence[str], widths: Sequence[int]) -> None:
        self._names = tuple(name.lower() for name in names)
        self._widths = widths
        self._offsets = [sum(widths[:number]) for number in range(len(widths))]
        #: conditions of each input alone, over the concatenation; a dict for its order without repetition
        self._own: list[dict[Expression, None]] = [{} for _ in names]
        self._residuals: dict[Expression, None] = {}
        self._equalities: dict[tuple[int, int], list[tuple[KeyColumn, KeyColumn]]] = {}
        self._bands: list[BandEdge] = []

    def split(self, condition: Expression | None) -> Join:
        equalities: list[tuple[Expression, Expression]] = []
        rest: list[Expression] = []
        for conjunct in conjuncts_of(condition):
            equality = read_equality(conjunct, self._input_of)
            if equality is not None:
                equalities.append(equality)
            else:
                rest.append(conjunct)
        classes = [sorted(members, key=self._place) for members in _classes(equalities)]
        classes.sort(key=lambda members: self._place(members[0]))
        for members in classes:
            self._join_class(members)
        self._split_bands(rest + self._implied(rest, classes))
        edges = [EqualityEdge(*ends, tuple(sorted(self._equalities[ends], key=_left_place))) for ends in sorted(self._equalities)]
        own = tuple(self._own_condition(number) for number in range(len(self._names)))
        residuals = tuple(self._residual(expression) for expression in self._residuals)
        return Join(self._names, own, tuple(edges), tuple(sorted(self._bands, key=_band_place)), residuals)

    # -- equalities

    def _join_class(self, members: list[Expression]) -> None:
        """Edges between the inputs that have a member of the class, given by their place."""
        first: dict[int, Expression] = {}
        for member in members:
            (number,) = self._inputs_of(member)
            if number in first:
                self._add(FunctionCall(Type.BOOL, "=", (first[number], member)))
            else:
                first[number] = member
        for left in first:
            for right in first:
                if left < right:
                    pair = (self._key_column(first[left]), self._key_column(first[right]))
                    self._equalities.setdefault((left, right), []).append(pair)

    def _implied(self, conjuncts: list[Expression], classes: list[list[Expression]]) -> list[Expression]:
        """Comparisons with constants, said of the equal columns of other inputs; of expressions they would only be one more.

        Exact: such a comparison depends only on where the value lies among the constants, and equal values lie in the same
        place, be they int or float, -0.0 or 0.0.
        """
        columns = [[member for member in members if isinstance(member, ColumnRef)] for members in classes]
        class_of = {column.position: members for members in columns for column in members}
        found = []
        for conjunct in conjuncts:
            column = _compared_column(conjunct)
            if column is None or column.position not in class_of:
                continue
            told = {self._input_of(column)}
            for other in class_of[column.position]:
                if self._input_of(other) not in told:
                    told.add(self._input_of(other))
                    found.append(replace_columns(conjunct, lambda _, other=other: other))  # type: ignore[misc]  # bound now
        return found

    # -- bands and the rest

    def _split_bands(self, conjuncts: list[Expression]) -> None:
        bands: dict[tuple[int, int], list[tuple[Band, Expression]]] = {}
        for conjunct in conjuncts:
            # what reads one input is not looked into: it is kept for all values of its constants
            band = read_band(conjunct) if len(self._inputs_of(conjunct)) == 2 else None
            if band is None or self._input_of(band.left) == self._input_of(band.right):
                self._add(conjunct)
                continue
            if band.left.position > band.right.position:
                band = band.turned()
            for guard in band.guards:
                self._add(guard)
            bands.setdefault((band.left.position, band.right.position), []).append((band, conjunct))
        for found in bands.values():
            self._join_bands(found)

    def _join_bands(self, found: list[tuple[Band, Expression]]) -> None:
        """One edge for all the bands over the same two columns, each with the conjunct it was read from."""
        left, right = found[0][0].left, found[0][0].right
        low = max((band.low for band, _ in found if band.low is not None), default=None)
        high = min((band.high for band, _ in found if band.high is not None), default=None)
        if low is not None and high is not None and low > high:
            self._add(FALSE)
            return
        if any(bound is not None and abs(bound) > KEY_MAX for bound in (low, high)):
            # The edge is then wider than the condition, which stays as a residual.
            for _, conjunct in found:
                self._add(conjunct)
            low, high = (None if bound is None or abs(bound) > KEY_MAX else bound for bound in (low, high))
        if low is not None or high is not None:
            ends = self._input_of(left), self._input_of(right)
            self._bands.append(BandEdge(*ends, self._key_column(left), self._key_column(right), low, high))

    def _add(self, conjunct: Expression) -> None:
        """Put a conjunct where its columns are; one without columns holds for all rows of the first input, or for none."""
        if conjunct == TRUE:
            return
        inputs = self._inputs_of(conjunct)
        if len(inputs) > 1:
            self._residuals[conjunct] = None
        else:
            self._own[inputs[0] if inputs else 0][conjunct] = None

    # -- positions

    def _input_of(self, column: ColumnRef) -> int:
        return bisect_right(self._offsets, column.position) - 1

    def _inputs_of(self, expression: Expression) -> tuple[int, ...]:
        return tuple(sorted({self._input_of(column) for column in columns_of(expression)}))

    def _place(self, member: Expression) -> tuple[int, bool, int, str]:
        """Where a member of a class stands: by input, columns before expressions."""
        (number,) = self._inputs_of(member)
        if isinstance(member, ColumnRef):
            return number, False, member.position, ""
        return number, True, 0, str(self._packed(member, (number,)))

    def _key_column(self, member: Expression) -> KeyColumn:
        return KeyColumn.of(self._packed(member, self._inputs_of(member)))

    def _own_condition(self, number: int) -> Expression | None:
        conjuncts = tuple(self._own[number])
        if not conjuncts:
            return None
        whole = conjuncts[0] if len(conjuncts) == 1 else FunctionCall(Type.BOOL, "and", conjuncts)
        return self._packed(whole, (number,))

    def _residual(self, expression: Expression) -> JoinResidual:
        inputs = self._inputs_of(expression)
        key = (tuple(self._names[number] for number in inputs), self._packed(expression, inputs))
        return JoinResidual(inputs, expression, key)

    def _packed(self, expression: Expression, inputs: tuple[int, ...]) -> Expression:
        """The expression over the concatenation of these inputs alone."""
        shift, start = {}, 0
        for number in inputs:
            shift[number] = start - self._offsets[number]
            start += self._widths[number]

        def moved(column: ColumnRef) -> ColumnRef:
            return ColumnRef(column.type, column.name, column.position + shift[self._input_of(column)])

        return replace_columns(expression, moved)


def conjuncts_of(condition: Expression | None) -> list[Expression]:
    """Conditions that are all TRUE exactly where the condition is; without recursion."""
    found: list[Expression] = []
    stack = [] if condition is None else [(condition, False)]
    while stack:
        node, negated = stack.pop()
        if isinstance(node, FunctionCall):
            if node.op == "not":
                stack.append((node.args[0], not negated))
                continue
            if node.op == ("or" if negated else "and"):
                stack.extend((arg, negated) for arg in reversed(node.args))
                continue
            if negated and node.op in NEGATED:
                found.append(FunctionCall(Type.BOOL, NEGATED[node.op], node.args))
                continue
        found.append(FunctionCall(Type.BOOL, "not", (node,)) if negated else node)
    return found


def read_equality(conjunct: Expression, input_of: Callable[[ColumnRef], int]) -> tuple[Expression, Expression] | None:
    """Return the sides of an equality that can be an edge: plain columns, or one expression over each of two inputs.

    `x = x` is none: it says that x is not NULL.
    """
    if not isinstance(conjunct, FunctionCall) or conjunct.op != "=":
        return None
    left, right = conjunct.args
    if isinstance(left, ColumnRef) and isinstance(right, ColumnRef):
        return (left, right) if left.position != right.position else None
    if not all(side.type in COLUMN_TYPES and not user_functions_of(side) for side in (left, right)):
        return None
    inputs = [{input_of(column) for column in columns_of(side)} for side in (left, right)]
    return (left, right) if len(inputs[0]) == len(inputs[1]) == 1 and inputs[0] != inputs[1] else None


def _classes(equalities: list[tuple[Expression, Expression]]) -> list[list[Expression]]:
    """Return the classes of columns that the equalities make equal."""
    class_of: dict[Expression, list[Expression]] = {}
    for left, right in equalities:
        one = class_of.setdefault(left, [left])
        other = class_of.setdefault(right, [right])
        if one is not other:
            one.extend(other)
            for member in other:
                class_of[member] = one
    return list({id(members): members for members in class_of.values()}.values())


def _left_place(pair: tuple[KeyColumn, KeyColumn]) -> tuple[int, str]:
    return pair[0].place


def _band_place(edge: BandEdge) -> tuple[int, int, int, int]:
    return edge.left, edge.right, edge.left_column.position, edge.right_column.position


def _compared_column(conjunct: Expression) -> ColumnRef | None:
    """The column of `column op constant`, `constant op column` or `column IN (constants)`."""
    if not isinstance(conjunct, FunctionCall) or (conjunct.op not in FLIPPED and conjunct.op != "in"):
        return None
    columns = [arg for arg in conjunct.args if isinstance(arg, ColumnRef)]
    others = [arg for arg in conjunct.args if isinstance(arg, Literal)]
    return columns[0] if len(columns) == 1 and len(others) == len(conjunct.args) - 1 else None
