"""The fixed policy: the module order written in `fixed:<module,...>`, for experiments."""

from __future__ import annotations

import numpy as np

from eddy.routing.base import Ledger


class FixedPolicy:
    """Visits modules in the given order of names; modules not named come after, in the order in which they were made.

    A name may leave out the stream: `filter:temp` stands for `filter:<any stream>.temp`.
    """

    learns = False
    per_row = True
    serves = 1 << 30

    def __init__(self, names: list[str]) -> None:
        self.name = "fixed:" + ",".join(names)
        self._names = names

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        return np.array(sorted(ready.tolist(), key=lambda m: (self._place(ledger.names[m]), m)), np.int32)

    def _place(self, module: str) -> int:
        kind, _, rest = module.partition(":")
        short = f"{kind}:{rest.rpartition('.')[2]}"
        for i, name in enumerate(self._names):
            if name in (module, short):
                return i
        return len(self._names)

    def visited(self, ledger: Ledger, modules: np.ndarray, rows_in: np.ndarray, rows_out: np.ndarray) -> None:
        pass
