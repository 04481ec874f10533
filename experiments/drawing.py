"""Pictures: one style for all, PNG for pages and SVG for papers. matplotlib is asked for only when something is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.experiment import Experiment, Row, column, where
from lineage.errors import EddyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure  # for the experiments, which draw on one
else:
    Figure = Any

#: Colours that people with any eyes tell apart (Okabe and Ito), in the order of use.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    # the same rows give the same file
    "svg.hashsalt": "eddy",
    "svg.fonttype": "none",
}


def need_matplotlib() -> None:
    """Raise one sentence unless pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401 - whether it can be imported is the question
    except ImportError:
        raise EddyError(
            "experiments draw with matplotlib, which is not installed", code="not_installed",
            hint="in a checkout ./eddyctl experiment run installs it; an installed package needs its extra, eddy-cq[experiments]",
        ) from None  # fmt: skip


def save(experiment: Experiment, rows: Sequence[Row], png: Path, svg: Path) -> None:
    """Draw an experiment's rows."""
    need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=experiment.size, layout="constrained")
        experiment.draw(figure, rows)
        figure.savefig(png, dpi=150, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None})


def draw_lines(axes: Axes, rows: Sequence[Row], by: str, labels: Mapping[str, str], x: str, y: str) -> None:
    """A line with markers for each value of the column `by`."""
    for (value, label), colour, marker in zip(labels.items(), COLOURS, MARKERS):
        found = where(rows, **{by: value})
        axes.plot(column(found, x), column(found, y), color=colour, marker=marker, label=label)


def powers_of_two(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic x axis that is labelled with the values measured, as numbers people read."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(values), [f"{int(value):,}" for value in values], rotation=45 if len(values) > 9 else 0)
    axes.minorticks_off()
