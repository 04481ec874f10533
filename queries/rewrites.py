"""Rewrites of the tree of a query: other trees with the same answer at every instant, and the conditions for that.

    sel(A op B)              =  sel(A) op sel(B)                            op: UNION, EXCEPT, INTERSECT, with ALL or not
    sel(distinct A)          =  distinct(sel(A))
    sel(group A)             =  group(sel(A))                               where it reads keys only, and there are keys
    sel(sel A), sel(block)   =  one Select, one Block
    (A EXCEPT ALL B) join C  =  columns((A join C) EXCEPT ALL (B join C))   over all columns of A and C: the columns that the join
                                                                            gives are computed above
    (A EXCEPT B) join C      =  columns((distinct A join C) EXCEPT ALL (B join C))
    distinct(A join B)       =  distinct(distinct A join distinct B)
    distinct(A UNION ALL B)  =  distinct(distinct A UNION ALL distinct B)
    distinct(A)              =  A                                           where no row of A can be there twice

With a, b, c copies of a row in A, B, C, the third from below holds because max(0, a - b) c = max(0, a c - b c), for each row of A
and each of C alone. Once columns are left out rows meet whose differences have different signs, so the columns go last; and
subtracting B itself, as the update-patterns paper's Figure 6 does, takes b copies instead of b c. `EXCEPT` needs one copy of A:
then the result has c copies iff a > 0 and b = 0. distinct(A EXCEPT ALL B) is not distinct A EXCEPT distinct B: of two copies less
one, one is left.

No rewrite takes place where equal values need not give equal results, or where more than the values counts:

    user functions       may say another thing of the same value
    floats               -0.0 equals 0.0, but not when it is cast to a text: a float may only be compared, or passed on
    frozen tables        count as they were when a row came, and a row comes from a minus at another time
    FIRST, LAST          of rows that begin at different times under the two trees: nothing below them but selections moves
    streams              ISTREAM and windows above it: the same changes, but nothing below them is moved either
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from filters.expressions.expression import (
    ColumnRef,
    Expression,
    FunctionCall,
    UserCall,
    columns_of,
    replace_columns,
    user_functions_of,
)  # fmt: skip
from filters.expressions.expression import walk as walk_expression
from lineage.schema import Column, Type
from queries.bound import OutputColumn
from queries.joins import BandEdge, EqualityEdge, Join, JoinResidual, KeyColumn
from queries.nodes import Block, Distinct, GroupBy, JoinNode, Node, Select, SetOperation, ToStream, Window, column_refs
from queries.select_nodes import conjunction, is_identity
from queries.split import conjuncts_of, split
from queries.tree import mapped, walk, with_children, word_of

#: What may be asked of a float without telling -0.0 from 0.0.
_COMPARING = frozenset({"=", "<>", "<", "<=", ">", ">=", "in", "is_null"})


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite that was tried: the change, or the reason against it."""

    #: "selection pushed down", "negation pulled up", "distinct pushed down" or "distinct dropped"
    name: str
    #: which node, in words
    where: str
    #: empty iff it was done, or could be
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A tree and the rewrites that led to it."""

    root: Node
    rewrites: tuple[Rewrite, ...]
    #: from a node of this tree to the one of the tree before that has the same rows, where it is another
    same: Mapping[Node, Node] = field(default_factory=dict)
    #: from a node of this tree to one of the tree before that lets as large a part of what comes in go out
    like: Mapping[Node, Node] = field(default_factory=dict)


# ---- always done


def simplified(root: Node) -> Rewritten:
    """Selections as far down as they go, and no DISTINCT over rows that are distinct."""
    found: list[Rewrite] = []

    def change(node: Node) -> Node:
        if isinstance(node, Select) and node.condition is not None:
            return _push_selection(node, found)
        if isinstance(node, Distinct) and is_distinct(node.child):
            found.append(Rewrite("distinct dropped", word_of(node.child)))
            return node.child
        return node

    return Rewritten(mapped(root, change), tuple(found))


def _push_selection(node: Select, found: list[Rewrite]) -> Node:
    """The Select without the conjuncts that its child takes."""
    taken: list[Expression] = []
    kept: list[Expression] = []
    for conjunct in conjuncts_of(node.condition):
        reason = _refusal(node.child, conjunct)
        if reason:
            found.append(Rewrite("selection pushed down", word_of(node.child), reason))
        (taken if reason is None else kept).append(conjunct)
    if not taken:
        return node
    found.append(Rewrite("selection pushed down", word_of(node.child)))
    child = _selected(node.child, conjunction(taken), found)
    rest = conjunction(kept)
    if rest is None and is_identity(child, node.columns):
        return child
    return replace(node, child=child, condition=rest)


def _refusal(child: Node, condition: Expression) -> str | None:
    """Why a condition stays above a node; empty if nothing like it could go below, None if it goes."""
    match child:
        case SetOperation() | Distinct():
            pass
        case GroupBy():
            if child.scalar or any(ref.position >= child.n_keys for ref in columns_of(condition)):
                return ""
        case Select() | Block():
            condition = _composed(condition, child.columns)
        case _:
            return ""
    return _unsteady([condition]) or None


def _selected(node: Node, condition: Expression | None, found: list[Rewrite]) -> Node:
    """The rows of a node that satisfy a condition which may go below it."""
    if condition is None:
        return node
    match node:
        case SetOperation():
            left, right = (_over(child, condition, found) for child in node.children)
            return replace(node, left=left, right=right)
        case Distinct() | GroupBy():
            return replace(node, child=_over(node.child, condition, found))
        case Select():
            both = conjunction([*conjuncts_of(node.condition), *conjuncts_of(_composed(condition, node.columns))])
            return _push_selection(replace(node, condition=both), found)
        case Block():
            own = conjunction([*conjuncts_of(node.condition), *conjuncts_of(_composed(condition, node.columns))])
            join = None
            if node.join is not None:
                join = split(own, [item.name for item in node.inputs], [len(item.schema) for item in node.inputs])
            return replace(node, condition=own, join=join)
    raise AssertionError(f"nothing goes below {node}")


def _over(child: Node, condition: Expression, found: list[Rewrite]) -> Node:
    """Return a Select over a child, simplified; columns keep the child's names."""
    moved = replace_columns(condition, lambda ref: ColumnRef(ref.type, child.columns[ref.position].name, ref.position))
    columns = tuple(OutputColumn(ref.name, ref) for ref in column_refs(child.columns))
    return _push_selection(Select(child, moved, columns), found)


