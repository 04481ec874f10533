"""The cost of a plan in this engine, in ns a commit: the formulas of `windows/costs.py` with measured figures.

Where the paper scans, the engine hashes or counts: a join looks up the rows with its key, so that a row costs its partners, not
all of the other window; a minus counts by value, without a logarithm; a row that ends early is found by its id. The figures are
those of `experiments/operator_costs.py`, at 4,096 rows a commit and 65,536 alive. What counts is their ratio.

    structure     a row, with its end     and for each row alive, a commit
    fifo          50 ns
    calendar      115 ns
    list          100 ns                  2.2 ns
    hash          240 ns                                                     every end comes as a negative row
    by id         125 ns more             where rows may end early, in whatever they wait
"""

from __future__ import annotations

from dataclasses import dataclass

from windows.costs import Load

#: ns of a row that comes and ends, by structure, and of a row that is looked at in a list.
KEPT = {"none": 0.0, "fifo": 50.0, "calendar": 115.0, "list": 100.0, "hash": 240.0}
BY_ID = 125.0
LOOKED_AT = 2.2
#: ns of an end that a block sends: a row is found in its store again, a match by walking its parts and by its number.
SENT_ROW, SENT_MATCH = 15.0, 800.0


@dataclass(frozen=True, slots=True)
class Work:
    """The work of an operator: ns for each commit, for each row that comes or ends, and for each row of its output."""

    commit: float
    row: float
    result: float = 0.0


#: Without what it keeps its inputs in.
WORK = {
    "select": Work(2_000, 20),
    "union": Work(10_000, 20),
    "join": Work(115_000, 150, 100),
    "minus": Work(65_000, 85, 20),
    "intersect": Work(65_000, 85, 20),
    "intersect-star": Work(50_000, 90, 20),
    "distinct": Work(43_000, 70, 20),
    "delta-star": Work(24_000, 60, 20),
    "group-by": Work(33_000, 50, 50),
    "result": Work(30_000, 50),
    "stream": Work(30_000, 60),
    "window": Work(20_000, 50),
}


def kept_ns(structure: str, rate: float, size: float, *, by_id: bool) -> float:
    """Return the ns a commit of keeping the rows of an input."""
    scanned = LOOKED_AT * size if structure == "list" else 0.0
    known = BY_ID if by_id and structure not in ("hash", "none") else 0.0
    return rate * (KEPT[structure] + known) + scanned


def operator_ns(operator: str, load: Load) -> float:
    """Return the ns a commit of an operator's input and output, without keeping rows.

    A row costs twice, when it comes and when it ends; a result costs when it begins and, if it ends early, when it ends.
    """
    work = WORK[operator]
    return work.commit + 2 * work.row * sum(load.rates) + work.result * (load.output_rate + load.premature_rate)
