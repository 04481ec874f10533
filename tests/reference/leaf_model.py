"""Which rows the leaves of a query take, by the model of the whole language: what `trace` is held to.

A **leaf** is a SELECT with a stream of the engine in its FROM list; those of the running queries that a query names are its
leaves too. After the events of an instant in a commit (semantics 5) each leaf says what it holds then:

    streams and tables alone    a row that is part of a combination for which WHERE is true; of a retroactive table only
                                combinations whose rows it still has
    anything else in FROM       a row of which everything is true that WHERE says of that row alone; what WHERE says of the bounds
                                of a window does not count
    no window                   a row in the event in which it comes
    one stream below            likewise in every event: these speak of events (semantics 19)
    ISTREAM or DSTREAM
    a window in steps           also a row that waits for the boundary at which it will be shown

A row is **let in** if some leaf of the query has held it since the query was opened. What follows for a row from the equality of
its columns with others (`b.k = 3` from `a.k = b.k AND a.k = 3`) may refuse it or not: then nothing is expected.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.reference.binding import Opening
from tests.reference.contents import Arrived, Derived, Element, Event, QueryFeed, TableNow, Unwindowed, Windowed
from tests.reference.operators import Combined, Distinct, Expression, Grouped, Item, Named, Select, Slide, ToStream, Tree, walk
from tests.reference.running import Combinations
from tests.reference.timelines import Receipt, Stream
from tests.reference.values import Row
from tests.reference.window_model import WindowModel

#: Rows of retroactive tables, by identity.
Versions = frozenset[int]


class _Touched(Exception):
    """An expression reads another item."""


class _Closed(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        raise _Touched


@dataclass(eq=False)
class Leaf:
    """One leaf as it runs for one opening."""

    tree: Select | Grouped
    combinations: Combinations
    #: the item of FROM whose rows it takes; None: streams and tables stand in it as they are, and it takes combinations
    item: int | None
    by_event: bool
    #: with which rows of retroactive tables each row was held, and of which rows nothing is expected
    held: dict[Arrived, set[Versions]] = field(default_factory=dict)
    open: set[Arrived] = field(default_factory=set)
    #: what it looked at last
    before: list[Any] = field(default_factory=list)

    @property
    def conjuncts(self) -> tuple[Expression, ...]:
        where = self.tree.where
        return () if where is None else where.conjuncts or (where,)

    def look(self) -> None:
        """Note what it holds after the last event."""
        elements = [given.elements for given in self.combinations.inputs.values()]
        if not self.tree.is_stream and len(elements) == len(self.before) and all(a is b for a, b in zip(elements, self.before)):
            return
        self.before = elements
        if self.item is None:
            self._look_at_combinations()
            return
        for arrived, _ in _rows(self.combinations.inputs[self.item]):
            assert arrived is not None, "a row of a stream"
            self._take(self.item, arrived)

    def _look_at_combinations(self) -> None:
        inputs, frozen = self.combinations.inputs, self.combinations.frozen
        where = self.tree.where
        for chosen in itertools.product(*(list(_rows(given)) for given in inputs.values())):
            rows = [arrived for arrived, _ in chosen if arrived is not None]
            placed = {k: element.row for k, (_, element) in zip(inputs, chosen)}
            live = frozenset(id(element.row) for arrived, element in chosen if arrived is None)
            came = max([element.came for _, element in chosen if element.came is not None], default=0)
            versions = [[version.row for version in table.at(came)] for table in frozen.values()]
            for more in itertools.product(*versions):
                placed.update(zip(frozen, more))
                if where is None or where.fn([placed[k] for k in range(len(placed))]) is True:
                    for arrived in rows:
                        self.held.setdefault(arrived, set()).add(live)

    def _take(self, k: int, arrived: Arrived) -> None:
        """Take a row of item k by what WHERE says of it alone."""
        if self._not_refused(k, arrived):
            self.held.setdefault(arrived, set()).add(frozenset())

    def _not_refused(self, k: int, arrived: Arrived) -> bool:
        said = [self._alone(conjunct, k, arrived.row) for conjunct in self.conjuncts]
        if any(value is not True for value in said if value != "other"):
            return False
        if self._follows_otherwise(k, arrived.row):
            self.open.add(arrived)
        return True

    def _alone(self, conjunct: Expression, k: int, row: Row) -> Any:
        """What a conjunct says of a row of item k; "other" if it reads another item or the bounds of a window."""
        rows = [_Closed(row) if number == k else _Closed() for number in range(len(self.tree.items))]
        try:
            return conjunct.fn(rows)
        except _Touched:
            return "other"

    def _follows_otherwise(self, k: int, row: Row) -> bool:
        """Whether something that is not true of the row follows from equalities, or from comparisons of two items."""
        alias = self.tree.items[k].alias
        for conjunct in self.conjuncts:
            for mine, other in _compared(conjunct.sql, alias):
                if row.get(mine) is None:
                    return True
                number, column = self._place(other)
                if number in (None, k):
                    continue
                for another in self.conjuncts:
                    rows = [_Closed({column: row[mine]}) if at == number else _Closed() for at in range(len(self.tree.items))]
                    try:
                        if another.fn(rows) is not True:
                            return True
                    except _Touched:
                        pass
        return False

    def _place(self, text: str) -> tuple[int | None, str]:
        alias, _, column = text.partition(".")
        return next((number for number, item in enumerate(self.tree.items) if item.alias == alias), None), column

    def waits(self, now: float) -> Iterator[Arrived]:
        """Rows of windows in steps that a boundary after `now` will show, and that WHERE does not refuse."""
        window = None if self.item is None else self.tree.items[self.item].window
        if self.item is None or not isinstance(window, Slide):
            return
        given = self.combinations.inputs[self.item]
        assert isinstance(given, Windowed)
        for row in given.rows:
            first = (max(row.start, now) // window.slide + 1) * window.slide
            if not row.gone and first - window.width <= row.t and first < row.until and self._not_refused(self.item, row):
                yield row


def _compared(sql: str, alias: str) -> Iterator[tuple[str, str]]:
    """(column of the alias, the other side) of a comparison of two columns."""
    found = re.fullmatch(r"(\w+\.\w+) (?:=|<|<=|>|>=) (\w+\.\w+)", sql)
    if found:
        left, right = found.groups()
        for mine, other in ((left, right), (right, left)):
            if mine.startswith(alias + "."):
                yield mine.partition(".")[2], other


def _rows(given: Any) -> Iterator[tuple[Arrived | None, Element]]:
    """What an item of FROM holds, with the arrivals of a stream's rows."""
    match given:
        case Windowed():
            assert len(given.inside) == len(given.elements)
            yield from ((arrived, element) for (arrived, _), element in zip(given.inside, given.elements))
        case Unwindowed():
            rows = [row for row in given.feed.new if row.until > row.start] if given.elements else []
            yield from zip(rows, given.elements, strict=True)
        case TableNow():
            yield from ((None, element) for element in given.elements)


