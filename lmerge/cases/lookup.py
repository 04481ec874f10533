"""Looking up events without merging anything: which of some events a merge has a record of."""

from __future__ import annotations

import numpy as np

from lineage.hash_table import number_of, table_shift
from lineage.kernels import kernel
from lmerge.cases.nodes import find_event, find_hash
from lmerge.streams.elements import hash_event


@kernel("void(int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def find_nodes(
    nodes: np.ndarray, table: np.ndarray, starts: np.ndarray, payloads: np.ndarray, found: np.ndarray
) -> None:  # fmt: skip
    """Write the node of each event, -1 where there is none."""
    bits = table_shift(table)
    for i in range(len(starts)):
        at = find_hash(table, bits, hash_event(starts[i], payloads[i]))
        found[i] = number_of(table[find_event(nodes, table, at, starts[i], payloads[i])])
