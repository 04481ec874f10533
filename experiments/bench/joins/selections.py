"""The selections that NiagaraCQ's plans put below or above the join: which queries want a quote.

Constants     `price > c`: the constants of all queries in a table in order, so the queries of a price are a prefix of it
Functions     a Python function a query, which no index can look into: called for every row and every query
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from experiments.bench.joins.bare_join import Thresholds
from experiments.bench.joins.join_workload import JoinWorkload

#: Seconds that a function of CACQ's experiment thinks.
SPIN = (100e-6, 500e-6)


class Wanted(NamedTuple):
    """Row i is wanted by the queries `members[starts[i]:ends[i]]`."""

    starts: np.ndarray
    ends: np.ndarray
    members: np.ndarray


class PriceSelection(Protocol):
    def apply(self, prices: np.ndarray) -> Wanted: ...


class Constants:
    """`price > c` by a table of constants."""

    def __init__(self, constants: np.ndarray, most_rows: int) -> None:
        self._attribute = Thresholds(constants).attribute
        self._members = np.argsort(constants, kind="stable").astype(np.int32)
        cuts = np.sort(np.nextafter(constants, np.inf))
        #: region code -> queries that take it
        self._n_taking = np.concatenate([[0], np.searchsorted(cuts, self._attribute.cuts, "right")])
        self._codes = np.zeros(most_rows, np.int32)
        self._starts = np.zeros(most_rows, np.int64)

    def apply(self, prices: np.ndarray) -> Wanted:
        codes = self._codes[: len(prices)]
        self._attribute.encode(prices, codes)
        return Wanted(self._starts[: len(prices)], self._n_taking[codes], self._members)


class Picky:
    """The user function `price > constant`, after thinking for 100 to 500 us of CPU time."""

    def __init__(self, constant: float, seed: int) -> None:
        self._constant = constant
        self._random = random.Random(seed)
        #: off while windows are filled
        self.thinks = False
        self.n_calls = 0

    def __call__(self, price: float) -> bool:
        self.n_calls += 1
        if self.thinks:
            until = time.thread_time() + self._random.uniform(*SPIN)
            while time.thread_time() < until:
                pass
        return price > self._constant


class Functions:
    """A function a query."""

    def __init__(self, functions: Sequence[Callable[[float], bool]]) -> None:
        self._functions = list(enumerate(functions))

    def apply(self, prices: np.ndarray) -> Wanted:
        members: list[int] = []
        offsets = [0]
        for price in prices.tolist():
            members += [q for q, wants in self._functions if wants(price)]
            offsets.append(len(members))
        bounds = np.array(offsets, np.int64)
        return Wanted(bounds[:-1], bounds[1:], np.array(members, np.int32))


def picky_functions(workload: JoinWorkload) -> list[Picky]:
    """A function for every query of the workload, with its constant."""
    return [Picky(query.constant, seed) for seed, query in enumerate(workload.queries)]
