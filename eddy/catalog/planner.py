"""Planning of query texts: cut, parse, bind, normal form.

Thousands of texts differ in constants only, so a text is bound for all of them (`queries/skeletons.py`, `queries/lifting.py`):

    text ─► skeleton ─► by the types of parameters, the values that were read and which values are equal: a reading
                                                                                ─► the plan, with the constants of the text

A text without a reading is parsed and bound; errors come from there alone. The last thousand skeletons are held, and of each the
last readings. `plan_afresh` is the twin: it plans a text as if there were no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from eddy.base.plans import JoinPlan, Plan, TreePlan, Trees, TreeShape
from eddy.catalog.catalog import Catalog
from eddy.catalog.definitions import MAIN
from filters.expressions.expression import Literal
from filters.values.dates import parse_timestamp
from lineage.errors import EddyError, QueryError
from lineage.identity import ById
from lineage.schema import KEY_MAX, KEY_MIN, Type
from queries.binder import bind
from queries.bound import Block, BoundInput, OutputColumn, Readable
from queries.forms import forms_of
from queries.guards import check_length
from queries.joins import Join
from queries.lifting import NEGATIVE, TIME, Lifting, is_lonely, sameness
from queries.literals import param_literal
from queries.nodes import LMerge, NamedQuery, Node, Slide, Window, column_refs
from queries.parser import parse
from queries.refill import Refill, Unmade, any_lifted
from queries.skeletons import Cut, cut, slot_places
from queries.split import split
from queries.sql_text import SqlText
from queries.syntax import Param, ParsedQuery
from queries.tree import defaults_of, leaves, mapped, union_bits, walk
from windows.spec import WindowKind, WindowSpec

#: Skeletons that are remembered, and readings of each.
_SKELETONS = 1024
_READINGS = 64
#: Bits of an id that UNION ALLs may take: rows of a stream keep 2**42 numbers of their own.
MAX_UNION_BITS = 20
_NO_PARAMS: Mapping[str, Any] = {}
#: The place of a parameter in no text.
_NOWHERE = Param(0, 0, "")
_NO_TEXT = SqlText("")

AnyPlan = Plan | JoinPlan | TreePlan
#: Of parameters: their types, or what a value stands for that is one of its own.
_Types = tuple[Type | Literal, ...]


class _Watched(dict[str, Any]):
    """Parameters that record which of them the binder takes as they are, for a window."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        super().__init__(params)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)


@dataclass(slots=True)
class _Reading:
    """What plans are made from, and what it was bound over."""

    make: Callable[[Sequence[Any]], AnyPlan]
    #: the names that were looked up, what they meant, and the timeline of a query
    names: tuple[tuple[str, Readable, str | None], ...]

    def fits(self, catalog: Catalog) -> bool:
        """Whether all names still mean the same."""
        for name, readable, timeline in self.names:
            found = catalog.readable(name)
            if found is not readable and (
                readable.query is None or found != readable or catalog.timeline_name(name) != timeline
            ):  # fmt: skip
                return False
        return True


@dataclass(slots=True)
class _Readings:
    """The readings of one skeleton with parameters of certain types, in which the values of the same slots were read."""

    #: the slots that were read
    pinned: tuple[int, ...]
    #: of each constant its slot, and what is done with its value
    constants: tuple[tuple[int, int], ...]
    fixed: frozenset[Any]
    #: by the values that were read, and by which values are equal
    by_key: dict[tuple[object, ...], _Reading] = field(default_factory=dict)

    def apply(self, slots: Sequence[Any]) -> tuple[tuple[object, ...], list[Any]] | None:
        """The key of a text with these values in its slots, and its constants; None if one of them is no time."""
        constants: list[Any] = []
        for slot, how in self.constants:
            value = slots[slot]
            if how == NEGATIVE:
                value = -value
            elif how == TIME:
                value = parse_timestamp(value)
                if value is None:
                    return None
            constants.append(value)
        if not self.pinned:
            return (sameness(constants, self.fixed),), constants
        read = [slots[slot] for slot in self.pinned]
        exact = [repr(value) if isinstance(value, float) else value for value in read]
        return (sameness(constants, self.fixed), *exact), constants


