"""Plans of the queued pipeline: answers recomputed from all that was fed, and random plans and histories to compare with.

The recomputation knows lives and the meaning of operators as bags, nothing of messages, states or strategies.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from experiments.papers import (
    KeyedTable,
    OverwritingAggregate,
    QueuedDeltaStar,
    QueuedDistinct,
    QueuedGroupBy,
    QueuedIntersect,
    QueuedJoin,
    QueuedMinus,
    QueuedProject,
    QueuedRecipient,
    QueuedSelect,
    QueuedTableJoin,
    QueuedUnion,
    Retraction,
    RowAggregate,
    TimedRow,
    TimedSource,
)
from experiments.papers.buffers.element import Values, canonical
from experiments.papers.machine.node import PlanNode
from lineage.elements import FOREVER
from windows.spec import WindowSpec

Bag = Counter[Values]
Feed = Sequence[TimedRow | Retraction]


def lives(source: TimedSource, feed: Feed) -> list[tuple[Values, int, int]]:
    """Values, start and end of every row of a source."""
    rows: list[list[object]] = []
    for item in feed:
        if isinstance(item, Retraction):
            for row in rows:
                if tuple(row[0][c] for c in source.key) == item.key and row[2] > item.time_us:
                    row[2] = item.time_us
            continue
        start, end = item.time_us, item.time_us + source.window.width_us
        if source.window.slide_us:
            # in the extent of boundary B iff B - width <= time < B
            step = source.window.slide_us
            shown = [at for at in range(0, end + step, step) if at - source.window.width_us <= item.time_us < at]
            start, end = (shown[0], shown[-1] + step) if shown else (start, start)
        end = min(end, item.end_us, FOREVER)
        if end <= start:
            continue
        for row in rows:
            same_key = source.key and all(row[0][c] == item.values[c] for c in source.key)
            if same_key and row[2] > item.time_us:
                row[2] = item.time_us
        rows.append([canonical(item.values), start, end])
        if source.window.rows:
            part = [row for row in rows if all(row[0][c] == item.values[c] for c in source.window.partition)]
            if len(part) > source.window.rows:
                oldest = part[-source.window.rows - 1]
                oldest[2] = min(oldest[2], item.time_us)
    return [(row[0], row[1], row[2]) for row in rows]


def answer_at(node: PlanNode, feeds: dict[str, Feed], at_us: int) -> Bag:
    """What the plan's answer must be at an instant."""
    if isinstance(node, TimedSource):
        return Counter(values for values, start, end in lives(node, feeds[node.name]) if start <= at_us < end)
    inputs = [answer_at(below, feeds, at_us) for below in node.inputs]
    match node:
        case QueuedRecipient():
            return inputs[0]
        case QueuedSelect():
            return Counter({values: n for values, n in inputs[0].items() if node.condition(values)})
        case QueuedProject():
            return _mapped(inputs[0], lambda values: canonical(node.columns(values)))
        case QueuedUnion():
            return inputs[0] + inputs[1]
        case QueuedJoin():
            return _joined(node, *inputs)
        case QueuedTableJoin():
            return Counter({left + row: n for left, n in inputs[0].items() for _, row in node.table.find(node.key(left))})
        case QueuedDistinct() | QueuedDeltaStar():
            return Counter(dict.fromkeys(inputs[0], 1))
        case QueuedMinus():
            if node.duplicates:
                return inputs[0] - inputs[1]
            return Counter({values: 1 for values in inputs[0] if not inputs[1][values]})
        case QueuedIntersect():
            return inputs[0] & inputs[1] if node.duplicates else Counter({v: 1 for v in inputs[0] if inputs[1][v]})
        case QueuedGroupBy():
            return _grouped(node, inputs[0])
    raise AssertionError(node)


def _mapped(bag: Bag, function: Callable[[Values], Values]) -> Bag:
    found: Bag = Counter()
    for values, n in bag.items():
        found[function(values)] += n
    return found


def _joined(node: QueuedJoin, left: Bag, right: Bag) -> Bag:
    found: Bag = Counter()
    for l, n in left.items():
        for r, m in right.items():
            key = node.keys[0](l)
            if key is not None and key == node.keys[1](r) and (node.condition is None or node.condition(l, r)):
                found[l + r] += n * m
    return found


def _grouped(node: QueuedGroupBy, bag: Bag) -> Bag:
    groups: dict[Values, list[Values]] = {} if node.columns else {(): []}
    for values, n in bag.items():
        groups.setdefault(tuple(values[c] for c in node.columns), []).extend([values] * n)
    return Counter(group + tuple(aggregate.of(rows) for aggregate in node.aggregates) for group, rows in groups.items())


ALL_AGGREGATES = (
    RowAggregate("COUNT"),
    RowAggregate("COUNT", 1),
    RowAggregate("SUM", 1),
    RowAggregate("AVG", 1),
    RowAggregate("MIN", 1),
    RowAggregate("MAX", 1),
    RowAggregate("STDDEV", 1),
    RowAggregate("VARIANCE", 1),
    RowAggregate("MEDIAN", 1),
    RowAggregate("COUNT", 1, distinct=True),
    RowAggregate("SUM", 1, condition=lambda row: row[0] == 1),
)


