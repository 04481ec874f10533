"""One plan, two ways to run it: the engine's operators over deltas, and the papers' over single messages.

A plan is a nested tuple, `("distinct", ("project", (0,), 0))`: a word, what it needs to know, and its inputs; a number is an edge
of the history. Rows of an edge are (k, v). Every event has an instant of its own: the bags after an instant are those after an
event.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from experiments.papers import (
    OverwritingAggregate,
    Pipeline,
    QueuedDistinct,
    QueuedIntersect,
    QueuedJoin,
    QueuedMinus,
    QueuedProject,
    QueuedUnion,
    Retraction,
    TemporalAggregate,
    TimedRow,
    TimedSource,
)
from experiments.papers import (
    QueuedDeltaStar as TwinDeltaStar,
)
from experiments.papers import (
    QueuedGroupBy as TwinGroupBy,
)
from experiments.papers import (
    QueuedSelect as TwinSelect,
)
from experiments.papers import (
    RowAggregate as TwinAggregate,
)
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.strategy import Trigger
from filters.expressions.expression import ColumnRef, FunctionCall, Literal
from lineage.elements import FOREVER
from lineage.schema import Type
from tests.unit.windows.histories import Bags, Change, History, Value, at, commits
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.delta import Delta
from windows.operators.distinct import DeltaStar, distinct
from windows.operators.group_by import GroupByOperator
from windows.operators.intersect import IntersectStar
from windows.operators.join import KeyPair, PairJoin
from windows.operators.operator import Operator
from windows.operators.select import SelectOperator
from windows.operators.set_operation import KINDS, SetOperator
from windows.operators.union import UnionAll
from windows.spec import WindowSpec
from windows.state.due import Buffer, Calendar, Fifo, Scan, Unscheduled
from windows.state.rows import LiveRows

Spec = Any
Bag = Counter[Value]
INT = Type.INT

#: word of the pipeline -> how the engine's operators find the ends of an edge that does not send them
BUFFERS: dict[str, Callable[[], Buffer]] = {
    "input": Scan,
    "direct": Scan,
    "negative": Unscheduled,
    "negative+message": Calendar,
    "piggyback": Calendar,
    "update-pattern": Calendar,
}
SENDING = ("negative",)
OF_COLUMN = ("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VARIANCE", "MEDIAN")
#: every aggregate of the language, of column 1: function, column, DISTINCT
AGGREGATES = [("COUNT", None, False), *((word, 1, False) for word in OF_COLUMN), ("COUNT", 1, True)]
#: and those that ask in which order rows came: only of rows of a stream, which other operators may show again
OF_ORDER = [("FIRST", 1, False), ("LAST", 1, False)]
#: whose group-by has them
ORDERED = ("ordered", "filtered")
#: the place of the column that "flagged" adds and FILTER reads
FLAG = 2


def random_events(seed: int, n_edges: int, *, premature: bool, in_order: bool, n_events: int = 50) -> History:
    """One row that begins or ends at each of different instants; scheduled ends may fall on them."""
    rng = random.Random(seed)
    live: list[dict[int, int]] = [{} for _ in range(n_edges)]
    clock, arrivals = 0, []
    for uid in range(n_events):
        clock += rng.choice([1, 1, 2, 3, 9])
        edge = rng.randrange(n_edges)
        here = live[edge] = {id: end for id, end in live[edge].items() if end > clock}
        change = Change()
        if premature and here and rng.random() < 0.35:
            change.ended.append(ended := rng.choice(list(here)))
            del here[ended]
        else:
            end = clock + (30 if in_order else rng.choice([1, 4, 10, 30, 60]))
            if premature and rng.random() < 0.3:
                end = FOREVER
            here[uid] = end
            change.begun.append((uid, end, (rng.choice([None, 1, 1, 2, 3]), rng.choice([None, 5, 6, 7]))))
        arrivals.append((clock, [change if k == edge else Change() for k in range(n_edges)]))
    return History([(INT, INT)] * n_edges, arrivals)


def instants(history: History) -> list[int]:
    """All at which something may happen."""
    found = {time for time, _ in history.arrivals}
    found |= {end for _, changes in history.arrivals for change in changes for _, end, _ in change.begun if end < FOREVER}
    return sorted(found)


class Kernels:
    """A plan of the engine's operators."""

    def __init__(self, spec: Spec, word: str, *, fifo: bool = False) -> None:
        self._buffer = Fifo if fifo else BUFFERS[word]
        self._sends = word in SENDING
        self.operators: list[Operator] = []
        self._run, self.types, self.sends_ends = self._make(spec)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        return self._run(inputs, upto)

    def _rows(self, spec: Spec, sends: bool) -> LiveRows:
        leaf = not isinstance(spec, tuple)
        return LiveRows(Unscheduled() if sends else self._buffer() if leaf else Calendar())

    def _make(self, spec: Spec) -> tuple[Callable[[Sequence[Delta], int], Delta], tuple[Type, ...], bool]:
        if not isinstance(spec, tuple):
            return (lambda inputs, upto: inputs[spec]), (INT, INT), self._sends
        word, *rest = spec
        below = [part for part in rest if not isinstance(part, tuple) or (part and isinstance(part[0], str))]
        made = [self._make(part) for part in below]
        types, sends = made[0][1], [part[2] for part in made]
        rows = [self._rows(part, sent) for part, sent in zip(below, sends)]
        operator = self._operator(word, rest, [part[1] for part in made], types, sends, rows)
        self.operators.append(operator)
        runs = [part[0] for part in made]
        return (
            (lambda inputs, upto: operator.process([run(inputs, upto) for run in runs], upto)),
            operator.types,
            operator.sends_ends,
        )

    def _operator(
        self, word: str, rest: Sequence[Any], all_types: Sequence[tuple[Type, ...]], types: tuple[Type, ...],
        sends: list[bool], rows: list[LiveRows],
    ) -> Operator:  # fmt: skip
        columns = [ColumnRef(type, f"c{k}", k) for k, type in enumerate(types)]
        match word:
            case "select":
                condition = FunctionCall(Type.BOOL, ">", (columns[0], Literal(INT, rest[0][0])))
                return SelectOperator(condition, columns, sends_ends=sends[0])
            case "project":
                return SelectOperator(None, [columns[k] for k in rest[0]], sends_ends=sends[0])
            case "union all":
                return UnionAll(types, sends_ends=all(sends))
            case "join":
                return PairJoin(
                    (all_types[0], all_types[1]), [KeyPair.of_columns(all_types, 0, 0)], None, rows, sends_ends=all(sends)
                )
            case "distinct":
                return distinct(types, rows[0])
            case "delta-star":
                # where every end is sent nothing is gained by it, and the engine counts
                return distinct(types, rows[0]) if sends[0] else DeltaStar(types, Calendar())
            case "intersect-star":
                return SetOperator(KINDS["intersect", False], types, rows) if any(sends) else _star(types)
            case "flagged":
                return SelectOperator(
                    None, [*columns, FunctionCall(Type.BOOL, ">", (columns[1], Literal(INT, 5)))], sends_ends=sends[0]
                )
            case "group-by" | "ordered" | "overwriting" | "temporal" | "filtered":
                floats = ("AVG", "STDDEV", "VARIANCE", "MEDIAN")
                flag = FLAG if word == "filtered" else None
                aggregates = [
                    AggregateSpec(AggregateKind[kind], column, Type.FLOAT if kind in floats else INT, distinct, flag)
                    for kind, column, distinct in AGGREGATES + (OF_ORDER if word in ORDERED else [])
                ]
                return GroupByOperator(types, len(rest[0]), aggregates, rows[0])
        kind, _, all_ = word.partition(" ")
        return SetOperator(KINDS[kind, bool(all_)], types, rows)


