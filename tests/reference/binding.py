"""Trees of operators made to run: which rows an opening of a query sees, and a running node for each of the tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.reference.contents import (
    Arrived,
    BaseFeed,
    Derived,
    Input,
    QueryFeed,
    Running,
    TableNow,
    Unwindowed,
    Windowed,
)
from tests.reference.operators import Combined, Distinct, Grouped, Item, Named, Select, ToStream, Tree, items, named, slides, walk
from tests.reference.running import (
    Combinations,
    Once,
    Reference,
    RunningCombined,
    RunningDistinct,
    RunningGrouped,
    RunningSelect,
    RunningToStream,
)
from tests.reference.tables import Table
from tests.reference.values import Value


@dataclass(eq=False)
class Opening:
    """A query from its submit, replace or resume to its cancel, pause or next replace."""

    number: int
    tree: Tree
    #: the commit and the event that opened it
    seq: int
    event: int
    #: by item that is a stream: the position of the first row it may see
    first: dict[int, int] = field(default_factory=dict)
    #: the openings of the queries it names
    reads: dict[str, Opening] = field(default_factory=dict)
    root: Running | None = None
    #: (event, answer) whenever the answer changed, the one at the opening first
    answers: list[tuple[int, Counter[Value]]] = field(default_factory=list)
    #: (event, value) of all that a stream emitted
    emitted: list[tuple[int, Value]] = field(default_factory=list)
    #: the last event it saw; None while it runs
    closed: int | None = None


def answer_after(opening: Opening, event: int) -> Counter[Value]:
    """What a relation's answer was after an event."""
    return [answer for number, answer in opening.answers if number <= event][-1]


def check_meaning(tree: Tree, tables: Mapping[str, Table]) -> None:
    """Refuse what has no meaning here."""
    for node in walk(tree):
        if isinstance(node, Select | Grouped):
            free = [item for item in node.items if item.is_stream]
            if free and (isinstance(node, Grouped) or len(free) > 1 or any(item.window for item in node.items)):
                raise ValueError("a stream without a window stands alone or beside tables")


def of_tables(item: Item) -> bool:
    """Whether an item of FROM is a table, or reads tables alone."""
    if isinstance(item.source, str):
        return item.is_table
    return all(part.is_table or not isinstance(part.source, str) for part in items(item.source)) and not named(item.source)


class Binder:
    """Makes the running form of an opening's tree.

    `arrived` gives the rows of a stream, `first_seen` the position of the first one that a window of the opening may hold.
    """

    def __init__(
        self,
        opening: Opening,
        tables: Mapping[str, Table],
        arrived: Callable[[str], list[Arrived]],
        first_seen: Callable[[str], int],
    ) -> None:
        self._opening = opening
        self._tables = tables
        self._arrived = arrived
        self._first_seen = first_seen
        self._made: dict[int, Running] = {}

    def bind(self, tree: Tree) -> Running:
        """The running form of a tree; a node that two items share runs once."""
        if id(tree) not in self._made:
            self._made[id(tree)] = Once(self._bound(tree))
        return self._made[id(tree)]

    def _bound(self, tree: Tree) -> Running:
        match tree:
            case Select():
                return RunningSelect(tree, self._combinations(tree))
            case Grouped():
                return RunningGrouped(tree, self._combinations(tree))
            case Distinct():
                return RunningDistinct(tree, self.bind(tree.child))
            case Combined():
                return RunningCombined(tree, self.bind(tree.left), self.bind(tree.right))
            case ToStream():
                return RunningToStream(tree, self.bind(tree.child), slides(tree.child))
            case Named():
                root = self._opening.reads[tree.name].root
                assert root is not None
                return Reference(root)

    def _combinations(self, tree: Select | Grouped) -> Combinations:
        inputs: dict[int, Input] = {}
        frozen: dict[int, Table] = {}
        streams = [item for item in tree.items if not item.is_table and (item.window is not None or item.is_stream)]
        moving = [item for item in tree.items if not of_tables(item)]
        for k, item in enumerate(tree.items):
            if item.is_table:
                table = self._tables[str(item.source)]
                if moving and (tree.is_stream or not table.retroactive):
                    frozen[k] = table
                else:
                    inputs[k] = TableNow(table)
            elif item in streams:
                feed = self._feed(item)
                inputs[k] = Windowed(feed, item.window) if item.window is not None else Unwindowed(feed)
            else:
                assert not isinstance(item.source, str)
                inputs[k] = Derived(self.bind(item.source), list(item.source.columns), of_tables(item))
        return Combinations(tree.where, inputs, frozen)

    def _feed(self, item: Item) -> BaseFeed | QueryFeed:
        if not isinstance(item.source, str):
            return QueryFeed(self.bind(item.source), list(item.source.columns))
        arrived = self._arrived(item.source)
        first = len(arrived) if item.window is None else self._first_seen(item.source)
        self._opening.first[id(item)] = first
        return BaseFeed(arrived, first, self._opening.seq)