def is_distinct(node: Node) -> bool:
    """Whether no row of a node can be there twice."""
    match node:
        case Distinct() | GroupBy():
            return True
        case SetOperation(kind=kind, all=all_):
            return not all_ or (kind != "union" and is_distinct(node.left)) or (kind == "intersect" and is_distinct(node.right))
        case Select(child=child, columns=columns):
            kept = {column.expression for column in columns}
            return is_distinct(child) and all(ref in kept for ref in column_refs(child.columns))
        case JoinNode(inputs=inputs, columns=columns) if not node.is_stream:
            kept = {column.expression for column in columns}
            wide = column_refs([column for item in inputs for column in item.columns])
            return all(map(is_distinct, inputs)) and all(ref in kept for ref in wide)
    return False


# ---- done where it is cheaper


def pulled_up(root: Node) -> Rewritten:
    """Every negation below a join above it, where that is valid."""
    return _rewritten(root, "negation pulled up", _pull_up, lambda node: isinstance(node, JoinNode) and bool(_minuses(node)))


def pushed_down(root: Node) -> Rewritten:
    """Every DISTINCT also below the join or union that it stands over, where that is valid."""
    return _rewritten(root, "distinct pushed down", _push_distinct, lambda node: isinstance(node, Distinct))


def _rewritten(
    root: Node, name: str, change: Callable[[Node, dict[Node, Node]], Node | str], fits: Callable[[Node], bool]
) -> Rewritten:  # fmt: skip
    found: list[Rewrite] = []
    same: dict[Node, Node] = {}
    like: dict[Node, Node] = {}
    barred = _barred(root)

    def tried(node: Node) -> Node:
        rebuilt = made = with_children(node, [tried(child) for child in node.children])
        if fits(rebuilt):
            changed = barred or change(rebuilt, like)
            if not isinstance(changed, str):
                made = changed
            if changed:
                found.append(Rewrite(name, word_of(node), changed if isinstance(changed, str) else ""))
        # hashing a tree takes longer than rewriting it
        same.update((other, node) for other in (rebuilt, made) if other is not node)
        return made

    return Rewritten(tried(root), tuple(dict.fromkeys(found)), same, like)


