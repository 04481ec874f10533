"""Objects made again with other constants in the place of lifted literals (`queries/lifting.py`).

    Refill(plan)(constants) == the plan that binding a text with these constants gives

The objects that hold a lifted literal, however deep, are listed once, parts first; filling makes each of them anew in that order,
so what was one object is one object again. All others are shared. It knows values: frozen dataclasses, tuples, `ById`; and an
`Unmade` condition, whose normal form depends on constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Literal
from filters.expressions.predicate import (
    FLIPPED,
    NEGATED,
    Clause,
    IndexAtom,
    conjunction,
    gathered,
    normalise,
    parts_of,
    top_conjuncts,
)
from filters.values.intervals import compare
from lineage.identity import ById
from lineage.schema import Type
from queries.lifting import Lifted

#: What has been made so far, by its place.
_Made = list[Any]
_Step = Callable[[_Made], Any]
#: Of objects by identity, the place of what is made for them; None: they are shared.
_Places = dict[int, tuple[object, int | None]]


@dataclass(frozen=True, slots=True, eq=False)
class Unmade:
    """In the place of the condition of a plan: what it is made from."""

    expression: Expression | None
    clauses_apart: bool


class Refill:
    """One object, made again for other constants."""

    __slots__ = ("_root", "_steps", "_n_constants", "_place")

    def __init__(self, of: Any) -> None:
        self._root = of
        #: None until something is made
        self._steps: list[_Step] | None = None
        self._n_constants = 0
        #: the place of what is made; None: the object is shared
        self._place: int | None = None

    def __call__(self, constants: Sequence[Any]) -> Any:
        """The object for some constants."""
        if self._steps is None:
            self._steps, self._n_constants = [], len(constants)
            self._place = self._add(self._root, {})
        if self._place is None:
            return self._root
        made: _Made = list(constants)
        for step in self._steps:
            made.append(step(made))
        return made[self._place]

    def __getstate__(self) -> tuple[Any]:
        return (self._root,)

    def __setstate__(self, state: tuple[Any]) -> None:
        Refill.__init__(self, *state)

    # ---- what has to be made

    def _add(self, item: Any, places: _Places) -> int | None:
        """The place of what is made for an object; None if it is shared. The depth is that of trees and expressions."""
        known = places.get(id(item))
        if known is not None:
            return known[1]
        step = self._step(item, places)
        place = None
        assert self._steps is not None, "it is being listed"
        if step is not None:
            place = self._n_constants + len(self._steps)
            self._steps.append(step)
        places[id(item)] = item, place
        return place

    def _step(self, item: Any, places: _Places) -> _Step | None:
        if isinstance(item, Lifted):
            return _literal(item)
        if isinstance(item, Unmade):
            return self._condition(item, places)
        if isinstance(item, tuple):
            found = self._all(item, places)
            return None if found is None else _values(tuple, *found)
        if isinstance(item, ById):
            pairs = self._all(item.items(), places)
            return None if pairs is None else _values(ById, *pairs)
        if is_dataclass(item) and not isinstance(item, type):
            found = self._all([getattr(item, field.name) for field in fields(item) if field.init], places)
            return None if found is None else _object(type(item), *found)
        return None

    def _all(self, items: Iterable[Any], places: _Places) -> tuple[list[Any], list[tuple[int, int]]] | None:
        """Some objects, and of those that are made again their number and their place; None if none is."""
        kept = list(items)
        at = [self._add(item, places) for item in kept]
        holes = [(number, place) for number, place in enumerate(at) if place is not None]
        return (kept, holes) if holes else None

    # ---- conditions

    def _condition(self, unmade: Unmade, places: _Places) -> _Step:
        """The normal form: what no constant decides is found once, a comparison with one is an interval at once."""
        if unmade.expression is None or not any_lifted(unmade.expression):
            found = normalise(unmade.expression, unmade.clauses_apart)
            return lambda made: found
        conjuncts = top_conjuncts(unmade.expression)
        terms = [_term(conjunct) for conjunct in conjuncts]
        known = [term for term in terms if term is not None]
        if len(known) == len(terms):
            return lambda made: conjunction([_atom(term, made) for term in known])
        pieces: list[Callable[[_Made], list[Clause | None]]] = []
        for conjunct, term in zip(conjuncts, terms):
            pieces.append(_piece(conjunct, term, self._add(conjunct, places), unmade.clauses_apart))
        return lambda made: gathered([part for piece in pieces for part in piece(made)])


def any_lifted(expression: Expression) -> bool:
    """Whether a lifted literal stands in an expression."""
    if isinstance(expression, Literal | ColumnRef):
        return isinstance(expression, Lifted)
    return any(any_lifted(arg) for arg in expression.args)


# ---- steps


def _literal(item: Lifted) -> _Step:
    type_, number = item.type, item.number
    return lambda made: Literal(type_, made[number])


def _values(make: Callable[[list[Any]], Any], kept: list[Any], holes: list[tuple[int, int]]) -> _Step:
    def step(made: _Made) -> Any:
        values = kept.copy()
        for number, place in holes:
            values[number] = made[place]
        return make(values)

    return step


def _object(kind: type, kept: list[Any], holes: list[tuple[int, int]]) -> _Step:
    def step(made: _Made) -> Any:
        values = kept.copy()
        for number, place in holes:
            values[number] = made[place]
        return kind(*values)

    return step


_Term = tuple[int, str, Type, str, int]


def _term(conjunct: Expression) -> _Term | None:
    """`column op constant` with a lifted one: position, name, type, operator, and the constant's number."""
    if not isinstance(conjunct, FunctionCall) or conjunct.op not in NEGATED:
        return None
    left, right = conjunct.args
    op = conjunct.op
    if isinstance(left, Lifted):
        left, right, op = right, left, FLIPPED[op]
    if not isinstance(left, ColumnRef) or not isinstance(right, Lifted):
        return None
    return left.position, left.name, left.type, op, right.number


def _atom(term: _Term, made: _Made) -> IndexAtom:
    position, name, type_, op, number = term
    return IndexAtom(position, name, compare(type_, op, made[number]))


def _piece(
    conjunct: Expression, term: _Term | None, place: int | None, clauses_apart: bool
) -> Callable[[_Made], list[Clause | None]]:  # fmt: skip
    """The parts of a conjunct in the normal form."""
    if place is None:
        found = parts_of(conjunct, clauses_apart)
        return lambda made: found
    if term is not None:
        return lambda made: [(_atom(term, made),)]
    return lambda made: parts_of(made[place], clauses_apart)
