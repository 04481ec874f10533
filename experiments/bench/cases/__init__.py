"""The cases of `eddy bench`, by name."""

from __future__ import annotations

from collections.abc import Callable

from experiments.bench.base.options import Options, Step
from experiments.bench.cases import (
    arrow,
    calendar,
    churn,
    csv,
    filters,
    generate,
    group_by,
    idle,
    intervals,
    join,
    latency,
    lmerge,
    merges,
    numbers,
    replay,
    routing,
    selective,
    service,
    startup,
    windows,
)

CASES: dict[str, Callable[[Options], list[Step]]] = {
    "filters": filters.ints,
    "floats": filters.floats,
    "selective": selective.steps,
    "intervals": intervals.steps,
    "churn": churn.steps,
    "numbers": numbers.steps,
    "latency": latency.steps,
    "routing": routing.steps,
    "idle": idle.steps,
    "startup": startup.steps,
    "join": join.steps,
    "lmerge": lmerge.steps,
    "windows": windows.steps,
    "calendar": calendar.steps,
    "group-by": group_by.steps,
    "service": service.steps,
    "merges": merges.steps,
    "generate": generate.steps,
    "replay": replay.steps,
    "arrow": arrow.steps,
    "csv": csv.steps,
}

#: Cases that another one runs too.
PART_OF = {"group-by": "windows"}
