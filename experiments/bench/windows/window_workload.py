"""A stream of keys and values at an even pace, and a query for each operator: windows are given in rows.

s(k, v, ts)      a row every GAP_US; k uniform below `n_keys`, v uniform below 100
selectivity      the percentage of rows that enter the operator: `v < p`; the size of the result follows it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

STREAM = "s"
COLUMNS = {"k": "int", "v": "int", "ts": "timestamp[us]"}
GAP_US = 1000
FIRST_US = 10**12

#: By operator; {w} is the window, {p} the selectivity.
TEXTS: Mapping[str, str] = {
    "distinct": "SELECT DISTINCT k FROM s {w} WHERE v < {p}",
    "except": "SELECT k FROM s {w} WHERE v < {p} EXCEPT SELECT k FROM s {w} WHERE v >= 95",
    "join": "SELECT a.k, b.v FROM (SELECT DISTINCT k FROM s {w} WHERE v < {p}) AS a, s {w} AS b WHERE a.k = b.k AND b.v >= 50",
    "group-by": "SELECT k, SUM(v) AS total FROM s {w} WHERE v < {p} GROUP BY k",
}
WORDS = ("input", "negative", "negative+message", "piggyback", "direct", "update-pattern", "auto")


@dataclass(frozen=True, slots=True)
class WindowSetting:
    """One query, or several that differ in their window lengths only."""

    operator: str
    #: rows that the widest window holds
    n_window: int = 10_000
    #: percentage of the rows that count
    selectivity: int = 50
    n_lengths: int = 1
    n_rows: int = 4096
    n_batches: int = 16

    @property
    def n_keys(self) -> int:
        return max(1, self.n_window // 4)

    def windows(self) -> list[int]:
        """The widths in rows."""
        return [self.n_window - k * self.n_window // (2 * self.n_lengths) for k in range(self.n_lengths)]

    def texts(self) -> list[str]:
        texts = []
        for width in self.windows():
            window = f"[RANGE {width * GAP_US} MICROSECONDS]"
            texts.append(TEXTS[self.operator].format(w=window, p=self.selectivity))
        return texts

    def small(self) -> WindowSetting:
        """The same in so few rows that twins in Python are quick."""
        return replace(self, n_window=min(self.n_window, 200), n_rows=128, n_batches=8)


class RotatingRows:
    """The batches of a setting, again and again, each at later times than the last."""

    def __init__(self, setting: WindowSetting, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self._n = setting.n_rows
        shape = (setting.n_batches, setting.n_rows)
        self._keys = rng.integers(0, setting.n_keys, shape)
        self._values = rng.integers(0, 100, shape)
        self._pushed = 0

    def next(self) -> dict[str, np.ndarray]:
        at = self._pushed % len(self._keys)
        times = FIRST_US + (self._pushed * self._n + np.arange(1, self._n + 1)) * GAP_US
        self._pushed += 1
        return {"k": self._keys[at], "v": self._values[at], "ts": times}