def _a(width: int = 7) -> TimedSource:
    return TimedSource("a", WindowSpec.range(width))


def _b(width: int = 5) -> TimedSource:
    return TimedSource("b", WindowSpec.range(width))


def _weak() -> TimedSource:
    return TimedSource("a", WindowSpec.range(12), has_end=True)


def _keyed() -> TimedSource:
    return TimedSource("a", WindowSpec.range(9), key=(1,), has_end=True)


def _top_join() -> PlanNode:
    """Minus over join over distinct."""
    c = TimedSource("c", WindowSpec.range(6))
    return QueuedMinus(
        QueuedJoin(QueuedDistinct(_a()), _b(), [0], [0]), QueuedJoin(c, TimedSource("d", WindowSpec.range(4)), [0], [0])
    )


def _two_readers() -> PlanNode:
    """(A join C) - (B join C), one source read twice."""
    c = TimedSource("c", WindowSpec.range(6))
    return QueuedMinus(QueuedJoin(_a(), c, [0], [0]), QueuedJoin(_b(), c, [0], [0]))


#: name -> a new plan; rows have two columns, small values and NULLs
PLANS: dict[str, Callable[[], PlanNode]] = {
    "source": _a,
    "rows": lambda: TimedSource("a", WindowSpec.newest(3, width_us=8)),
    "partitioned rows": lambda: TimedSource("a", WindowSpec.newest(2, [0])),
    "slide": lambda: TimedSource("a", WindowSpec.sliding(7, 3)),
    "slide with holes": lambda: QueuedDistinct(TimedSource("a", WindowSpec.sliding(2, 5))),
    "slide of keyed": lambda: TimedSource("a", WindowSpec.sliding(8, 2), key=(1,), has_end=True),
    "group-by of tumble": lambda: QueuedGroupBy(TimedSource("a", WindowSpec.sliding(5, 5)), [0], ALL_AGGREGATES),
    "join of slides": lambda: QueuedJoin(
        TimedSource("a", WindowSpec.sliding(6, 3)), TimedSource("b", WindowSpec.sliding(4, 2)), [0], [0]
    ),
    "union of slides": lambda: QueuedUnion(
        TimedSource("a", WindowSpec.sliding(6, 3)), TimedSource("b", WindowSpec.sliding(6, 2))
    ),
    "minus of slides": lambda: QueuedMinus(TimedSource("a", WindowSpec.sliding(6, 3)), _b()),
    "unbounded": lambda: QueuedDistinct(TimedSource("a", WindowSpec.unbounded())),
    "select": lambda: QueuedSelect(_a(), lambda row: row[0] in (1, 2)),
    "project": lambda: QueuedProject(_a(), lambda row: (row[0],)),
    "union": lambda: QueuedUnion(_a(), _b()),
    "join": lambda: QueuedJoin(_a(), _b(), [0], [0]),
    "join with condition": lambda: QueuedJoin(_a(), _b(), [0], [0], lambda l, r: l[1] != r[1]),
    "join of keyed": lambda: QueuedJoin(_keyed(), _b(), [0], [0]),
    "join of rows": lambda: QueuedJoin(TimedSource("a", WindowSpec.newest(2)), _b(), [0], [0]),
    "table join": lambda: QueuedTableJoin(_a(), KeyedTable([0], [(1, "x"), (1, "y"), (3, "z")]), [0]),
    "table join of keyed": lambda: QueuedTableJoin(_keyed(), KeyedTable([0], [(1, "x"), (1, "y"), (3, "z")]), [0]),
    "distinct": lambda: QueuedDistinct(QueuedProject(_a(), lambda row: (row[0],))),
    "distinct of keyed": lambda: QueuedDistinct(QueuedProject(_keyed(), lambda row: (row[0],))),
    "distinct of join": lambda: QueuedDistinct(QueuedProject(QueuedJoin(_a(), _b(), [0], [0]), lambda row: (row[0], row[1]))),
    "delta-star": lambda: QueuedDeltaStar(QueuedProject(_a(), lambda row: (row[0],))),
    "delta-star of weak": lambda: QueuedDeltaStar(QueuedProject(_weak(), lambda row: (row[0],))),
    "delta-star of join": lambda: QueuedDeltaStar(QueuedProject(QueuedJoin(_a(), _b(), [0], [0]), lambda row: (row[0], row[1]))),
    "minus": lambda: QueuedMinus(QueuedProject(_a(), lambda row: (row[0],)), QueuedProject(_b(), lambda row: (row[0],))),
    "minus of weak": lambda: QueuedMinus(
        QueuedProject(_weak(), lambda row: (row[0],)), QueuedProject(_b(), lambda row: (row[0],))
    ),
    "set minus": lambda: QueuedMinus(
        QueuedProject(_a(), lambda row: (row[0],)), QueuedProject(_b(), lambda row: (row[0],)), duplicates=False
    ),
    "intersect": lambda: QueuedIntersect(QueuedProject(_a(), lambda row: (row[0],)), QueuedProject(_b(), lambda row: (row[0],))),
    "intersect of keyed": lambda: QueuedIntersect(
        QueuedProject(_keyed(), lambda row: (row[0],)), QueuedProject(_b(), lambda row: (row[0],))
    ),
    "set intersect": lambda: QueuedIntersect(
        QueuedProject(_a(), lambda row: (row[0],)), QueuedProject(_b(), lambda row: (row[0],)), duplicates=False
    ),
    "group-by": lambda: QueuedGroupBy(_a(), [0], ALL_AGGREGATES),
    "group-by of keyed": lambda: QueuedGroupBy(_keyed(), [0], ALL_AGGREGATES),
    "scalar": lambda: QueuedGroupBy(_a(), [], ALL_AGGREGATES),
    "overwriting": lambda: OverwritingAggregate(_a(), [0], ALL_AGGREGATES),
    "overwriting scalar": lambda: OverwritingAggregate(_keyed(), [], ALL_AGGREGATES),
    "group-by of join": lambda: QueuedGroupBy(QueuedJoin(_a(), _b(), [0], [0]), [0], [RowAggregate("MAX", 3)]),
    "group-by of minus": lambda: QueuedGroupBy(QueuedMinus(_a(), _b()), [0], ALL_AGGREGATES),
    "group-by of group-by": lambda: QueuedGroupBy(
        QueuedGroupBy(_a(), [0], [RowAggregate("COUNT")]), [1], [RowAggregate("COUNT")]
    ),
    "distinct of group-by": lambda: QueuedDistinct(
        QueuedProject(QueuedGroupBy(_a(), [0], [RowAggregate("COUNT")]), lambda row: (row[1],))
    ),
    "join of group-by": lambda: QueuedJoin(QueuedGroupBy(_a(), [0], [RowAggregate("COUNT")]), _b(), [0], [0]),
    "select of distinct of union": lambda: QueuedSelect(QueuedDistinct(QueuedUnion(_a(), _b())), lambda row: row[0] != 2),
    "join of distincts": lambda: QueuedJoin(
        QueuedDeltaStar(QueuedProject(_a(), lambda row: (row[0],))),
        QueuedDeltaStar(QueuedProject(_b(), lambda row: (row[0],))),
        [0],
        [0],
    ),
    "join of joins": lambda: QueuedJoin(
        QueuedJoin(_a(), _b(), [0], [0]),
        QueuedJoin(TimedSource("c", WindowSpec.range(6)), TimedSource("d", WindowSpec.range(6)), [0], [0]),
        [0],
        [0],
    ),
    "join of minus": lambda: QueuedJoin(QueuedMinus(_a(), _b()), TimedSource("c", WindowSpec.range(6)), [0], [0]),
    "minus of minus": lambda: QueuedMinus(QueuedMinus(_a(), _b()), TimedSource("c", WindowSpec.range(6))),
    "union of minus": lambda: QueuedDistinct(
        QueuedUnion(
            QueuedMinus(_a(), _b()),
            QueuedJoin(TimedSource("c", WindowSpec.range(3)), TimedSource("d", WindowSpec.range(9)), [0], [0]),
        )
    ),
    "minus over join over distinct": _top_join,
    "one source twice": _two_readers,
    "self-join": lambda: (lambda a: QueuedJoin(a, a, [0], [1]))(_a()),
    "intersect of minus": lambda: QueuedIntersect(
        QueuedMinus(_a(), _b()), QueuedMinus(_a(), TimedSource("c", WindowSpec.range(6)))
    ),
}


def sources(plan: PlanNode) -> list[TimedSource]:
    return [node for node in plan.walk() if isinstance(node, TimedSource)]


def random_feeds(plan: PlanNode, seed: int, n_rows: int = 30, span_us: int = 40) -> dict[str, Feed]:
    """Rows for every source of a plan: equal times, values that come again, NULLs, ends and retractions where there are keys."""
    rng = random.Random(seed)
    return {source.name: _random_feed(source, rng, n_rows, span_us) for source in sources(plan)}


def _random_feed(source: TimedSource, rng: random.Random, n_rows: int, span_us: int) -> Feed:
    feed: list[TimedRow | Retraction] = []
    for time in sorted(rng.randrange(span_us) for _ in range(n_rows)):
        values = (rng.choice([1, 1, 2, 2, 3, None]), rng.choice([1, 2, 3, None]))
        if source.key and rng.random() < 0.2:
            feed.append(Retraction(time, (values[1],)))
        else:
            end = time + rng.randrange(10) if source.has_end and rng.random() < 0.7 else FOREVER
            feed.append(TimedRow(time, values, end))
    return feed
