"""Progress of Spark's jobs, reported while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Takes the number of tasks that are done and of those there are. Both only grow.
Report = Callable[[int, int], None]

_SECONDS = 0.25


@contextmanager
def reporting(spark: SparkSession, report: Report, expected: int = 0) -> Iterator[None]:
    """Report on all jobs started within; `expected` is the least number of tasks."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    group = "eddy"
    context.setJobGroup(group, "eddy", interruptOnCancel=True)
    over = threading.Event()

    def watch() -> None:
        done, total = 0, expected
        # Spark is there
        report(done, total)
        while not over.wait(_SECONDS):
            now_done, now_total = _tasks(tracker, group)
            if (max(done, now_done), max(total, now_total)) != (done, total):
                done, total = max(done, now_done), max(total, now_total)
                report(done, total)

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", None)


def _tasks(tracker: Any, group: str) -> tuple[int, int]:
    """Return the numbers of finished and known tasks; stages that Spark has forgotten are not counted."""
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            found = tracker.getStageInfo(stage)
            if found is not None:
                done += found.numCompletedTasks
                total += found.numTasks
    return done, total
