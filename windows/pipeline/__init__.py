"""The window papers, reproduced: per-row operators with queues, local clocks and virtual time.

The engine settles every commit, so its answers never depend on how ends are found. Here nothing settles by itself: rows wait in
queues before operators that take their time, ends are found late or travel as messages, and the answer lags and errs as the
papers say. The operators are the printed algorithms with the errata of semantics.md corrected; they are the slow twins of the
engine's.

Build a plan of operators over sources, feed timed rows, run to a virtual time, read the answer and the counters:

>>> from windows.pipeline import Aggregate, GroupBy, Pipeline, Select, Service, Source, TimedRow
>>> from windows.spec import WindowSpec
>>> sales = Source("sales", WindowSpec.range(5))
>>> plan = GroupBy(Select(sales, lambda row: row[0] > 4), [], [Aggregate("COUNT")])
>>> pipeline = Pipeline(plan, "negative", service=Service(message_us=1))
>>> pipeline.feed(sales, [TimedRow(0, (5,)), TimedRow(2, (3,)), TimedRow(4, (7,))])
>>> pipeline.run(5)
>>> pipeline.answer                        # the 7 came at 4 and is with the group-by, the 5 ends now
[(1,)]
>>> pipeline.run(20)
>>> pipeline.answer
[(0,)]
>>> pipeline.delays.average_us, pipeline.operators["group-by"].counters.negative_ratio
(3.44..., 1.0)

The words of `expiry` are those of the engine, but for `auto`: `windows/pipeline/strategy.py`.
"""

from windows.pipeline.aggregates import Aggregate
from windows.pipeline.executor import Pipeline, Service
from windows.pipeline.operators.delta_star import DeltaStar
from windows.pipeline.operators.distinct import Distinct
from windows.pipeline.operators.group_by import GroupBy
from windows.pipeline.operators.intersect import Intersect
from windows.pipeline.operators.join import Join
from windows.pipeline.operators.minus import Minus
from windows.pipeline.operators.overwriting import OverwritingAggregate
from windows.pipeline.operators.project import Project
from windows.pipeline.operators.recipient import Recipient
from windows.pipeline.operators.select import Select
from windows.pipeline.operators.table_join import Table, TableJoin
from windows.pipeline.operators.temporal import TemporalAggregate
from windows.pipeline.operators.union import Union
from windows.pipeline.plan import distinct
from windows.pipeline.source import Retraction, Source, TimedRow
from windows.pipeline.strategy import EXPIRY, Maintenance

__all__ = [
    "EXPIRY",
    "Aggregate",
    "DeltaStar",
    "Distinct",
    "GroupBy",
    "Intersect",
    "Join",
    "Maintenance",
    "Minus",
    "OverwritingAggregate",
    "Pipeline",
    "Project",
    "Recipient",
    "Retraction",
    "Select",
    "Service",
    "Source",
    "Table",
    "TableJoin",
    "TemporalAggregate",
    "TimedRow",
    "Union",
    "distinct",
]
