"""State buffers alone: a row enters, and leaves when it is due. FIFO for ends in order, the calendar for any.

*spread* is by how much of the window's length ends vary: 0 is a stream's own order, 1 that of a join's results.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.bench.base.lines import Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.base.timing import take_turns
from windows.state.due import Buffer, Calendar, Fifo

WINDOWS = (10_000, 100_000, 1_000_000)
SPREADS = (0.0, 0.1, 1.0)
#: Looking through the batches again would let branches be learnt.
_N_BATCHES = 64


class Turnover:
    """A buffer with a window's rows in it, whose slots are used again as rows leave."""

    def __init__(self, buffer: Buffer, n_window: int, n_rows: int, spread: float) -> None:
        self.buffer = buffer
        self._n_window, self._n_rows = n_window, n_rows
        capacity = 1 << (3 * n_window + 4 * n_rows).bit_length()
        self._ends = np.zeros(capacity, np.int64)
        self._free = np.arange(capacity)[::-1].copy()
        self._n_free = capacity
        self._clock = 0
        later = np.random.default_rng(0).random((_N_BATCHES, n_rows)) * spread * n_window
        self._later = later.astype(np.int64)
        for number in range(2 * n_window // n_rows + 1):
            self.push(number)

    def push(self, number: int) -> None:
        """Rows enter, a microsecond apart; those due leave."""
        n = self._n_rows
        slots = self._free[self._n_free - n : self._n_free].copy()
        self._n_free -= n
        self._ends[slots] = np.arange(self._clock, self._clock + n) + self._n_window + self._later[number % _N_BATCHES]
        self._clock += n
        self.buffer.add(slots, self._ends)
        due = self.buffer.due(self._clock, self._ends)
        self._free[self._n_free : self._n_free + len(due)] = due
        self._n_free += len(due)


def _run(n_window: int, options: Options) -> list[Line]:
    runs: dict[str, Turnover] = {"fifo": Turnover(Fifo(), n_window, options.rows, 0.0)}
    runs |= {f"calendar, spread {s:g}": Turnover(Calendar(), n_window, options.rows, s) for s in SPREADS}
    rounds = take_turns({name: run.push for name, run in runs.items()}, _N_BATCHES, options.seconds)
    lines = []
    for name, run in runs.items():
        measures = {
            "ns_a_row": Measure(1e9 * rounds.median(name) / options.rows, "ns"),
            "times_fifo": Measure(rounds.ratio("fifo", name), "x"),
            "state": Measure(run.buffer.bytes / run.buffer.n_rows, "B/row"),
        }
        lines.append(Line("calendar", f"{n_window:,} rows, {name}", measures, None, {"window": n_window, "buffer": name}))
    return lines


def steps(options: Options) -> list[Step]:
    return [partial(_run, window, options) for window in WINDOWS]