def _leaves(tree: Tree, running: Any, opening: Opening, by_event: bool) -> Iterator[Leaf]:
    """The leaves of a tree, in order; `by_event`: something above speaks of events."""
    node = getattr(running, "_node", running)
    match tree:
        case Select() | Grouped():
            combinations: Combinations = node.combinations
            if all(isinstance(item.source, str) and not isinstance(item.window, Slide) for item in tree.items):
                if any(item.is_base for item in tree.items):
                    yield Leaf(tree, combinations, None, tree.is_stream or (by_event and len(tree.items) == 1))
            else:
                for k, item in enumerate(tree.items):
                    if item.is_base:
                        yield Leaf(tree, combinations, k, tree.is_stream or (by_event and not isinstance(item.window, Slide)))
            for k, item in enumerate(tree.items):
                if not isinstance(item.source, str):
                    yield from _leaves(item.source, _child(item, combinations.inputs[k]), opening, by_event)
        case Distinct():
            yield from _leaves(tree.child, node.child, opening, by_event)
        case ToStream():
            yield from _leaves(tree.child, node.child, opening, by_event or tree.word != "rstream")
        case Combined():
            for side, below in zip((tree.left, tree.right), node.sides):
                yield from _leaves(side, below, opening, by_event)
        case Named():
            read = opening.reads[tree.name]
            yield from _leaves(read.tree, read.root, read, by_event)


