"""A durable server under load over loopback, 1,000 queries: rows/s by format, latency, overload, stalled and dribbling clients.

The sender is another process on the other core (`experiments/bench/service/sender.py`). The rate that the server can sustain is
found first, by a closed loop in the same run; everything else is open loop at a share of it. The data directory is in memory if
the machine has a place for that: what a sync of its disk takes is measured apart.
"""

from __future__ import annotations

import signal
import statistics
from functools import partial
from typing import Any

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.service.request_templates import FORMATS
from experiments.bench.service.running import Running, running

QUERIES = 1000
#: Rows of one request.
ROWS = 1000
#: Of peak, at twice the sustainable rate.
GOODPUT = 0.90
#: How much a stalled or dribbling client may move the p99 of others, beyond the worse of two equal runs without it.
SPREAD = 0.25
#: Rounds of all of them in turns; the median of a round's p99 counts.
ROUNDS = 5
#: Connections that dribble.
DRIBBLERS = 200
#: Seconds for a batch of 10,000 queries.
BATCH_SECONDS = 10.0
#: Seconds in which a server ends, and those who read of it then.
STOP_SECONDS = 5.0
READERS = 20


def _ms(found: dict[str, Any], what: str, quantile: str) -> Measure:
    return Measure(1000 * found[what].get(quantile, float("nan")), "ms")


def _by_format(format_: str, options: Options) -> list[Line]:
    seconds = max(2.0, 3 * options.seconds)
    with running(in_memory=True) as server:
        server.define(QUERIES)
        server.send(format_, ROWS, 1.0)
        peak = server.send(format_, ROWS, seconds)
        rate = peak["rows_per_s"] / ROWS
        calm = server.send(format_, ROWS, seconds, 0.5 * rate)
        setting: dict[str, int | str] = {"queries": QUERIES, "rows": ROWS, "format": format_}
        lines = [
            Line("service", f"{format_}: as fast as it goes", {"rows_per_s": Measure(peak["rows_per_s"], "/s")}, None, setting),
            Line(
                "service", f"{format_}: half of that, from due to visible",
                {
                    "rows_per_s": Measure(calm["rows_per_s"], "/s"), "median": _ms(calm, "visible", "p50"),
                    "p99": _ms(calm, "visible", "p99"),
                },
                None, setting,
            ),
        ]  # fmt: skip
        if format_ == FORMATS[0]:
            lines += _overload(server, format_, rate, peak["rows_per_s"], seconds, setting)
            lines += _others(server, format_, rate, seconds, setting)
    return lines


def _on_disk(options: Options) -> list[Line]:
    """The same on the disk of this machine, which may stand still for a second: that is nobody's bar."""
    seconds, format_ = max(2.0, 3 * options.seconds), FORMATS[0]
    with running() as server:
        server.define(QUERIES)
        server.send(format_, ROWS, 1.0)
        peak = server.send(format_, ROWS, seconds)
        double = server.send(format_, ROWS, 2 * seconds, 2 * peak["rows_per_s"] / ROWS)
    setting: dict[str, int | str] = {"queries": QUERIES, "rows": ROWS, "format": format_}
    measures = {
        "rows_per_s": Measure(double["rows_per_s"], "/s"),
        "of_peak": Measure(double["rows_per_s"] / peak["rows_per_s"], "%"),
        "refused": Measure(double["refused"], ""),
        "p99": _ms(double, "visible", "p99"),
    }
    return [
        Line(
            "service", f"{format_}, on disk: as fast as it goes", {"rows_per_s": Measure(peak["rows_per_s"], "/s")}, None, setting
        ),
        Line("service", f"{format_}, on disk: twice what it can", measures, None, setting),
    ]


def _overload(
    server: Running, format_: str, rate: float, peak: float, seconds: float, setting: dict[str, int | str]
) -> list[Line]:  # fmt: skip
    found = server.send(format_, ROWS, 2 * seconds, 2 * rate)
    goodput = found["rows_per_s"] / peak
    measures = {
        "rows_per_s": Measure(found["rows_per_s"], "/s"),
        "of_peak": Measure(goodput, "%"),
        "refused": Measure(found["refused"], ""),
        "refusal_p99": _ms(found, "refusal", "p99"),
        "p99": _ms(found, "visible", "p99"),
    }
    return [Line("service", f"{format_}: twice what it can", measures, Bar.at_least(goodput, GOODPUT, "%"), setting)]


def _others(server: Running, format_: str, rate: float, seconds: float, setting: dict[str, int | str]) -> list[Line]:
    """The p99 of others, with a client that stalls and with many that dribble, against two runs without.

    The busy query is there in all of them. Its reader has stalled when the measuring begins: while its buffers fill up it is one
    that reads.
    """
    server.client.put("/v1/queries/busy", json={"sql": "SELECT price, size, n FROM ticks"}).raise_for_status()
    found: dict[str, list[float]] = {}

    def load(name: str) -> None:
        found.setdefault(name, []).append(server.send(format_, ROWS, seconds, 0.4 * rate)["visible"]["p99"])

    for _ in range(ROUNDS):
        load("first")
        with server.stalled("busy"):
            server.send(format_, ROWS, 1.0, 0.4 * rate)
            load("one subscriber stalls")
        load("second")
        with server.dribbling(DRIBBLERS):
            load(f"{DRIBBLERS} connections dribble")
    p99 = {name: statistics.median(values) for name, values in found.items()}
    plain = [p99.pop("first"), p99.pop("second")]
    lines = []
    for work, value in p99.items():
        moved = value / max(plain) - 1
        measures = {
            "p99": Measure(1000 * value, "ms"),
            "p99_alone": Measure(1000 * min(plain), "ms"),
            "p99_again": Measure(1000 * max(plain), "ms"),
            "moved": Measure(moved, "%"),
        }
        lines.append(Line("service", work, measures, Bar.at_most(moved, SPREAD, "%"), setting))
    return lines


def _batch() -> list[Line]:
    with running() as server:
        seconds = server.define(10_001)
        held = server.client.get("/v1/eddy").json()["bytes"]
        measures = {"seconds": Measure(seconds, "s"), "bytes": Measure(held, "B")}
        return [Line("service", "10,000 queries in one call", measures, Bar.at_most(seconds, BATCH_SECONDS, "s"))]


def _stop() -> list[Line]:
    """How long the process takes to end, with readers that would never end by themselves."""
    lines = []
    for work, signal_ in (("SIGTERM", signal.SIGTERM), ("Ctrl-C", signal.SIGINT)):
        with running() as server, server.watched(READERS):
            server.define(QUERIES)
            server.send(FORMATS[0], ROWS, 1.0)
            seconds, code = server.stop(signal_)
            assert code == 0, f"the server ended with {code}"
            measures = {"seconds": Measure(seconds, "s")}
            name = f"{work} with {READERS} readers by SSE and {READERS} by WebSocket"
            lines.append(Line("service", name, measures, Bar.at_most(seconds, STOP_SECONDS, "s")))
    return lines


def steps(options: Options) -> list[Step]:
    return [*(partial(_by_format, format_, options) for format_ in FORMATS), partial(_on_disk, options), _batch, _stop]
