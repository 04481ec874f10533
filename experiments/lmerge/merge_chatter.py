"""How many adjusts a merge gives out, by disorder and policy (L VI-C 2, Fig. 4).

Three inputs, each the count query over its own disorder of one stream. An input changes its answers as late elements come; the
merge need not pass on each change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.drawing import COLOURS, MARKERS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, one, where
from experiments.lmerge.contestants import KernelContestant
from experiments.lmerge.count_query import CountQuery
from experiments.lmerge.generator import GeneratorSettings, presentations, rounds
from lmerge.streams.elements import ADJUST

INPUTS = 3
#: Elements of a push: few, so that the inputs go side by side.
TOGETHER = 100
DISORDERS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
#: When an event goes out, and which of its changes do.
POLICIES = {
    "lazy": ("first", "lazy"),
    "leader": ("first", "leader"),
    "every": ("first", "every"),
    "fraction": ("fraction:0.6", "lazy"),
    "half-frozen": ("half-frozen", "lazy"),
    "stable": ("stable", "lazy"),
}
#: A line of its own: one of the inputs, not merged.
ONE_INPUT = "one input"
ELEMENTS = {True: 50_000, False: 200_000}


def measured(disorder: float, elements: int, query: CountQuery, seed: int) -> list[Row]:
    """The rows of one share of disorder."""
    settings = GeneratorSettings(elements, disorder=disorder, back_us=query.width_us)
    streams = [query.answer(stream) for stream in presentations(settings, seed, INPUTS)]
    adjusts = {ONE_INPUT: float(np.mean([np.count_nonzero(stream.kinds == ADJUST) for stream in streams]))}
    for name, (insert, adjust) in POLICIES.items():
        merge = KernelContestant("R3", INPUTS, insert=insert, adjust=adjust).merge
        for number, part in rounds(streams, TOGETHER):
            merge.push(number, part)
        adjusts[name] = merge.counters.adjusts_out
    return [
        {"policy": name, "disorder": disorder, "adjusts": n, "inputs": INPUTS, "elements": elements, "seed": seed}
        for name, n in adjusts.items()
    ]  # fmt: skip


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(measured, disorder, ELEMENTS[setting.quick], CountQuery(), setting.seed) for disorder in DISORDERS]


def judge(rows: Sequence[Row]) -> Verdict:
    alone = column(where(rows, policy=ONE_INPUT), "adjusts")
    lazy, every = (column(where(rows, policy=name), "adjusts") for name in ("lazy", "every"))
    disordered = range(1, len(alone))
    most = one(rows, "adjusts", policy=ONE_INPUT, disorder=max(column(rows, "disorder")))
    rises = [min(b - a for a, b in zip(line, line[1:])) for line in (alone, lazy)]
    return Verdict(
        (
            Check.above(
                "adjusts of one input rise with disorder: the smallest step, of the most there are", rises[0] / most, 0.0
            ),
            Check.above("adjusts of the merge (lazy) rise with disorder: the smallest step, of the same", rises[1] / most, 0.0),
            Check.at_most("merged (lazy) as a share of one input's, the most", max(lazy[k] / alone[k] for k in disordered), 1.0),
            Check.at_most("merged (lazy) as a share of `every`, the most", max(lazy[k] / every[k] for k in disordered), 0.6),
        ),
        "The paper shows one policy, which is our `lazy`. `every` passes on the changes of all three inputs, "
        "which differ in what they "
        "have seen so far, so it is chattier than one input; it and `leader` are there for comparison. Policies that wait before "
        "they give an event out have less to change.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.add_subplot()
    for k, name in enumerate((ONE_INPUT, *POLICIES)):
        found = where(rows, policy=name)
        x = [100 * value for value in column(found, "disorder")]
        label = {ONE_INPUT: "one input, not merged", "lazy": "merged: lazy (the paper's)"}.get(
            name, f"merged: {name}{' .6' if name == 'fraction' else ''}"
        )
        # lines that lie on each other: the one below is wider, the one above is dotted
        style = {"fraction": (0, (1, 1.5)), "stable": (0, (1, 1.5)), ONE_INPUT: "--"}.get(name, "-")
        width = 3.5 if name in ("lazy", "half-frozen") else 1.8
        axes.plot(
            x, [n / 1000 for n in column(found, "adjusts")], linestyle=style, linewidth=width, color=COLOURS[-1 - k],
            marker=MARKERS[k], label=label,
        )  # fmt: skip
    axes.set_xlabel("disordered elements of an input, %")
    axes.set_ylabel("adjusts given out, thousands")
    axes.legend(loc="center left", fontsize=9, bbox_to_anchor=(1.0, 0.5))


EXPERIMENT = Experiment(
    name="merge-chatter",
    question="How many changes of its answers does a merge pass on?",
    figure="LMerge, VI-C 2, Fig. 4: output size against disorder",
    expected="adjusts rise with disorder, and a merge that adjusts lazily gives out fewer than one input alone",
    parameters=(
        Parameter("stream", "1 % stables, about 10,000 events alive, gaps up to 20 s; disorder 0 to 50 %", ours=False),
        Parameter("sub-query", "a count, then a lifetime", ours=False),
        Parameter("its form", "counts of 401 integers in windows of 10,000 s; an answer lives 270,000 s and 1,000 s an element"),
        Parameter("how late", "a disordered element comes up to 10,000 s late"),
        Parameter("inputs", str(INPUTS)),
        Parameter("elements an input", f"{ELEMENTS[False]:,} before the sub-query, quick {ELEMENTS[True]:,}"),
    ),
    columns={
        "policy": f"{', '.join(POLICIES)}; or {ONE_INPUT}", "disorder": "share of disordered elements",
        "adjusts": "given out; of one input the mean of the three", "inputs": "number of inputs",
        "elements": "of each input, before the sub-query", "seed": "of the stream",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Adjusts of one input alone, and of the merge of three under several policies.",
    by="counts",
    size=(9.0, 4.5),
)  # fmt: skip