@dataclass(slots=True)
class _Skeleton:
    """The texts with one skeleton."""

    #: the names of its parameters
    params: tuple[str, ...]
    #: the last text that was parsed
    parsed: ParsedQuery
    lifting: Lifting
    by_types: dict[_Types, list[_Readings]] = field(default_factory=dict)

    def find(self, slots: Sequence[Any], types: _Types, catalog: Catalog) -> AnyPlan | None:
        """The plan for some slots, those of parameters of these types; None if it has to be bound."""
        for readings in self.by_types.get(types, ()):
            applied = readings.apply(slots)
            reading = None if applied is None else readings.by_key.get(applied[0])
            if applied is not None and reading is not None and reading.fits(catalog):
                return reading.make(applied[1])
        return None

    def keep(self, readings: _Readings, slots: Sequence[Any], types: _Types, reading: _Reading) -> None:
        """Hold a reading of a text with these slots."""
        held = self.by_types.setdefault(types, [])
        same = [one for one in held if (one.pinned, one.constants) == (readings.pinned, readings.constants)]
        if not same:
            del held[: max(0, len(held) + 1 - _READINGS)]
            held.append(readings)
        by_key = (same or [readings])[0].by_key
        applied = readings.apply(slots)
        assert applied is not None, "the text was bound"
        if len(by_key) >= _READINGS:
            del by_key[next(iter(by_key))]
        by_key[applied[0]] = reading