def _star(types: Sequence[Type]) -> IntersectStar:
    return IntersectStar(types, Calendar(), Calendar())


def twin(spec: Spec, edges: Sequence[PlanNode]) -> PlanNode:
    """The same plan of the papers' operators."""
    if not isinstance(spec, tuple):
        return edges[spec]
    word, *rest = spec
    below = [twin(part, edges) for part in rest if not isinstance(part, tuple) or (part and isinstance(part[0], str))]
    flag = (lambda row: row[FLAG] is True) if word == "filtered" else None
    wanted = AGGREGATES + (OF_ORDER if word in ORDERED else [])
    aggregates = [TwinAggregate(kind, column, distinct, flag) for kind, column, distinct in wanted]
    match word:
        case "select":
            return TwinSelect(below[0], lambda row: row[0] is not None and row[0] > rest[0][0])
        case "project":
            return QueuedProject(below[0], lambda row: tuple(row[k] for k in rest[0]))
        case "union all":
            return QueuedUnion(*below)
        case "union":
            return QueuedDistinct(QueuedUnion(*below))
        case "join":
            return QueuedJoin(*below, [0], [0])
        case "distinct":
            return QueuedDistinct(below[0])
        case "delta-star":
            return TwinDeltaStar(below[0])
        case "except" | "except all":
            return QueuedMinus(*below, duplicates=word == "except all")
        case "intersect" | "intersect all" | "intersect-star":
            return QueuedIntersect(*below, duplicates=word == "intersect all")
        case "flagged":
            return QueuedProject(below[0], lambda row: (*row, None if row[1] is None else row[1] > 5))
        case "group-by" | "ordered" | "overwriting" | "temporal" | "filtered":
            make = {"overwriting": OverwritingAggregate, "temporal": TemporalAggregate}.get(word, TwinGroupBy)
            return make(below[0], list(rest[0]), aggregates)
    raise AssertionError(word)


