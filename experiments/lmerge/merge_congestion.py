"""Does a merge mask congested inputs? (L VI-E 2, Fig. 9) In virtual time.

Three inputs at 5,000 elements a second with 20 % disorder. During a congested stretch an input pauses before every element,
normally distributed, and falls to a fifth of its rate; after it, what has piled up comes in a spike. Around the 18th second two
inputs are congested at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.drawing import COLOURS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, distinct, where
from experiments.lmerge.arrivals import arrived, sent
from experiments.lmerge.generator import GeneratorSettings, presentations
from experiments.lmerge.merge_bursts import CHANNEL, MERGED, RATE, rate_rows

#: Stretches in which each input is congested, in seconds.
CONGESTED = (((3.0, 6.0),), ((9.0, 12.0), (16.5, 19.5)), ((17.5, 20.5),))
PAUSE_US, DEVIATION_US = 1_000.0, 300.0
SECONDS = 26.0
STEP_US = 5_000
BIN_US = 250_000


def congested(n: int, stretches: Sequence[tuple[float, float]], rng: np.random.Generator) -> np.ndarray:
    """Return the arrival times of n elements through a channel that is congested in some stretches of time.

    Which elements meet congestion depends on when those before them arrived, so stretches are taken one after the other.
    """
    sent_us = sent(n, RATE)
    pauses = np.full(n, 1e6 / CHANNEL)
    for begin, end in stretches:
        first = int(np.searchsorted(arrived(sent_us, pauses), begin * 1e6))
        slow = np.maximum(rng.normal(PAUSE_US, DEVIATION_US, n - first), 1e6 / CHANNEL)
        n_slow = int(np.searchsorted(np.cumsum(slow), (end - begin) * 1e6))
        pauses[first : first + n_slow] = slow[:n_slow]
    return arrived(sent_us, pauses)


def measured(bin_us: int, seconds: float, seed: int) -> list[Row]:
    """All rows."""
    streams = presentations(GeneratorSettings(round(seconds * RATE)), seed, len(CONGESTED))
    rng = np.random.default_rng([seed, 2000])
    times = [congested(len(stream.kinds), stretches, rng) for stream, stretches in zip(streams, CONGESTED)]
    return rate_rows(streams, times, bin_us, STEP_US, seed)


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(measured, BIN_US, SECONDS, setting.seed)]


def _both(second: float, bin_s: float) -> bool:
    """Whether two inputs are congested in a whole bin."""
    second_input, third_input = CONGESTED[1][-1], CONGESTED[2][-1]
    return max(second_input[0], third_input[0]) <= second - bin_s and second <= min(second_input[1], third_input[1])


def judge(rows: Sequence[Row]) -> Verdict:
    # of 100 elements one is a stable
    nominal = float(rows[0]["nominal"]) * 0.99
    merged = where(rows, line=MERGED)
    both = [row for row in merged if _both(float(row["second"]), float(row["bin_s"]))]
    return Verdict(
        (
            Check.at_least("merged rate as a share of the nominal, the worst bin", min(column(merged, "per_s")) / nominal, 0.9),
            Check.at_least("the same while two of three are congested", min(column(both, "per_s")) / nominal, 0.9),
        ),
        "The paper does not say how long congestion lasts nor how slow it makes an input; ours falls to a fifth "
        "for three seconds. "
        "The nominal rate is that of inserts: 5,000 elements a second less 1 % stables.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    lines = [str(line) for line in distinct(rows, "line")]
    panels = figure.subplots(len(lines), 1, sharex=True, sharey=True)
    for number, (axes, line) in enumerate(zip(panels, lines)):
        found = where(rows, line=line)
        colour = COLOURS[0] if line == MERGED else COLOURS[1 + number]
        axes.plot(column(found, "second"), [value / 1000 for value in column(found, "per_s")], color=colour)
        axes.axhline(RATE / 1000, color="black", linestyle=":", linewidth=1)
        for begin, end in CONGESTED[number] if line != MERGED else ():
            axes.axvspan(begin, end, color="black", alpha=0.08, linewidth=0)
        axes.set_title(line if line != MERGED else "their merge", fontsize=10)
        axes.set_ylim(bottom=0)
    figure.supylabel("events a second, thousands", fontsize=10)
    panels[-1].set_xlabel("virtual time, seconds")


EXPERIMENT = Experiment(
    name="merge-congestion",
    question="Does a merge mask congested inputs?",
    figure="LMerge, VI-E 2, Fig. 9: rates of three inputs, congested at different times, and of their merge",
    expected="the merged rate stays as it is as long as one input is not congested",
    parameters=(
        Parameter("stream", "20 % disorder, 1 % stables, 5,000 elements a second; three inputs", ours=False),
        Parameter("congestion", "normally distributed pauses between elements; two inputs at once around 18 s", ours=False),
        Parameter("a pause", f"mean {PAUSE_US / 1000:g} ms, deviation {DEVIATION_US / 1000:g}: a fifth of the rate"),
        Parameter("stretches", "; ".join(", ".join(f"{a:g} to {b:g} s" for a, b in one) for one in CONGESTED)),
        Parameter("what has piled up", f"comes at {CHANNEL:,.0f} elements a second"),
        Parameter("a bin", f"{BIN_US // 1000} ms"),
    ),
    columns={
        "line": f"an input, or {MERGED}", "second": "end of the bin, virtual time", "per_s": "events a second in the bin",
        "bin_s": "length of a bin", "nominal": "elements that a source sends in a second", "seed": "of stream and pauses",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Events a second in virtual time. Grey: the stretches in which an input is congested; dotted: what the sources send.",
    by="counts, in virtual time",
    size=(9.0, 7.0),
)  # fmt: skip
