"""What one push into a merge gives: output elements, and what became of each element that was pushed.

A node is the record of one event, and in R4 of all events of one payload and start. Its number is below the merge's capacity, and
is handed out again only after the push that let go of it has returned. R0-R2 keep no records: there the node of an output is the
index of the pushed element that became it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lineage.kernels import Number, inline
from lmerge.cases.header import N_OUT
from lmerge.cases.inputs import OUT, REMOVED
from lmerge.streams.elements import ADJUST, ElementBatch


class Merged(NamedTuple):
    """The outcome of a push."""

    elements: ElementBatch
    #: node of each output element, -1 for a stable
    nodes: np.ndarray
    #: int8, one for each pushed element (`lmerge/cases/outcomes.py`)
    outcomes: np.ndarray
    #: node of each pushed element, -1 if it has none (R3, R4)
    taken: np.ndarray
    #: nodes that this push let go of (R3, R4)
    freed: np.ndarray


#: Rows of the array that a kernel writes outputs to; the first five are the columns of an `ElementBatch`.
OUT_KIND, OUT_START, OUT_PAYLOAD, OUT_OLD, OUT_END, OUT_NODE = range(6)
N_OUT_ROWS = 6


@inline
def write_output(
    out: Number, header: Number, inputs: Number, number: Number, kind: Number, start: Number, payload: Number, old: Number,
    end: Number, node: Number,
) -> None:  # fmt: skip
    """Give out an element that an element of an input causes; there is room."""
    n = header[N_OUT]
    out[OUT_KIND, n] = kind
    out[OUT_START, n] = start
    out[OUT_PAYLOAD, n] = payload
    out[OUT_OLD, n] = old
    out[OUT_END, n] = end
    out[OUT_NODE, n] = node
    header[N_OUT] = n + 1
    inputs[number, OUT + kind] += 1
    if kind == ADJUST and end == start:
        inputs[number, REMOVED] += 1


def as_merged(out: np.ndarray, n_out: int, outcomes: np.ndarray, taken: np.ndarray, freed: np.ndarray) -> Merged:
    """Return the first `n_out` columns of what a kernel wrote, and what it said about each pushed element."""
    kinds, starts, payloads, olds, ends, nodes = out[:, :n_out]
    return Merged(ElementBatch(kinds, starts, payloads, olds, ends), nodes, outcomes, taken, freed)