def _child(item: Item, given: Any) -> Any:
    if isinstance(given, Derived):
        return given.child
    assert isinstance(given.feed, QueryFeed)
    return given.feed.child


class LeafModel(WindowModel):
    """The model, and what the leaves of its queries took."""

    def __init__(self) -> None:
        super().__init__()
        self._leaves: dict[Opening, list[Leaf]] = {}
        self._last: tuple[int, float] | None = None
        #: by stream: the rows by their number
        self.numbered: dict[str, dict[int, Row]] = {}

    def accept_rows(self, stream: Stream, rows: list[Row]) -> Receipt:
        first = stream.n_accepted
        receipt = super().accept_rows(stream, rows)
        found = {int(order): row for _, order, row in stream.waiting if order >= first}
        self.numbered.setdefault(stream.name, {}).update(found)
        return receipt

    def make_event(self, kind: str) -> Event:
        if self._last != (self.seq, self.now):
            self.look()
        event = super().make_event(kind)
        self._last = (self.seq, self.now)
        for leaf in itertools.chain.from_iterable(self._all().values()):
            if leaf.by_event:
                leaf.look()
        return event

    def look(self) -> None:
        """An instant of a commit is over: note what is held."""
        for leaf in itertools.chain.from_iterable(self._all().values()):
            if not leaf.tree.is_stream:
                leaf.look()

    def _all(self) -> dict[Opening, list[Leaf]]:
        running = [query.opening for query in self.queries.values() if query.opening is not None]
        self._leaves = {
            opening: self._leaves.get(opening) or list(_leaves(opening.tree, opening.root, opening, False)) for opening in running
        }
        return self._leaves

    def takes(self, number: int, arrived: Arrived) -> bool | None:
        """Whether a query took a row; None if nothing is expected. To be asked after `look`."""
        opening = self.queries[number].opening
        if opening is None:
            return False
        current = {id(version.row) for table in self.tables.values() for version in table.current.values()}
        verdicts = []
        for leaf in self._leaves[opening]:
            waits = arrived in set(leaf.waits(self.now))
            taken = waits or any(versions <= current for versions in leaf.held.get(arrived, ()))
            verdicts.append(None if taken and arrived in leaf.open else taken)
        return True if True in verdicts else None if None in verdicts else False

    def arrived(self, stream: str, row: Row) -> Arrived | None:
        """What became of a row that was accepted; None while it waits."""
        return next((arrived for arrived in self.keyed[stream].arrived if arrived.row is row), None)

    def take_now(self, name: str, row: Row) -> Arrived | None:
        """A row that comes now and is released at once; None if it is dropped."""
        stream = self.streams[name]
        front = self.front(stream)
        t = row["ts"]
        if front is not None and t < front:
            if stream.late == "drop":
                return None
            t = front
        self._commit([(t, 0, stream, row)])
        self.look()
        return self.keyed[name].arrived[-1]


def reads(model: LeafModel, number: int) -> set[str]:
    """The streams whose rows may enter a query, through those it names too."""
    found: set[str] = set()
    todo = [model.queries[number].tree]
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, Named):
                todo.append(model.queries[model.names[node.name]].tree)
            elif isinstance(node, Select | Grouped):
                found |= {str(item.source) for item in node.items if item.is_base}
    return found