def _barred(root: Node) -> str:
    """Why no row may begin at another time under this tree; empty if it may."""
    for node in walk(root):
        if isinstance(node, GroupBy) and any(item.kind in ("first", "last") for item in node.aggregates):
            return "FIRST and LAST depend on when rows begin"
        if isinstance(node, ToStream | Window):
            return "a stream is made of it"
    return ""


def _minuses(node: JoinNode) -> list[int]:
    """The inputs that are a minus, or columns of one."""
    return [k for k, item in enumerate(node.inputs) if _minus_of(item) is not None]


def _minus_of(node: Node) -> SetOperation | None:
    below = node.child if isinstance(node, Select) else node
    return below if isinstance(below, SetOperation) and below.kind == "except" else None


def _pull_up(node: Node, like: dict[Node, Node]) -> Node | str:
    """The first minus among the inputs of a join, above it."""
    assert isinstance(node, JoinNode)
    if any(node.frozen) or node.is_stream:
        return "a frozen table counts when its row comes"
    at = _minuses(node)[0]
    item = node.inputs[at]
    minus = _minus_of(item)
    assert minus is not None
    shown = [column.expression for column in item.columns] if isinstance(item, Select) else column_refs(minus.columns)
    if not all(isinstance(expression, ColumnRef) for expression in shown):
        return "columns are computed between the two"
    if isinstance(item, Select) and item.condition is not None:
        return "a condition stays between the two"
    reason = _unsteady([] if node.condition is None else [node.condition])
    if reason:
        return reason
    positions = [expression.position for expression in shown if isinstance(expression, ColumnRef)]
    kept = minus.left if minus.all else _once(minus.left)
    left, place = _widened(node, at, kept, positions)
    right, _ = _widened(node, at, minus.right, positions)
    pulled = SetOperation("except", True, left, right)
    like |= {left: node, right: node, pulled: minus}
    columns = tuple(OutputColumn(column.name, _moved(column.expression, place, left.columns)) for column in node.columns)
    return Select(pulled, None, columns, node.defaults)


def _widened(node: JoinNode, at: int, child: Node, positions: Sequence[int]) -> tuple[JoinNode, dict[int, int]]:
    """The join with another input `at`, of which it read these columns, and with all columns; and where its columns are now."""
    inputs = (*node.inputs[:at], child, *node.inputs[at + 1 :])
    place: dict[int, int] = {}
    old = new = 0
    for k, (before, after) in enumerate(zip(node.inputs, inputs)):
        own = positions if k == at else range(len(before.columns))
        place |= {old + p: new + position for p, position in enumerate(own)}
        old, new = old + len(before.columns), new + len(after.columns)
    wide = [column for item in inputs for column in item.columns]
    refs = column_refs([Column(f"column_{k}", column.type) for k, column in enumerate(wide)])
    columns = tuple(OutputColumn(ref.name, ref) for ref in refs)
    condition = None if node.condition is None else _moved(node.condition, place, columns)
    join = _moved_join(node.join, at, positions, place, columns)
    return replace(node, inputs=inputs, condition=condition, join=join, columns=columns, defaults=()), place


