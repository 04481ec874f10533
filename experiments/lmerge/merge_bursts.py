"""Does a merge smooth out bursty inputs? (L VI-E 1, Fig. 8) In virtual time.

Four inputs at 5,000 elements a second with 20 % disorder. Each pauses before an element now and then, with its own probability
between .3 and .5 %, for a time of mean 20 and deviation 5 milliseconds; what has piled up then comes at once. The merge gives out
what any of them brings first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.drawing import COLOURS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, distinct, where
from experiments.lmerge.arrivals import arrived, per_second, play, sent
from experiments.lmerge.generator import GeneratorSettings, presentations
from lmerge.merge import make_merge
from lmerge.streams.elements import INSERT, ElementBatch

INPUTS = 4
RATE = 5000.0
#: Probability of a pause before an element, by input.
CHANCES = (0.003, 0.0037, 0.0043, 0.005)
PAUSE_US, DEVIATION_US = 20_000.0, 5_000.0
#: How fast a channel gives what has piled up, and the steps in which the merge takes what has come.
CHANNEL = 25_000.0
STEP_US = 1_000
BIN_US = 50_000
SECONDS = {True: 10, False: 60}
MERGED = "merged"


def inserts_given(streams: Sequence[ElementBatch], times: Sequence[np.ndarray], step_us: float) -> np.ndarray:
    """Return the virtual times at which the merge of some inputs gives its events out."""
    merge = make_merge("R3")
    for _ in streams:
        merge.attach()
    steps = [
        np.full(np.count_nonzero(merged.elements.kinds == INSERT), step)
        for step, _, merged in play(merge.push, streams, times, step_us)
    ]
    return np.concatenate(steps) * step_us


def bursty(n: int, chance: float, rng: np.random.Generator) -> np.ndarray:
    """Return the arrival times of n elements through a channel that pauses now and then; no pause is negative."""
    lengths = np.maximum(rng.normal(PAUSE_US, DEVIATION_US, n), 0.0)
    pauses = 1e6 / CHANNEL + np.where(rng.random(n) < chance, lengths, 0.0)
    return arrived(sent(n, RATE), pauses)


def rate_rows(streams: Sequence[ElementBatch], times: Sequence[np.ndarray], bin_us: int, step_us: float, seed: int) -> list[Row]:
    """The rates of all inputs and of their merge, in whole bins of virtual time; of inserts, as both have them."""
    n_bins = int(min(at[-1] for at in times) // bin_us)
    lines = {
        f"input {number + 1}": at[stream.kinds == INSERT] for number, (stream, at) in enumerate(zip(streams, times))
    }  # fmt: skip
    lines[MERGED] = inserts_given(streams, times, step_us)
    return [
        {"line": line, "second": (k + 1) * bin_us / 1e6, "per_s": value, "bin_s": bin_us / 1e6, "nominal": RATE, "seed": seed}
        for line, at in lines.items() for k, value in enumerate(per_second(at, bin_us, n_bins))
    ]  # fmt: skip


def measured(seconds: float, seed: int) -> list[Row]:
    """All rows."""
    streams = presentations(GeneratorSettings(round(seconds * RATE)), seed, INPUTS)
    rng = np.random.default_rng([seed, 1000])
    times = [bursty(len(stream.kinds), chance, rng) for stream, chance in zip(streams, CHANCES)]
    return rate_rows(streams, times, BIN_US, STEP_US, seed)


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(measured, SECONDS[setting.quick], setting.seed)]


def variance(rows: Sequence[Row], line: str) -> float:
    return float(np.var(column(where(rows, line=line), "per_s")))


def judge(rows: Sequence[Row]) -> Verdict:
    smoothest = min(variance(rows, str(line)) for line in distinct(rows, "line") if line != MERGED)
    return Verdict(
        (
            Check.at_most(
                "variance of the merged rate as a share of the smoothest input's", variance(rows, MERGED) / smoothest, 0.3
            ),
        ),
        "The paper does not say in what unit its pauses of mean 20 are, nor how long a bin is; we take milliseconds, and bins of "
        f"{BIN_US // 1000} ms. What is left in the merged rate are the moments at which all four pause.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    top, bottom = figure.subplots(2, 1, sharex=True, sharey=True)
    shown_s = 10.0
    for axes, line, colour in ((top, "input 1", COLOURS[1]), (bottom, MERGED, COLOURS[0])):
        found = [row for row in where(rows, line=line) if float(row["second"]) <= shown_s]
        axes.plot(column(found, "second"), [value / 1000 for value in column(found, "per_s")], color=colour, linewidth=1.2)
        axes.axhline(RATE / 1000, color="black", linestyle=":", linewidth=1)
        deviation = variance(rows, line) ** 0.5
        axes.set_title(
            f"{'one of the four inputs' if line != MERGED else 'their merge'}: deviation {deviation:,.0f} a second", fontsize=10
        )
        axes.set_ylabel("events a second,\nthousands")
        axes.set_ylim(bottom=0)
    bottom.set_xlabel("virtual time, seconds")


EXPERIMENT = Experiment(
    name="merge-bursts",
    question="Does a merge smooth out bursty inputs?",
    figure="LMerge, VI-E 1, Fig. 8: rate of one bursty input, and of the merge of four",
    expected="the merged rate is nearly steady, because the inputs seldom pause at the same moment",
    parameters=(
        Parameter("stream", "20 % disorder, 1 % stables, 5,000 elements a second", ours=False),
        Parameter("inputs", f"{INPUTS}; a pause before an element with a probability of .3 to .5 %", ours=False),
        Parameter("a pause", "normal, mean 20 and deviation 5, never negative; milliseconds are ours"),
        Parameter("what has piled up", f"comes at {CHANNEL:,.0f} elements a second"),
        Parameter("a bin", f"{BIN_US // 1000} ms"),
        Parameter("length", f"{SECONDS[False]} s, quick {SECONDS[True]}"),
    ),
    columns={
        "line": f"an input, or {MERGED}", "second": "end of the bin, virtual time", "per_s": "events a second in the bin",
        "bin_s": "length of a bin", "nominal": "elements that a source sends in a second", "seed": "of stream and pauses",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Events a second in virtual time, the first 10 seconds: one of the bursty inputs above, the merge of all four below; "
    "dotted: what the sources send.",
    by="counts, in virtual time",
    size=(9.0, 5.0),
)  # fmt: skip
