"""Bytes and speed of the cases of a merge over one ordered stream without adjusts, which all of them can take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.drawing import COLOURS, MARKERS, Figure
from experiments.experiment import Row, column, where
from experiments.lmerge.contestants import (
    ContestSize,
    KernelContestant,
    MergeContestant,
    PrintedContestant,
    mean_bytes,
    rates,
)
from experiments.lmerge.generator import GeneratorSettings, presentations, rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

#: The columns of a row.
COLUMNS = {
    "form": "ours (kernels) or printed (Python)", "case": "R0 to R4, R3-", "inputs": "number of inputs",
    "stables": "share of stables", "bytes": "accounted, mean over the second half", "in_per_s": "elements taken a CPU second",
    "out_per_s": "events given out a CPU second", "elements": "of each input", "active": "events alive, about",
    "seed": "of the stream",
}  # fmt: skip


def measured(
    kernels: Sequence[str], printed: Sequence[str], n_inputs: int, size: ContestSize, stables: float, active: int, seed: int
) -> list[Row]:  # fmt: skip
    """The rows of some cases for a number of inputs and a share of stables."""
    rows: list[Row] = []
    contests: tuple[tuple[str, Sequence[str], type, int, int], ...] = (
        ("ours", kernels, KernelContestant, size.elements, size.turns),
        ("printed", printed, PrintedContestant, size.printed, 1),
    )
    for form, cases, kind, elements, turns in contests:
        settings = GeneratorSettings(elements, stables, active, disorder=0.0)
        pushes = rounds(presentations(settings, seed, n_inputs), size.push)
        makers: dict[str, Callable[[], MergeContestant]] = {case: partial(kind, case, n_inputs) for case in cases}
        for case, (taken, given) in rates(makers, pushes, turns).items():
            held = mean_bytes(makers[case](), pushes, n_inputs)
            rows.append(
                {"form": form, "case": case, "inputs": n_inputs, "stables": stables, "bytes": held, "in_per_s": taken,
                 "out_per_s": given, "elements": elements, "active": active, "seed": seed}
            )  # fmt: skip
    return rows


def draw_costs(
    figure: Figure, rows: Sequence[Row], lines: Sequence[tuple[str, str]], x: str, titles: tuple[str, str],
    *, scale: float = 1.0, bytes_of_printed: bool = True,
) -> tuple[Axes, Axes]:  # fmt: skip
    """Draw bytes and speed of (form, case) against a column; returns both sides, which want their ticks."""
    left, right = figure.subplots(1, 2)
    for k, (form, case) in enumerate(lines):
        found = where(rows, form=form, case=case)
        label = case if form == "ours" else f"{case} (printed, Python)"
        # lines that lie on each other: the one below is wider
        width = max(1.8, 6 - 2.1 * k)
        style = {"color": COLOURS[k], "marker": MARKERS[k], "linestyle": "-" if form == "ours" else "--", "label": label,
                 "linewidth": width, "markersize": 5 + width}  # fmt: skip
        at = [scale * value for value in column(found, x)]
        if bytes_of_printed or form == "ours":
            left.plot(at, [value / 2**20 for value in column(found, "bytes")], **style)
        right.plot(at, column(found, "out_per_s"), **style)
    left.set_ylim(bottom=-2)
    left.set_ylabel("accounted MB, payloads of 1 KB")
    left.set_title(f"bytes ({titles[0]})", fontsize=10)
    right.set_yscale("log")
    right.set_ylabel("events out a CPU second")
    right.set_title(f"speed ({titles[1]})", fontsize=10)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=len(lines), fontsize=8)
    return left, right
