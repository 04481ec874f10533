"""Literals of a text that stand for those of all texts with its skeleton.

A text is bound once with **lifted** literals: they have its values, and know which of them. What the binder and the rewrites do
cannot depend on a value that they did not read. So a tree that was bound with some values is the tree for others, with these in
the place of the lifted literals, if

    the values that were read are the same          `Lifting.read`: a window's length, the ESCAPE of a LIKE, what is folded
    and equal values are equal again                `sameness`: equal expressions are computed once, equal blocks run once

A lifted literal is compared and hashed by its value without that being a read; compared with a literal that is none, it is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from filters.expressions.expression import Interval, Literal
from filters.values.dates import parse_timestamp
from lineage.schema import Type

#: What is done with a slot's value: nothing, its sign is changed, it is read as a time.
SAME, NEGATIVE, TIME = range(3)

#: The slot below the property of `Lifted`.
_VALUE: Any = vars(Literal)["value"]
_value_of: Callable[[Literal], Any] = _VALUE.__get__
_set_value: Callable[[Literal, Any], None] = _VALUE.__set__


class Lifted(Literal):
    """A literal of a text that is bound for many; `number` is its place among the constants of the plan."""

    __slots__ = ("number", "lifting")

    number: int
    lifting: Lifting | None

    def __init__(self, type: Type, value: int | float | str, number: int, lifting: Lifting | None) -> None:
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "lifting", lifting)
        _set_value(self, value)

    def read(self) -> Any:
        """The value, which the plan now depends on."""
        if self.lifting is not None:
            self.lifting.read.add(self.number)
        return _value_of(self)

    value = property(read)  # whoever asks is recorded

    def plain(self) -> Literal:
        """The same as a literal of this text alone."""
        return Literal(self.type, _value_of(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lifted):
            return isinstance(other, Literal) and self.type is other.type and Literal(self.type, self.read()) == other
        return self.plain() == other.plain()

    def __hash__(self) -> int:
        return hash(self.plain())

    def __getstate__(self) -> tuple[Type, Any, int]:
        return self.type, _value_of(self), self.number

    def __setstate__(self, state: tuple[Type, Any, int]) -> None:
        Lifted.__init__(self, *state, None)


class Lifting:
    """The lifted literals of one text while it is parsed and bound."""

    def __init__(self, places: Sequence[tuple[int, int]], values: Sequence[int | float | str]) -> None:
        self._slot_at = {start: slot for slot, (start, _) in enumerate(places)}
        self._ends = [end for _, end in places]
        self._values = list(values)
        #: values of literals that are no slots, as they stand and with a sign
        self.fixed: set[Any] = set()
        #: of each constant its slot, and what is done with its value
        self.constants: list[tuple[int, int]] = []
        self._numbers: dict[tuple[int, int], int] = {}
        #: constants whose values were read
        self.read: set[int] = set()
        #: how many constants the parser made, and what it read; None until it is done
        self._parsed: tuple[int, frozenset[int]] | None = None

    def lifted(self, start: int, end: int, literal: Literal) -> Literal:
        """A literal of the text at its place, lifted if it is that of a slot."""
        slot = self._slot_at.get(start)
        value = literal.value
        if slot is None or self._ends[slot] != end or value != self._values[slot]:
            self.fixed |= {value, -value} if isinstance(value, int | float) else {value}
            return literal
        return self._constant(slot, SAME, literal.type, value)

    def begin(self, params: Mapping[str, tuple[Type | Literal, Any]]) -> dict[str, Literal]:
        """Bind the text that was parsed: the parameters' values, slots behind those of the text, as literals."""
        if self._parsed is None:
            self._parsed = len(self.constants), frozenset(self.read)
        n_constants, read = self._parsed
        for constant in self.constants[n_constants:]:
            del self._numbers[constant]
        del self.constants[n_constants:]
        self.read = set(read)
        literals = {}
        for slot, (name, (type_, value)) in enumerate(params.items(), start=len(self._ends)):
            literals[name] = type_ if isinstance(type_, Literal) else self._constant(slot, SAME, type_, value)
        return literals

    def pinned(self, slots: Sequence[Any], taken: Sequence[int]) -> tuple[int, ...]:
        """The slots whose values were read: as literals, as they stand, or by the parser, which made no literal of them."""
        lifted = {slot for slot, _ in self.constants}
        read = {self.constants[number][0] for number in self.read}
        found = {slot for slot in range(len(slots)) if slot not in lifted or slot in read or slot in taken}
        if any(isinstance(slots[slot], str) and parse_timestamp(slots[slot]) is not None for slot in found):
            # it may be equal to another that is a time, and written otherwise
            found |= {slot for slot, how in self.constants if how == TIME}
        return tuple(sorted(found))

    def _constant(self, slot: int, how: int, type_: Type, value: Any) -> Lifted:
        number = self._numbers.setdefault((slot, how), len(self.constants))
        if number == len(self.constants):
            self.constants.append((slot, how))
        return Lifted(type_, value, number, self)

    def turned(self, lifted: Lifted, how: int, type_: Type, value: Any) -> Lifted:
        """The same slot with something done to its value."""
        slot, before = self.constants[lifted.number]
        return self._constant(slot, how if before == SAME else NEGATIVE - before, type_, value)


def negated(literal: Literal) -> Literal:
    """A number with the other sign."""
    if isinstance(literal, Lifted) and literal.lifting is not None:
        return literal.lifting.turned(literal, NEGATIVE, literal.type, -_value_of(literal))
    assert isinstance(literal.value, int | float)
    return Literal(literal.type, -literal.value)


def timed(literal: Literal) -> Literal | None:
    """A text as a time; None if it is none."""
    text = _value_of(literal)
    micros = parse_timestamp(text)
    if micros is None:
        return None
    if isinstance(literal, Lifted) and literal.lifting is not None:
        return literal.lifting.turned(literal, TIME, Type.TIMESTAMP, micros)
    return Literal(Type.TIMESTAMP, micros)


def sameness(values: Sequence[Any], fixed: Set[Any]) -> tuple[object, ...] | None:
    """Which of some values equal each other or a fixed one, by Python's rules or ours; None if none does."""
    if len(set(values)) == len(values) and fixed.isdisjoint(values):
        return None
    exact: dict[object, int] = {}
    loose: dict[object, int] = {}
    every = [*fixed, *values]
    return tuple([(exact.setdefault((type(value), repr(value)), n), loose.setdefault(value, n)) for n, value in enumerate(every)])


def is_lonely(literal: Literal) -> bool:
    """Whether a parameter's value stands for itself alone: NULL, a bool, an interval, NaN."""
    value = literal.value
    return value is None or isinstance(value, bool | Interval) or value != value