class Planner:
    """Makes the plans of one engine."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._skeletons: dict[str, _Skeleton] = {}
        #: the last text that was cut: many calls have the same, with other parameters
        self._last: tuple[str, Cut | None] = "", None

    def __getstate__(self) -> dict[str, object]:
        """All but the skeletons, whose texts are bound again when needed."""
        return {"_catalog": self._catalog, "_skeletons": {}, "_last": ("", None)}

    def over(self, catalog: Catalog) -> Planner:
        """A planner over another catalog, which shares the skeletons."""
        other = Planner(catalog)
        other._skeletons = self._skeletons
        return other

    def plan(self, sql: str, params: Mapping[str, Any] | None) -> AnyPlan:
        """The plan of a query; raises `QueryError` and changes nothing if the text is wrong."""
        given = _checked(sql, params)
        found = self._last[1]
        if sql != self._last[0]:
            found = cut(sql)
            self._last = sql, found
        if found is None:
            return self.plan_afresh(sql, given)
        skeleton = self._skeletons.get(found.skeleton)
        if skeleton is not None:
            read = _read_params(skeleton.params, given)
            if read is not None:
                types, values = read
                plan = skeleton.find([*found.values, *values] if values else found.values, types, self._catalog)
                if plan is not None:
                    return plan
        return self._bind_for_all(sql, given, found, skeleton)

    def plan_afresh(self, sql: str, params: Mapping[str, Any] | None) -> AnyPlan:
        """The same plan, made as if there were no other text."""
        given = _checked(sql, params)
        return self._draft(parse(sql), given, {}, _Lookups(self._catalog))([])

    def _bind_for_all(self, sql: str, given: Mapping[str, Any], found: Cut, skeleton: _Skeleton | None) -> AnyPlan:
        """Bind a text, and hold what comes of it for others with its skeleton."""
        if skeleton is None or skeleton.parsed.source.text != sql:
            lifting = Lifting(slot_places(sql), found.values)
            parsed = parse(sql, lifting)
        else:
            lifting, parsed = skeleton.lifting, skeleton.parsed
        names = tuple(sorted(parsed.params))
        read = _read_params(names, given)
        if read is None:
            # the binder knows what to say
            return self.plan_afresh(sql, given)
        types, values = read
        literals = lifting.begin(dict(zip(names, zip(types, values))))
        lookups, watched = _Lookups(self._catalog), _Watched(given)
        make = self._draft(parsed, watched, literals, lookups)
        slots = [*found.values, *values]
        taken = [len(found.values) + at for at, name in enumerate(names) if name in watched.read]
        readings = _Readings(lifting.pinned(slots, taken), tuple(lifting.constants), frozenset(lifting.fixed))
        if skeleton is None:
            if len(self._skeletons) >= _SKELETONS:
                del self._skeletons[next(iter(self._skeletons))]
            skeleton = self._skeletons[found.skeleton] = _Skeleton(names, parsed, lifting)
        skeleton.parsed, skeleton.lifting = parsed, lifting
        reading = _Reading(make, lookups.names())
        skeleton.keep(readings, slots, types, reading)
        applied = readings.apply(slots)
        assert applied is not None, "the text was bound"
        return make(applied[1])

    def _draft(
        self, parsed: ParsedQuery, given: Mapping[str, Any], literals: Mapping[str, Literal], lookups: _Lookups
    ) -> Callable[[Sequence[Any]], AnyPlan]:
        """Bind a text; what makes its plan from the constants that `literals` and those of the text stand for."""
        catalog = self._catalog
        node = bind(parsed, lookups.readable, given, catalog.functions, catalog.input_names, literals)
        if isinstance(node, Block):
            return Refill(self._block(parsed, node, clauses_apart=True))
        return partial(_tree_plan, self._tree(parsed, node))

    def _block(self, parsed: ParsedQuery, block: Block, clauses_apart: bool) -> Plan | JoinPlan:
        """The plan of a block, its conditions not made yet; `clauses_apart`: disjunctions over several attributes may have slots
        of their own."""
        join = block.join
        if join is None and block.inputs[0].ends_early:
            # more than the clock ends its rows: that is told by a group, here of one input
            join = split(block.condition, [block.stream], [len(block.inputs[0].schema)])
        if join is not None:
            return self._join(parsed, block, join)
        source = self._catalog.sources[block.stream.lower()]
        outputs = block.columns
        if not any(any_lifted(column.expression) for column in outputs):
            outputs = source.shared_outputs(outputs)
        condition: Any = Unmade(block.condition, clauses_apart)
        return Plan(source.name.lower(), block.window, condition, outputs, block.defaults)

    def _join(self, parsed: ParsedQuery, bound: Block, join: Join) -> JoinPlan:
        self._check_timeline(parsed, bound)
        conditions: Any = tuple(Unmade(own, False) for own in join.own)
        return JoinPlan(
            join.names, tuple(item.window for item in bound.inputs), conditions, join,
            bound.columns, bound.update_pattern, bound.defaults,
        )  # fmt: skip

    def _tree(self, parsed: ParsedQuery, bound: Node) -> TreeShape:
        timeline = self._check_timeline(parsed, bound)
        if union_bits(bound) > MAX_UNION_BITS:
            fact = "UNION ALLs stand above each other in too many levels"
            hint = "write them in one: a UNION ALL b UNION ALL c"
            raise parsed.source.error(fact, 0, len(parsed.source.text), "query_too_deep", hint)
        written = mapped(bound, _with_extent)
        forms = forms_of(written)
        root = forms.forms[0].root
        nodes = [node for node in walk(root) if isinstance(node, Block)]
        blocks = ById((node, self._block(parsed, node, clauses_apart=False)) for node in nodes)
        trees = Trees(root if written == root else written, forms, blocks)
        read = list(leaves(root))
        return TreeShape(
            trees, Refill(trees),
            tuple(dict.fromkeys(leaf.name.lower() for leaf in read if isinstance(leaf, BoundInput))),
            tuple(dict.fromkeys(leaf.name.lower() for leaf in read if isinstance(leaf, NamedQuery))),
            timeline,
            tuple(OutputColumn(ref.name, ref) for ref in column_refs(root.columns)),
            defaults_of(root),
        )  # fmt: skip

    def _check_timeline(self, parsed: ParsedQuery, node: Node) -> str:
        """The name of the timeline that all inputs of a tree are on; raises if there are several."""
        first: tuple[str, str] | None = None
        for leaf in leaves(node):
            line = self._catalog.timeline_name(leaf.name)
            if line is None:
                continue
            if first is not None and line != first[1]:
                fact = f'"{leaf.name}" is on timeline "{line}", not on "{first[1]}"'
                raise parsed.source.error(fact, *leaf.span, "two_timelines", "a query reads streams of one timeline")
            first = first or (leaf.name, line)
        return MAIN if first is None else first[1]


class _Lookups:
    """The names that a text looked up, and what they meant."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[str, Readable] = {}

    def readable(self, name: str) -> Readable | None:
        found = self._catalog.readable(name)
        if found is not None:
            self._found[name.lower()] = found
        return found

    def names(self) -> tuple[tuple[str, Readable, str | None], ...]:
        """Each with the timeline of a query."""
        line = self._catalog.timeline_name
        return tuple((name, found, None if found.query is None else line(name)) for name, found in self._found.items())


