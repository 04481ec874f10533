"""A tree of operators while it runs: after every event each node's answer is made again from its inputs' answers.

    event            an arrival, a retraction, a table change, all scheduled ends of an instant; also the opening of a query
                     and the close of an instant, once the clock has passed it
    a relation has   rows: its answer after the last event, a bag (in order of arrival iff it reads one stream)
    a stream has     emitted: what the last event added to it

What an item of FROM holds is in `contents.py`.

Nothing is kept but the rows that windows may still show, and what ToStream needs of the answer before the event. A node is left
alone while its inputs are the same objects.

Choices where the text leaves room:

* The opening of a query is no event for ISTREAM, DSTREAM and RSTREAM: what a query sees at once is not emitted.
* RSTREAM speaks of instants that are over: the answer at its end differs from that at the end of the last instant before
  (or at the opening). If windows below slide, it speaks at each of their boundaries after the opening, and then only.
* A non-retroactive table beside a relation counts as it was when the relation's row came (`born`): a row of a SELECT over one
  item when that one came, so that of a window that slides when it arrived; a row of a join when the last of its parts began; of
  a group when its values became what they are; of DISTINCT and the set operators when that copy of the value appeared, the
  youngest copy going first. The same holds for the rows of a running query, which is a relation: a bag of values. What reads
  tables alone brings no row that came; where nothing else is, tables count as they are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.reference.aggregates import aggregate
from tests.reference.contents import Element, Event, Input, Running
from tests.reference.operators import Aggregate, Combined, Distinct, Expression, Grouped, Select, ToStream
from tests.reference.tables import Table
from tests.reference.values import Row, Value, canonical_row

#: More combinations than this in one answer mean that a test was drawn too large.
MAX_COMBINATIONS = 200_000


def bag(rows: Sequence[Value]) -> Counter[Value]:
    return Counter(canonical_row(row) for row in rows)


# -- select, project, join -------------------------------------------------------------------------------------------


class Combinations:
    """The combinations of a FROM list that pass WHERE; `frozen` are the items that are tables as they were."""

    def __init__(self, where: Expression | None, inputs: dict[int, Input], frozen: dict[int, Table]) -> None:
        self._where = where
        self.inputs = inputs
        self.frozen = frozen
        self._before: list[list[Element]] = []

    def step(self, event: Event) -> bool:
        """Whether anything changed."""
        for given in self.inputs.values():
            given.step(event)
        elements = [given.elements for given in self.inputs.values()]
        same = len(elements) == len(self._before) and all(a is b for a, b in zip(elements, self._before))
        self._before = elements
        return not same

    def rows(self) -> Iterator[tuple[list[Row], int]]:
        """The rows of each combination, and since when it is there."""
        sizes = [len(elements) for elements in self._before]
        if math.prod(sizes) > MAX_COMBINATIONS:
            raise ValueError(f"too large for a model: {sizes} rows to combine")
        for chosen in itertools.product(*self._before):
            placed: dict[int, Row] = {k: element.row for k, element in zip(self.inputs, chosen)}
            came = [element.came for element in chosen if element.came is not None]
            arrived = max(came, default=0)
            born = arrived if came and len(chosen) == 1 else max(element.born for element in chosen)
            versions = [[version.row for version in table.at(arrived)] for table in self.frozen.values()]
            for more in itertools.product(*versions):
                placed.update(zip(self.frozen, more))
                rows = [placed[k] for k in range(len(placed))]
                if self._where is None or self._where.fn(rows) is True:
                    yield rows, born

    def due(self, now: float) -> float:
        return min((given.due(now) for given in self.inputs.values()), default=math.inf)


class RunningSelect:
    """A relation, or a stream if one of its inputs is one."""

    def __init__(self, tree: Select, combinations: Combinations) -> None:
        self._outputs = [node.fn for _, node in tree.outputs]
        self._is_stream = tree.is_stream
        self.combinations = combinations
        self.rows: list[Value] = []
        self.born: list[int] = []
        self.emitted: list[Value] = []

    def step(self, event: Event) -> None:
        changed = self.combinations.step(event)
        if self._is_stream:
            self.emitted = [row for row, _ in self._made()]
        elif changed:
            made = self._made()
            self.rows, self.born = [row for row, _ in made], [born for _, born in made]

    def _made(self) -> list[tuple[Value, int]]:
        return [(tuple(fn(rows) for fn in self._outputs), born) for rows, born in self.combinations.rows()]

    def due(self, now: float) -> float:
        return self.combinations.due(now)


class RunningGrouped:
    emitted: Sequence[Value] = ()

    def __init__(self, tree: Grouped, combinations: Combinations) -> None:
        self._tree = tree
        self.combinations = combinations
        self.rows: list[Value] = []
        self.born: list[int] = []
        #: by key: keys and aggregates, and since when they are that
        self._since: dict[Value, tuple[Value, int]] = {}
        self._begun = False

    def step(self, event: Event) -> None:
        if self.combinations.step(event) or not self._begun:
            self._begun = True
            made = list(self._made(event))
            self.rows, self.born = [row for row, _ in made], [born for _, born in made]

    def _made(self, event: Event) -> Iterator[tuple[Value, int]]:
        tree, before = self._tree, self._since
        self._since = {}
        groups: dict[Value, list[list[Row]]] = defaultdict(list)
        if tree.scalar:
            groups[()] = []
        for rows, _ in self.combinations.rows():
            groups[canonical_row(key.fn(rows) for key in tree.keys)].append(rows)
        for key_of, group in groups.items():
            row = {f"k{i}": key.fn(group[0]) for i, key in enumerate(tree.keys)}
            row |= {f"a{i}": _aggregated(made, group) for i, made in enumerate(tree.aggregates)}
            value = canonical_row(row.values())
            known, since = before.get(key_of, (None, 0))
            born = since if known == value else event.seq
            self._since[key_of] = value, born
            if tree.having is None or tree.having.fn([row]) is True:
                yield tuple(node.fn([row]) for _, node in tree.outputs), born

    def due(self, now: float) -> float:
        return self.combinations.due(now)


def _aggregated(made: Aggregate, group: list[list[Row]]) -> object:
    kept = [rows for rows in group if made.where is None or made.where.fn(rows) is True]
    return aggregate(made.kind, [made.argument.fn(rows) if made.argument else 1 for rows in kept], made.distinct)


# -- over answers ----------------------------------------------------------------------------------------------------


class Copies:
    """Since when each copy of a value is there: one more is the youngest, one less takes the youngest."""

    def __init__(self) -> None:
        self._stacks: dict[Value, list[int]] = {}

    def born(self, rows: Sequence[Value], seq: int) -> list[int]:
        """For each of the rows that are there now, after an event of commit `seq`."""
        values = [canonical_row(row) for row in rows]
        counts = Counter(values)
        self._stacks = {value: self._stacks.get(value, [])[:n] for value, n in counts.items()}
        for value, n in counts.items():
            self._stacks[value] += [seq] * (n - len(self._stacks[value]))
        places = {value: iter(stack) for value, stack in self._stacks.items()}
        return [next(places[value]) for value in values]


class RunningDistinct:
    emitted: Sequence[Value] = ()

    def __init__(self, tree: Distinct, child: Running) -> None:
        self.child = child
        self._before: Sequence[Value] | None = None
        self._copies = Copies()
        self.rows: list[Value] = []
        self.born: list[int] = []

    def step(self, event: Event) -> None:
        self.child.step(event)
        if self.child.rows is not self._before:
            self._before = self.child.rows
            self.rows = list({canonical_row(row): row for row in self._before}.values())
            self.born = self._copies.born(self.rows, event.seq)

    def due(self, now: float) -> float:
        return self.child.due(now)


def copies(word: str, all: bool, n: int, m: int) -> int:
    """How often a value is in the result that the left has n times and the right m times (`semantics.md` 18)."""
    match word, all:
        case "union", True:
            return n + m
        case "union", False:
            return int(n + m > 0)
        case "except", True:
            return max(0, n - m)
        case "except", False:
            return int(n > 0 and m == 0)
        case "intersect", True:
            return min(n, m)
        case "intersect", False:
            return int(n > 0 and m > 0)
    raise ValueError(f"no set operator {word}")


class RunningCombined:
    emitted: Sequence[Value] = ()

    def __init__(self, tree: Combined, left: Running, right: Running) -> None:
        self._tree = tree
        self.sides = left, right
        self._before: tuple[Sequence[Value], Sequence[Value]] | None = None
        self._copies = Copies()
        self.rows: list[Value] = []
        self.born: list[int] = []

    def step(self, event: Event) -> None:
        for side in self.sides:
            side.step(event)
        left, right = (side.rows for side in self.sides)
        if self._before and left is self._before[0] and right is self._before[1]:
            return
        self._before = left, right
        if self._tree.word == "union" and self._tree.all:
            self.rows, self.born = [*left, *right], [born for side in self.sides for born in side.born]
            return
        n, m = bag(left), bag(right)
        plain = {canonical_row(row): row for row in [*left, *right]}
        self.rows = [plain[v] for v in plain for _ in range(copies(self._tree.word, self._tree.all, n[v], m[v]))]
        self.born = self._copies.born(self.rows, event.seq)

    def due(self, now: float) -> float:
        return min(side.due(now) for side in self.sides)


class RunningToStream:
    """ISTREAM and DSTREAM by events, RSTREAM by instants; `slides` are those of the windows below."""

    rows: Sequence[Value] = ()
    born: Sequence[int] = ()

    def __init__(self, tree: ToStream, child: Running, slides: set[int]) -> None:
        self._word = tree.word
        self.child = child
        self._slides = slides
        self._opened = math.inf
        #: the answer before the event; for RSTREAM that at the end of the last instant
        self._before: Sequence[Value] = ()
        self.emitted: list[Value] = []

    def step(self, event: Event) -> None:
        self.child.step(event)
        rows = self.child.rows
        self.emitted = []
        if self._opened == math.inf:  # its own opening is no event
            self._opened = event.time
        elif self._word != "rstream":
            old, new = (self._before, rows) if self._word == "istream" else (rows, self._before)
            plain = {canonical_row(row): row for row in new}
            self.emitted = [plain[value] for value in (bag(new) - bag(old)).elements()] if old is not new else []
        elif event.kind == "close":
            self.emitted = list(rows) if self._speaks(event.time) else []
        else:
            return
        self._before = rows

    def _speaks(self, instant: float) -> bool:
        if self._slides:
            return instant > self._opened and any(instant % slide == 0 for slide in self._slides)
        return bag(self.child.rows) != bag(self._before)

    def due(self, now: float) -> float:
        times = [self.child.due(now)]
        if self._word == "rstream" and self.child.rows and not math.isinf(now):
            times += [now // slide * slide + slide for slide in self._slides]
        return min(times)


class Reference:
    """The root of a running query, read by another one; it has been stepped before its readers."""

    def __init__(self, root: Running) -> None:
        self._root = root
        self._copies = Copies()
        self._rows: Sequence[Value] | None = None
        self.born: list[int] = []

    @property
    def rows(self) -> Sequence[Value]:
        return self._root.rows

    @property
    def emitted(self) -> Sequence[Value]:
        return self._root.emitted

    def step(self, event: Event) -> None:
        """Its own query has stepped it."""
        if self._root.rows is not self._rows:
            self._rows = self._root.rows
            self.born = self._copies.born(self._rows, event.seq)

    def due(self, now: float) -> float:
        return math.inf


class Once:
    """A node with several readers: stepped once an event."""

    def __init__(self, node: Running) -> None:
        self._node = node
        self._event = -1

    @property
    def rows(self) -> Sequence[Value]:
        return self._node.rows

    @property
    def born(self) -> Sequence[int]:
        return self._node.born

    @property
    def emitted(self) -> Sequence[Value]:
        return self._node.emitted

    def step(self, event: Event) -> None:
        if event.number != self._event:
            self._event = event.number
            self._node.step(event)

    def due(self, now: float) -> float:
        return self._node.due(now)
