"""Bytes and speed of every case as stables become frequent (L VI-C 4, Fig. 6).

The stream of `merge-inputs` with three inputs, and from .001 % to 1 % stables. Few stables leave much to keep; each one makes the
printed R3 look at all that is half frozen, where our kernel looks at what changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from experiments.drawing import Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, where
from experiments.lmerge.case_costs import COLUMNS, draw_costs, measured
from experiments.lmerge.contestants import ContestSize

KERNELS = ("R0", "R1", "R2", "R3", "R4")
FLAT = KERNELS[:3]
PRINTED = ("R3",)
INPUTS = 3
SHARES = (0.00001, 0.0001, 0.001, 0.01)


SIZES = {True: ContestSize((INPUTS,), 200_000, 30_000, 9), False: ContestSize((INPUTS,), 400_000, 100_000, 15)}


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(measured, KERNELS, PRINTED, INPUTS, SIZES[setting.quick], share, 10_000, setting.seed) for share in SHARES]


def _fall(rows: Sequence[Row], form: str) -> float:
    """The best speed of R3 as a multiple of that with the most stables."""
    found = column(where(rows, form=form, case="R3"), "in_per_s")
    return max(found) / found[-1]


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values)


def judge(rows: Sequence[Row]) -> Verdict:
    checks = []
    for case in ("R3", "R4"):
        held = column(where(rows, form="ours", case=case), "bytes")
        least = min(before / after for before, after in zip(held, held[1:]))
        checks.append(Check.above(f"bytes of {case} fall with every step: the smallest fall", least, 1.0))
    for name, claim in (("bytes", "bytes of R0 to R2 are flat"), ("in_per_s", "speed of R0 to R2 is flat")):
        spread = max(_spread(column(where(rows, form="ours", case=case), name)) for case in FLAT)
        checks.append(Check.below(f"{claim}: the largest by the smallest", spread, 1.3))
    checks += [
        Check.at_least("fall of the printed R3's speed, from its best to that with most stables", _fall(rows, "printed"), 3.0),
        Check.below("fall of our R3's speed, from its best to that with most stables", _fall(rows, "ours"), 1.3),
    ]
    return Verdict(
        tuple(checks),
        "The paper's R3+ and R4 slow down as stables become frequent, because each looks at everything that is "
        "half frozen. Ours keep "
        "a calendar of when each event is next due, so a stable costs what it changes; with rare stables they are even slower, "
        "because more events are alive and do not fit into the caches.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    lines = [("ours", case) for case in KERNELS] + [("printed", case) for case in PRINTED]
    titles = ("Fig. 6, left", "Fig. 6, right")
    for axes in draw_costs(figure, rows, lines, "stables", titles, scale=100, bytes_of_printed=False):
        axes.set_xscale("log")
        axes.set_xticks([100 * share for share in SHARES], [f"{100 * share:g} %" for share in SHARES])
        axes.minorticks_off()
        axes.set_xlabel("share of stables")


EXPERIMENT = Experiment(
    name="merge-stables",
    question="What do frequent stables save in bytes, and cost in speed?",
    figure="LMerge, VI-C 4, Fig. 6: memory and throughput against StableFreq",
    expected="bytes fall as stables become frequent; R3 and R4 slow down in the paper, R0 to R2 do not",
    parameters=(
        Parameter("stream", "in order, inserts only; about 10,000 events alive, gaps up to 20 s", ours=False),
        Parameter("stables", ".001 % to 1 % of the elements", ours=False),
        Parameter("inputs", str(INPUTS)),
        Parameter("elements an input", f"{SIZES[False].elements:,}, quick {SIZES[True].elements:,}"),
        Parameter("of the printed R3", f"{SIZES[False].printed:,}, quick {SIZES[True].printed:,}"),
    ),
    columns=COLUMNS,
    steps=steps, judge=judge, draw=draw,
    caption="Left: accounted bytes, payloads included; the printed R3 runs over fewer elements, too few to compare. "
    "Right: events given out a CPU second. Our R3 and R4 keep their speed, the printed R3, in Python, does not.",
    by="accounted bytes; ratios of CPU time",
    size=(10.0, 5.0),
)  # fmt: skip
