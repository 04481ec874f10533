"""The window papers, reproduced: per-row operators with queues, local clocks and virtual time.

The engine settles every commit, so its answers never depend on how ends are found. Here nothing settles by itself: rows wait in
queues before operators that take their time, ends are found late or travel as messages, and the answer lags and errs as the
papers say. The operators are the printed algorithms with the errata of semantics.md corrected; they are the slow twins of the
engine's.

Build a plan of operators over sources, feed timed rows, run to a virtual time, read the answer and the counters:

>>> from experiments.papers import RowAggregate, QueuedGroupBy, Pipeline, QueuedSelect, ServiceTimes, TimedSource, TimedRow
>>> from windows.spec import WindowSpec
>>> sales = TimedSource("sales", WindowSpec.range(5))
>>> plan = QueuedGroupBy(QueuedSelect(sales, lambda row: row[0] > 4), [], [RowAggregate("COUNT")])
>>> pipeline = Pipeline(plan, "negative", service=ServiceTimes(message_us=1))
>>> pipeline.feed(sales, [TimedRow(0, (5,)), TimedRow(2, (3,)), TimedRow(4, (7,))])
>>> pipeline.run(5)
>>> pipeline.answer                        # the 7 came at 4 and is with the group-by, the 5 ends now
[(1,)]
>>> pipeline.run(20)
>>> pipeline.answer
[(0,)]
>>> pipeline.delays.average_us, pipeline.operators["group-by"].counters.negative_ratio
(3.44..., 1.0)

The words of `expiry` are those of the engine, but for `auto`: `experiments/papers/machine/strategy.py`. The algorithms of the
LMerge paper stand apart from all that, in `experiments/papers/lmerge/`.
"""

from experiments.papers.executor import Pipeline, ServiceTimes
from experiments.papers.machine.aggregates import RowAggregate
from experiments.papers.machine.strategy import EXPIRY, Maintenance
from experiments.papers.machine.timed_source import Retraction, TimedRow, TimedSource
from experiments.papers.operators.delta_star import QueuedDeltaStar
from experiments.papers.operators.distinct import QueuedDistinct
from experiments.papers.operators.group_by import QueuedGroupBy
from experiments.papers.operators.intersect import QueuedIntersect
from experiments.papers.operators.join import QueuedJoin
from experiments.papers.operators.minus import QueuedMinus
from experiments.papers.operators.overwriting import OverwritingAggregate
from experiments.papers.operators.project import QueuedProject
from experiments.papers.operators.recipient import QueuedRecipient
from experiments.papers.operators.select import QueuedSelect
from experiments.papers.operators.table_join import KeyedTable, QueuedTableJoin
from experiments.papers.operators.temporal import TemporalAggregate
from experiments.papers.operators.union import QueuedUnion
from experiments.papers.plan import distinct

__all__ = [
    "EXPIRY",
    "KeyedTable",
    "Maintenance",
    "OverwritingAggregate",
    "Pipeline",
    "QueuedDeltaStar",
    "QueuedDistinct",
    "QueuedGroupBy",
    "QueuedIntersect",
    "QueuedJoin",
    "QueuedMinus",
    "QueuedProject",
    "QueuedRecipient",
    "QueuedSelect",
    "QueuedTableJoin",
    "QueuedUnion",
    "Retraction",
    "RowAggregate",
    "ServiceTimes",
    "TemporalAggregate",
    "TimedRow",
    "TimedSource",
    "distinct",
]