def _tree_plan(shape: TreeShape, constants: Sequence[Any]) -> TreePlan:
    return TreePlan(shape, tuple(constants))


def _checked(sql: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The parameters of a text of which both are what they should be, and which is not too long."""
    if not isinstance(sql, str):
        raise QueryError(f"a query is a text, not {type(sql).__name__}", code="not_a_text", hint='"SELECT ... FROM stream"')
    if params is not None and not isinstance(params, Mapping):
        raise EddyError("params is not a mapping", code="bad_option", hint='{"low": 5} for :low')
    check_length(SqlText(sql))
    return params or _NO_PARAMS


def _read_params(names: tuple[str, ...], given: Mapping[str, Any]) -> tuple[_Types, list[Any]] | None:
    """The types and values of parameters with these names; None if others are given, or something that is no value."""
    if len(given) != len(names):
        return None
    if not names:
        return (), []
    types: list[Type | Literal] = []
    values: list[Any] = []
    for name in names:
        if name not in given:
            return None
        value = given[name]
        kind = type(value)
        type_: Type | Literal
        if kind is str and value.isascii():
            type_ = Type.STRING
        elif kind is int and KEY_MIN <= value <= KEY_MAX:
            type_ = Type.INT
        else:
            try:
                literal = param_literal(_NO_TEXT, _NOWHERE, name, value)
            except QueryError:
                return None
            type_, value = (literal, literal) if is_lonely(literal) else (literal.type, literal.value)
        types.append(type_)
        values.append(value)
    return tuple(types), values


def _with_extent(node: Node) -> Node:
    """The block below a SLIDE with a window long enough for the extent shown, which stays until the next boundary.

    The blocks below a merge of streams have the window that stands over it; where rows are counted, or where there is none, they
    give each row as it comes.
    """
    if isinstance(node, LMerge) and node.is_stream and not node.windowed:
        return _held(node, WindowSpec.timed())
    if not isinstance(node, Slide | Window):
        return node
    if isinstance(node.child, LMerge) and node.child.windowed:
        return replace(node, child=_held(node.child, _kept(node.window)))
    if isinstance(node, Window) or node.of_query:
        return node
    assert isinstance(node.child, Block), "a stream as it is pushed is a block"
    return replace(node, child=_holding(node.child, _kept(node.window)))


def _kept(window: WindowSpec) -> WindowSpec:
    """The window of a stream that holds the rows of a window above it."""
    if window.kind is WindowKind.ROWS:
        return WindowSpec.timed()
    return WindowSpec.kept(window) if window.kind is WindowKind.SLIDE else window


def _held(merge: LMerge, window: WindowSpec) -> LMerge:
    inputs = tuple(_holding(item, window) if isinstance(item, Block) else item for item in merge.inputs)
    return replace(merge, inputs=inputs)


def _holding(block: Block, window: WindowSpec) -> Block:
    return replace(block, inputs=(replace(block.inputs[0], window=window),))
