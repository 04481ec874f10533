"""Bytes and speed of every case as stables become frequent (L VI-C 4, Fig. 6).

The stream of `merge-inputs` with three inputs, and from .001 % to 1 % stables. Few stables leave much to keep; each one makes the
printed R3 look at all that is half frozen, where our kernel looks at what changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from experiments.drawing import COLOURS, MARKERS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, where
from experiments.lmerge.contestants import (
    ContestSize,
    KernelContestant,
    MergeContestant,
    PrintedContestant,
    mean_bytes,
    rates,
)
from experiments.lmerge.generator import GeneratorSettings, presentations, rounds

KERNELS = ("R0", "R1", "R2", "R3", "R4")
FLAT = KERNELS[:3]
PRINTED = ("R3",)
INPUTS = 3
SHARES = (0.00001, 0.0001, 0.001, 0.01)


SIZES = {True: ContestSize((INPUTS,), 200_000, 30_000, 9), False: ContestSize((INPUTS,), 400_000, 100_000, 15)}


def measured(share: float, size: ContestSize, active: int, seed: int) -> list[Row]:
    """The rows of one share of stables."""
    rows: list[Row] = []
    contests: tuple[tuple[str, tuple[str, ...], type, int, int], ...] = (
        ("ours", KERNELS, KernelContestant, size.elements, size.turns),
        ("printed", PRINTED, PrintedContestant, size.printed, 1),
    )
    for form, cases, kind, elements, turns in contests:
        settings = GeneratorSettings(elements, share, active, disorder=0.0)
        pushes = rounds(presentations(settings, seed, INPUTS), size.push)
        makers: dict[str, Callable[[], MergeContestant]] = {case: partial(kind, case, INPUTS) for case in cases}
        for case, (taken, given) in rates(makers, pushes, turns).items():
            held = mean_bytes(makers[case](), pushes, INPUTS)
            rows.append(
                {"form": form, "case": case, "stables": share, "bytes": held, "in_per_s": taken, "out_per_s": given,
                 "inputs": INPUTS, "elements": elements, "active": active, "seed": seed}
            )  # fmt: skip
    return rows


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(measured, share, SIZES[setting.quick], 10_000, setting.seed) for share in SHARES]


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
    left, right = figure.subplots(1, 2)
    lines = [("ours", case) for case in KERNELS] + [("printed", case) for case in PRINTED]
    for k, (form, case) in enumerate(lines):
        found = where(rows, form=form, case=case)
        x = [100 * value for value in column(found, "stables")]
        label = case if form == "ours" else f"{case} (printed, Python)"
        style = {"color": COLOURS[k], "marker": MARKERS[k], "linestyle": "-" if form == "ours" else "--", "label": label}
        if form == "ours":
            left.plot(x, [value / 2**20 for value in column(found, "bytes")], **style)
        right.plot(x, column(found, "out_per_s"), **style)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks([100 * share for share in SHARES], [f"{100 * share:g} %" for share in SHARES])
        axes.minorticks_off()
        axes.set_xlabel("share of stables")
    left.set_ylim(bottom=-2)
    left.set_ylabel("accounted MB, payloads of 1 KB")
    left.set_title("bytes (Fig. 6, left)", fontsize=10)
    right.set_yscale("log")
    right.set_ylabel("events out a CPU second")
    right.set_title("speed (Fig. 6, right)", fontsize=10)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=len(lines), fontsize=8)


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
    columns={
        "form": "ours (kernels) or printed (Python)", "case": "R0 to R4", "stables": "share of stables",
        "bytes": "accounted, mean over the second half", "in_per_s": "elements taken a CPU second",
        "out_per_s": "events given out a CPU second", "inputs": "number of inputs", "elements": "of each input",
        "active": "events alive, about", "seed": "of the stream",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Left: accounted bytes, payloads included; the printed R3 runs over fewer elements, too few to compare. "
    "Right: events given out a CPU second. Our R3 and R4 keep their speed, the printed R3, in Python, does not.",
    by="accounted bytes; ratios of CPU time",
    size=(10.0, 5.0),
)  # fmt: skip