def _moved_join(join: Join, at: int, positions: Sequence[int], place: dict[int, int], wide: Sequence[OutputColumn]) -> Join:
    def key(number: int, column: KeyColumn) -> KeyColumn:
        return column.moved(positions.__getitem__) if number == at else column

    equalities = tuple(
        EqualityEdge(edge.left, edge.right, tuple((key(edge.left, left), key(edge.right, right)) for left, right in edge.pairs))
        for edge in join.equalities
    )
    bands = tuple(
        BandEdge(band.left, band.right, key(band.left, band.left_column), key(band.right, band.right_column), band.low, band.high)
        for band in join.bands
    )
    residuals = []
    for residual in join.residuals:
        expression = _moved(residual.expression, place, wide)
        # the operator-level join computes it over the concatenation; nothing is shared by it
        residuals.append(JoinResidual(residual.inputs, expression, (residual.key[0], expression)))
    return Join(join.names, join.own, equalities, bands, tuple(residuals))


def _push_distinct(node: Node, like: dict[Node, Node]) -> Node | str:
    """Put DISTINCT also over the inputs of its child."""
    assert isinstance(node, Distinct)
    below = node.child
    outer = below.child if isinstance(below, Select) and isinstance(below.child, JoinNode) else below
    if isinstance(outer, SetOperation) and outer.kind == "union" and outer.all:
        return replace(node, child=replace(outer, left=_once(outer.left), right=_once(outer.right)))
    if isinstance(outer, SetOperation) and outer.kind == "except":
        return "of two copies less one, one is left"
    if not isinstance(outer, JoinNode):
        return ""
    if any(outer.frozen) or outer.is_stream:
        return "a frozen table counts when its row comes"
    expressions: list[Expression] = [
        column.expression for column in outer.columns if not isinstance(column.expression, ColumnRef)
    ]
    expressions += [] if outer.condition is None else [outer.condition]
    if isinstance(below, Select):
        expressions += [column.expression for column in below.columns if not isinstance(column.expression, ColumnRef)]
        expressions += [] if below.condition is None else [below.condition]
    reason = _unsteady(expressions)
    if reason:
        return reason
    inputs = tuple(map(_once, outer.inputs))
    if inputs == outer.inputs:
        return ""
    joined = replace(outer, inputs=inputs)
    like[joined] = outer
    child = replace(below, child=joined) if isinstance(below, Select) else joined
    return child if is_distinct(child) else replace(node, child=child)


def _once(node: Node) -> Node:
    return node if is_distinct(node) else Distinct(node)


# ---- conditions


def _unsteady(expressions: Sequence[Expression]) -> str:
    """Why an expression may say different things of values that are equal; empty if it does not."""
    for expression in expressions:
        if user_functions_of(expression):
            return "a user function may say another thing next time"
        if not _compares_floats(expression):
            return "-0.0 equals 0.0, but may give something else"
    return ""


def _compares_floats(expression: Expression) -> bool:
    """Whether floats are only compared."""
    for node in walk_expression(expression):
        if isinstance(node, FunctionCall | UserCall):
            passed = any(isinstance(arg, ColumnRef) and arg.type is Type.FLOAT for arg in node.args)
            if passed and not (isinstance(node, FunctionCall) and node.op in _COMPARING):
                return False
    return not (isinstance(expression, ColumnRef) and expression.type is Type.FLOAT)


def _composed(expression: Expression, columns: Sequence[Column | OutputColumn]) -> Expression:
    """Return an expression over columns as one over the columns from which they are computed."""
    return replace_columns(expression, lambda ref: _expression(columns[ref.position]))


def _expression(column: Column | OutputColumn) -> Expression:
    assert isinstance(column, OutputColumn)
    return column.expression


def _moved(expression: Expression, place: dict[int, int], columns: Sequence[Column | OutputColumn]) -> Expression:
    def moved(ref: ColumnRef) -> ColumnRef:
        at = place[ref.position]
        return ColumnRef(ref.type, columns[at].name, at)

    return replace_columns(expression, moved)
