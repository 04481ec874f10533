"""Counters and gauges of the service for Prometheus, made on each request.

Labels are bounded: routes come from the table in `api/edge/access_tokens.py`, streams are the `STREAMS` with the most rows, then
`other`, merges the `MERGES` with the most bytes, with their attached inputs; no query, client or row is a label. Figures of the
engine are asked of its thread and left out if it does not answer in `PATIENCE` seconds, so an overloaded service can still be
observed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from api.base.timings import Timings
from api.core.core import Core
from api.core.inbox import BusyError, ClosedError
from api.core.service import Service
from api.edge.access_tokens import ApiRoute

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
#: Streams that have a label of their own.
STREAMS = 50
#: Merges that have a label of their own, each with its inputs.
MERGES = 20
#: Seconds that the engine has to answer.
PATIENCE = 2.0
#: Seconds until the first byte of an answer, by which requests are told apart.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The metrics of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "eddy_requests", "Requests that were answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "eddy_request_seconds", "Seconds until the first byte of an answer.", buckets=SECONDS, registry=self._registry
        )

    def observe(self, route: ApiRoute, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route.method, route.template, str(status)).inc()
        self._seconds.observe(seconds)

    async def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        own = CollectorRegistry()
        own.register(_Once([*_service_metrics(self._service), *await self._engine_metrics()]))
        return generate_latest(self._registry) + generate_latest(own)

    async def _engine_metrics(self) -> list[Metric]:
        if not self._service.ready:
            return []
        try:
            facts = await asyncio.wait_for(self._service.read(_look), PATIENCE)
        except (TimeoutError, BusyError, ClosedError):
            return []
        return list(_of_engine(facts))


class _Once(Collector):
    """A collector of given metrics."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


def _service_metrics(service: Service) -> Iterator[Metric]:
    """Yield the metrics that need no engine."""
    yield _gauge("eddy_ready", "1 while calls are taken.", service.ready)
    hub = service.hub
    yield _gauge("eddy_subscriptions", "Readers of changes.", len(hub.subscriptions))
    yield _gauge("eddy_subscription_bytes", "Bytes that wait for readers.", sum(one.n_bytes for one in hub.subscriptions))
    yield _counter("eddy_subscription_overflows", "Times that a reader was too slow.", hub.overflowed)
    yield _counter("eddy_subscription_dropped_parts", "Parts of changes that slow readers did not get.", hub.dropped)
    if service.state == "recovering":
        return
    core = service.core
    inbox, writer = core.inbox, core.writer
    yield _gauge("eddy_queue_calls", "Calls that wait for the engine.", inbox.calls)
    yield _gauge("eddy_queue_reads", "Reads that wait for the engine.", inbox.reads)
    yield _gauge("eddy_queue_bytes", "Bytes of calls that wait for the engine.", inbox.bytes)
    yield _counter("eddy_queue_refused", "Calls and reads for which there was no room.", inbox.refused)
    yield _counter("eddy_bad_calls", "Bugs that ended a call before it had changed anything.", core.bad_calls)
    yield _counter("eddy_bad_reads", "Bugs that ended a read.", core.bad_reads)
    yield _counter("eddy_clock_steps", "Times that the wall clock was put elsewhere.", core.arrival.steps)
    yield _counter("eddy_engine_busy_seconds", "CPU seconds of the engine's thread.", core.busy_ns / 1e9)
    yield _counter("eddy_writer_groups", "Groups of calls that were released.", writer.groups)
    yield _counter("eddy_writer_records", "Records of the journal.", writer.records)
    yield _counter("eddy_writer_bytes", "Bytes of the journal.", writer.bytes)
    yield _counter("eddy_writer_snapshots", "Snapshots.", writer.snapshots)
    yield _sync_seconds(writer.syncs)


def _sync_seconds(syncs: Timings) -> Metric:
    family = HistogramMetricFamily("eddy_sync_seconds", "Seconds that it took to make a group durable.")
    buckets, total = [], 0
    for bound, count in zip((*map(str, syncs.bounds), "+Inf"), syncs.counts):
        total += count
        buckets.append((bound, total))
    family.add_metric((), buckets, syncs.seconds)
    return family


