"""The ledger of module statistics and the protocol of routing policies.

A policy sees, per module of one stream, a row of the **ledger**: rows that visited it, rows it returned to the eddy
(results count as returned), predicates it applies, query bits it cleared, and its measured cost. It answers with a
route: an order over the modules that are ready. One answer serves a whole batch, so it costs about a microsecond a batch
and nothing a row. A policy never affects answers, only work. All randomness comes from the seed.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

#: Rows over which measured cost and selectivity are averaged.
MEMORY_ROWS = 4096.0


class Ledger:
    """Statistics of the modules of one stream, a column each; module m is row m."""

    __slots__ = (
        "names",
        "rows_in",
        "rows_out",
        "cleared",
        "predicates",
        "cost_ns",
        "tickets",
        "cleared_rate",
        "version",
        "n_routes",
        "_measured",
        "_profiled",
        "_free",
    )

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows_in = np.zeros(0, np.int64)
        self.rows_out = np.zeros(0, np.int64)
        #: query bits cleared
        self.cleared = np.zeros(0, np.int64)
        #: how many predicates the module applies now
        self.predicates = np.zeros(0, np.int64)
        #: moving average of the cost of one row
        self.cost_ns = np.zeros(0, np.float64)
        #: rows over which the cost was measured
        self._measured = np.zeros(0, np.int64)
        #: whether samples told what the module clears
        self._profiled = np.zeros(0, np.int64)
        self.tickets = np.zeros(0, np.float64)
        #: query bits cleared a row, at the place in the route that the module deserves
        self.cleared_rate = np.zeros(0, np.float64)
        #: counts changes of the set of modules
        self.version = 0
        #: routes that a policy has given, if it counts them
        self.n_routes = 0
        #: numbers of modules that went
        self._free: list[int] = []

    def add(self, name: str, cost_ns: float) -> int:
        """Add a module and return its number, which may be that of a removed one; `cost_ns` is a guess until measured."""
        self.version += 1
        if self._free:
            number = self._free.pop()
            self.names[number] = name
            self.cost_ns[number] = cost_ns
            self.tickets[number] = self.cleared_rate[number] = 1.0
            for counts in (self.rows_in, self.rows_out, self.cleared, self._measured, self._profiled):
                counts[number] = 0
            return number
        self.names.append(name)
        for field in ("rows_in", "rows_out", "cleared", "predicates"):
            setattr(self, field, np.append(getattr(self, field), 0))
        self.cost_ns = np.append(self.cost_ns, cost_ns)
        self._measured = np.append(self._measured, 0)
        self._profiled = np.append(self._profiled, 0)
        self.tickets = np.append(self.tickets, 1.0)
        self.cleared_rate = np.append(self.cleared_rate, 1.0)
        return len(self.names) - 1

    def remove(self, number: int) -> None:
        """Remove a module for good."""
        assert self.predicates[number] == 0, "a module goes when it applies no predicate"
        self.version += 1
        self.names[number] = ""
        self._free.append(number)

    def record(
        self, modules: np.ndarray, rows_in: np.ndarray, rows_out: np.ndarray, cleared: np.ndarray, sampled: bool = False
    ) -> None:
        """Add rows taken, rows returned and bits cleared by different modules. Averages are over all rows at first, later over
        the last `MEMORY_ROWS`.

        `sampled`: the bits that a module clears are known from samples (`profile`), which no route distorts.
        """
        self.rows_in[modules] += rows_in
        self.rows_out[modules] += rows_out
        self.cleared[modules] += cleared
        if not sampled:
            share = np.minimum(1.0, rows_in / np.minimum(MEMORY_ROWS, self.rows_in[modules]))
            self.cleared_rate[modules] += share * (cleared / rows_in - self.cleared_rate[modules])

    def profile(self, module: int, cleared: float) -> None:
        """Record the query bits a row that a module cleared on a sample, in the best order; the last few samples count."""
        weight = 0.5 if self._profiled[module] else 1.0
        self._profiled[module] = 1
        self.cleared_rate[module] += weight * (cleared - self.cleared_rate[module])

    def measure(self, module: int, rows: int, ns: int) -> None:
        """Record the time of a visit: `ns` for `rows` rows."""
        if rows:
            self._measured[module] += rows
            share = min(1.0, max(rows / MEMORY_ROWS, rows / float(self._measured[module])))
            self.cost_ns[module] += share * (ns / rows - self.cost_ns[module])


class Policy(Protocol):
    """The choice of routes for one engine: one policy serves all its streams."""

    name: str
    #: whether it learns from visits; others need no samples
    learns: bool
    #: whether rows should be routed one by one even where matching all rows at once is quicker
    per_row: bool

    #: batches that one route serves: 1 to choose for every batch
    serves: int

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        """The ready modules (ascending int32) in the order of their visits; the array may be reused by the next call."""
        ...

    def visited(self, ledger: Ledger, modules: np.ndarray, rows_in: np.ndarray, rows_out: np.ndarray) -> None:
        """Learn from a finished route: rows taken and returned by different modules."""
        ...
