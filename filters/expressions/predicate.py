"""A WHERE condition in the form the engine runs: conjunctions of intervals, clauses and residual expressions.

    condition  =  AND over attributes   column in intervals             (grouped filters)
               AND over `residuals`     expression is true              (predicate modules)
               AND over `clauses`       OR of such atoms                (a bit per disjunct, as in CACQ)

NOT is pushed down to the atoms first. Under AND and OR "not true" needs no third value (a WHERE keeps a row only when
it is true), so an atom is just the set of rows for which it is true; a negated comparison is the complementary
comparison, which leaves NULL out on both sides. A disjunction over one attribute becomes one union of intervals. A
conjunct whose conjunctive normal form would pass `MAX_CLAUSES` clauses is kept whole as one residual.

Atoms and clauses are in a canonical order: equal conditions are the same set of rows for every stream content, so they
share a slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Literal
from filters.values.intervals import NOT_NULL, NOTHING, ONLY_NULL, Intervals, compare, texts_beginning, union_of
from lineage.schema import Type

#: Beyond this many clauses a conjunct becomes one residual.
MAX_CLAUSES = 64

#: The comparison that is TRUE where the other is FALSE, and the one with its sides exchanged.
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(slots=True, unsafe_hash=True)
class IndexAtom:
    """`column in intervals`: served by the column's grouped filter.

    Nobody changes one. It is not frozen because that triples what making one costs, nor a tuple because that takes more memory:
    a query has several.
    """

    position: int
    name: str
    intervals: Intervals

    def __str__(self) -> str:
        return f"{self.name} in {self.intervals}"


class ResidualAtom(NamedTuple):
    """A boolean expression no index serves."""

    expression: Expression

    def __str__(self) -> str:
        return str(self.expression)


Atom = IndexAtom | ResidualAtom
Clause = tuple[Atom, ...]


class Condition(NamedTuple):
    #: one set of values per constrained attribute, by column position
    conjuncts: tuple[IndexAtom, ...]
    residuals: tuple[ResidualAtom, ...]
    #: disjunctions over several attributes; each has at least two atoms
    clauses: tuple[Clause, ...]
    #: no row can satisfy it
    never: bool = False

    def single(self) -> tuple[Atom, ...]:
        """The atoms that must each be true."""
        return (*self.conjuncts, *self.residuals)

    def atoms(self) -> Iterable[Atom]:
        """Yield every atom, also the atoms of clauses."""
        yield from self.single()
        for clause in self.clauses:
            yield from clause


EVERY_ROW = Condition((), (), ())
NO_ROW = Condition((), (), (), never=True)


def normalise(expression: Expression | None, clauses_apart: bool = True) -> Condition:
    """The condition of a bound boolean expression; None keeps every row.

    Without `clauses_apart` a disjunction over several attributes is one residual: its outcome can be kept with a row.
    """
    if expression is None:
        return EVERY_ROW
    return gathered([part for conjunct in top_conjuncts(expression) for part in parts_of(conjunct, clauses_apart)])


def parts_of(conjunct: Expression, clauses_apart: bool = True) -> list[Clause | None]:
    """A conjunct as clauses of which each must hold; an empty one holds for no row, None for every row."""
    found = _clauses(_formula(conjunct, False))
    if found is None:
        return [(ResidualAtom(conjunct),)]
    simplified = [_simplify(clause) for clause in found]
    if not clauses_apart and any(simple is not None and len(simple) > 1 for simple in simplified):
        return [(ResidualAtom(conjunct),)]
    return simplified


def gathered(parts: Iterable[Clause | None]) -> Condition:
    """The condition that all parts hold, in its canonical order."""
    atoms: list[IndexAtom] = []
    residuals: dict[str, ResidualAtom] = {}
    clauses: dict[str, Clause] = {}
    for part in parts:
        if part is None:
            continue
        if not part:
            return NO_ROW
        if len(part) > 1:
            ordered = tuple(sorted(part, key=str))
            clauses[" | ".join(map(str, ordered))] = ordered
            continue
        atom = part[0]
        if isinstance(atom, ResidualAtom):
            residuals[str(atom)] = atom
        else:
            atoms.append(atom)
    found_conjuncts = conjunction(atoms)
    if found_conjuncts.never or not (residuals or clauses):
        return found_conjuncts
    ordered_clauses = tuple(clauses[key] for key in sorted(clauses))
    return Condition(found_conjuncts.conjuncts, tuple(residuals[key] for key in sorted(residuals)), ordered_clauses)


def conjunction(atoms: list[IndexAtom]) -> Condition:
    """The condition that all atoms hold, atoms on one attribute met."""
    attributes: dict[int, IndexAtom] = {}
    for atom in atoms:
        before = attributes.get(atom.position)
        if before is not None:
            atom = IndexAtom(atom.position, atom.name, before.intervals.intersect(atom.intervals))
        if atom.intervals.empty:
            return NO_ROW
        attributes[atom.position] = atom
    kept = tuple([attributes[at] for at in sorted(attributes) if not attributes[at].intervals.everything])
    return Condition(kept, (), ()) if kept else EVERY_ROW


def top_conjuncts(expression: Expression) -> list[Expression]:
    """The top-level conjuncts, without recursion."""
    found: list[Expression] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, FunctionCall) and node.op == "and":
            stack.extend(reversed(node.args))
        else:
            found.append(node)
    return found


@dataclass(frozen=True, slots=True)
class _Node:
    """An AND or OR of formulas in negation normal form."""

    op: str
    parts: tuple[_Formula, ...]


_Formula = _Node | IndexAtom | ResidualAtom | bool


def _formula(expression: Expression, negated: bool) -> _Formula:
    """Negation normal form: NOT only inside residual atoms. The binder bounds the depth."""
    if isinstance(expression, FunctionCall):
        if expression.op in ("and", "or"):
            op = expression.op if not negated else ("or" if expression.op == "and" else "and")
            return _Node(op, tuple(_formula(arg, negated) for arg in expression.args))
        if expression.op == "not":
            return _formula(expression.args[0], not negated)
    return _atom(expression, negated)


def _atom(expression: Expression, negated: bool) -> _Formula:
    if isinstance(expression, Literal):
        return expression.value is (not negated)
    if isinstance(expression, ColumnRef) and expression.type is Type.BOOL:
        return IndexAtom(expression.position, expression.name, compare(Type.BOOL, "=", not negated))
    if isinstance(expression, FunctionCall):
        indexed = _indexed(expression, negated)
        if indexed is not None:
            return indexed
    return ResidualAtom(FunctionCall(Type.BOOL, "not", (expression,)) if negated else expression)


def _indexed(call: FunctionCall, negated: bool) -> IndexAtom | None:
    """The atom when a call compares one column with constants, else None."""
    found = compared(call, negated)
    if found is None or not isinstance(found[0], ColumnRef):
        return None
    return IndexAtom(found[0].position, found[0].name, found[1])


def compared(call: FunctionCall, negated: bool) -> tuple[Expression, Intervals] | None:
    """What a call compares with constants, and for which of its values it is true (negated: false); None if it does not."""
    if call.op in NEGATED:
        left, right, op = call.args[0], call.args[1], call.op
        if isinstance(left, Literal):
            left, right, op = right, left, FLIPPED[op]
        if not isinstance(right, Literal):
            return None
        return left, compare(left.type, NEGATED[op] if negated else op, right.value)
    if not call.args:
        return None
    subject = call.args[0]
    if call.op == "is_null":
        return subject, NOT_NULL if negated else ONLY_NULL
    if call.op == "like" and len(call.args) == 2 and isinstance(call.args[1], Literal):
        begins = _prefix(call.args[1].value)
        return None if begins is None else (subject, _complement(begins) if negated else begins)
    if call.op == "in" and all(isinstance(arg, Literal) for arg in call.args[1:]):
        values = [arg.value for arg in call.args[1:] if isinstance(arg, Literal)]
        found = union_of([compare(subject.type, "=", value) for value in values])
        if negated:
            # x NOT IN (.., NULL) is never true: it is false or unknown
            found = NOTHING if None in values else _complement(found)
        return subject, found
    return None


def _prefix(pattern: object) -> Intervals | None:
    """The texts that match a LIKE pattern without wildcards but one % at its end; None for another."""
    if not isinstance(pattern, str) or "_" in pattern or "%" in pattern[:-1]:
        return None
    if not pattern.endswith("%"):
        return compare(Type.STRING, "=", pattern)
    return texts_beginning(pattern[:-1])


def _complement(intervals: Intervals) -> Intervals:
    """The values outside, NULL left out."""
    spans = []
    previous = None
    for lo, hi in intervals.spans:
        if lo is not None:
            spans.append((previous, lo))
        if hi is None:
            return Intervals(tuple(spans))
        previous = hi
    spans.append((previous, None))
    return Intervals(tuple(spans))


def _clauses(formula: _Formula) -> list[Clause] | None:
    """Conjunctive normal form as clauses; an empty clause is false. None beyond `MAX_CLAUSES`."""
    if isinstance(formula, bool):
        return [] if formula else [()]
    if not isinstance(formula, _Node):
        return [(formula,)]
    parts = [_clauses(part) for part in formula.parts]
    if formula.op == "and":
        found: list[Clause] = []
        for part in parts:
            if part is None:
                return None
            found.extend(part)
        return found if len(found) <= MAX_CLAUSES else None
    product: list[Clause] = [()]
    for part in parts:
        if part is None or len(product) * len(part) > MAX_CLAUSES:
            return None
        product = [_merge(left, right) for left in product for right in part]
    return product


def _merge(left: Clause, right: Clause) -> Clause:
    """The disjunction of two clauses, atoms on one attribute united."""
    atoms = list(left)
    for atom in right:
        if isinstance(atom, IndexAtom):
            for i, other in enumerate(atoms):
                if isinstance(other, IndexAtom) and other.position == atom.position:
                    atoms[i] = IndexAtom(atom.position, atom.name, other.intervals.union(atom.intervals))
                    break
            else:
                atoms.append(atom)
        elif atom not in atoms:
            atoms.append(atom)
    return tuple(atoms)


def _simplify(clause: Clause) -> Clause | None:
    """Drop atoms no row satisfies and unite the residual ones; None when every row satisfies the clause."""
    if len(clause) == 1:
        atom = clause[0]
        if isinstance(atom, IndexAtom):
            return None if atom.intervals.everything else () if atom.intervals.empty else clause
        return clause
    indexed = tuple(atom for atom in clause if isinstance(atom, IndexAtom) and not atom.intervals.empty)
    if any(atom.intervals.everything for atom in indexed):
        return None
    residual = tuple(atom.expression for atom in clause if isinstance(atom, ResidualAtom))
    if not residual:
        return indexed
    whole = residual[0] if len(residual) == 1 else FunctionCall(Type.BOOL, "or", residual)
    return (*indexed, ResidualAtom(whole))
