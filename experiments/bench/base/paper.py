"""The speed of the paper's per-tuple filter on a workload: one row at a time through ordered maps and hash tables."""

from __future__ import annotations

import time

from experiments.bench.base.workloads import Workload, intervals_of, keys_of
from experiments.papers.grouped_filter import ReferenceEddy


def per_tuple_seconds(workload: Workload, seconds: float) -> float:
    """CPU seconds a row; takes about `seconds` besides building."""
    eddy = ReferenceEddy(list(workload.columns))
    for slot, query in enumerate(workload.queries):
        eddy.add(slot, intervals_of(workload, query))
    rows = keys_of(workload, workload.batches[0])
    start = time.thread_time()
    until = start + seconds
    n_rows = 0
    for row in rows:
        eddy.match(row)
        n_rows += 1
        if time.thread_time() > until:
            break
    return (time.thread_time() - start) / n_rows