def fed(spec: Spec, history: History, word: str, premature: bool) -> Pipeline:
    """A pipeline that will get the history: rows with ends of their own, and a key of their own where ends may be premature."""
    sources = [
        TimedSource(f"s{edge}", WindowSpec.unbounded(), key=(2,) if premature else (), has_end=True)
        for edge in range(len(history.types))
    ]
    edges: list[PlanNode] = [QueuedProject(source, lambda row: row[:2]) for source in sources]
    pipeline = Pipeline(twin(spec, edges), word)
    for edge, source in enumerate(sources):
        if source not in pipeline.sources:
            continue
        feed: list[TimedRow | Retraction] = []
        for time, changes in history.arrivals:
            feed += [Retraction(time, (id,)) for id in changes[edge].ended]
            feed += [TimedRow(time, (*value, id), end) for id, end, value in changes[edge].begun]
        pipeline.feed(source, feed)
    return pipeline


def settled(pipeline: Pipeline, times: Sequence[int]) -> Iterator[Bag]:
    """The answers at these instants, nothing left undone."""
    told = all(op.mode.trigger is Trigger.MESSAGE for op in pipeline.operators.values())
    for time in times:
        pipeline.run(time)
        if not told:
            pipeline.settle()
        pipeline.check()
        yield Counter(pipeline.answer)


def kernel_bags(spec: Spec, history: History, word: str, cut: int | None, *, fifo: bool = False) -> Bags:
    """The output of the engine's operators, read back."""
    history.sends_ends = word in SENDING
    kernels = Kernels(spec, word, fifo=fifo and word == "update-pattern")
    output = Bags(kernels.sends_ends)
    for deltas, upto in commits(history, cut):
        output.read(kernels.process(deltas, upto), upto)
        for operator in kernels.operators:
            operator.check()
    return output


def bags_at(output: Bags, times: Sequence[int]) -> list[Bag]:
    return [+bag for bag in at(output.states, [(time, 2**62) for time in times])]