def _look(core: Core) -> dict[str, Any]:
    """Return the figures of the engine; in its thread."""
    engine = core.engine
    merges = {stream.name: engine.merge_stats(stream.name) for stream in engine.streams.values() if stream.kind == "merge"}
    return engine.totals() | {"watched": len(core.watches), "merges": merges}


def _of_engine(facts: dict[str, Any]) -> Iterator[Metric]:
    yield _counter("eddy_commits", "The number of the last commit.", facts["seq"])
    yield _gauge("eddy_queries", "Queries.", facts["queries"])
    yield _gauge("eddy_queries_watched", "Queries whose changes somebody reads.", facts["watched"])
    yield _gauge("eddy_streams", "Streams.", len(facts["streams"]))
    yield _gauge("eddy_tables", "Tables.", len(facts["tables"]))
    yield _gauge("eddy_state_bytes", "Bytes that the engine holds.", facts["bytes"])
    rows = CounterMetricFamily("eddy_rows", "Rows that streams have taken.", labels=("stream",))
    late = CounterMetricFamily("eddy_late_rows", "Rows that came too late.", labels=("stream",))
    expired = CounterMetricFamily("eddy_expired_rows", "Rows whose life was over when they came.", labels=("stream",))
    by_rows = sorted(facts["streams"].items(), key=lambda entry: (-entry[1]["rows"], entry[0]))
    others = [counts for _, counts in by_rows[STREAMS:]]
    for family, count in ((rows, "rows"), (late, "late"), (expired, "expired")):
        for name, counts in by_rows[:STREAMS]:
            family.add_metric((name,), counts[count])
        if others:
            # no stream can be called this: names have no spaces
            family.add_metric(("all others",), sum(counts[count] for counts in others))
        yield family
    yield from _of_merges(facts["merges"])


#: Metrics of a merge, and of one of its inputs: family, name, text, and the name of the count.
_MERGE = (
    (GaugeMetricFamily, "eddy_merge_live_events", "Events of a merge that its point has not passed.", "live_events"),
    (GaugeMetricFamily, "eddy_merge_bytes", "Bytes that a merge holds for its inputs.", "bytes"),
    (CounterMetricFamily, "eddy_merge_chatter", "Changes of rows that a merge had given out.", "chatter"),
    (CounterMetricFamily, "eddy_merge_gaps", "Times for which no input told.", "gaps"),
)
_INPUT = (
    (CounterMetricFamily, "eddy_merge_input_rows", "Rows that an input has given.", "rows"),
    (CounterMetricFamily, "eddy_merge_input_duplicates", "Rows that an input had given before.", "duplicates"),
    (CounterMetricFamily, "eddy_merge_input_settled", "Rows that an input gave too late.", "settled"),
    (CounterMetricFamily, "eddy_merge_input_contradictions", "Rows that differ from those given first.", "contradictions"),
    (GaugeMetricFamily, "eddy_merge_input_stable_lag_seconds", "How far its point is behind the largest.", "stable_lag_us"),
    (GaugeMetricFamily, "eddy_merge_input_leads", "The share of time for which it decided, 0 to 1.", "leads"),
)


def _of_merges(merges: dict[str, dict[str, Any]]) -> Iterator[Metric]:
    """Yield the metrics of merges, those with the most bytes, and of each of their inputs."""
    largest = sorted(merges.items(), key=lambda entry: (-entry[1]["bytes"], entry[0]))[:MERGES]
    for make, name, text, count in _MERGE:
        family = make(name, text, labels=("merge",))
        for merge, found in largest:
            family.add_metric((merge,), found["gaps"]["count"] if count == "gaps" else found[count])
        yield family
    for make, name, text, count in _INPUT:
        family = make(name, text, labels=("merge", "input"))
        for merge, found in largest:
            for of, counts in found["inputs"].items():
                if counts[count] is not None:
                    family.add_metric((merge, of), counts[count] / 1e6 if count == "stable_lag_us" else counts[count])
        yield family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=float(value))
