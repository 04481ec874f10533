"""Looking ahead in a push: what its next elements will ask of memory is asked for before their turn.

First the place of the table at which the search for an element's node begins; when that is there, what its input has of the node
found there, which most likely is the right one. The hash is kept in `taken` until the element's turn, when its node takes the
place.
"""

from __future__ import annotations

import numpy as np

from lineage.hash_table import number_of
from lineage.kernels import Number, inline
from lineage.memory import address_of, prefetch
from lmerge.streams.elements import hash_event

#: How many elements before its turn a place of the table is asked for, and a node.
_FAR, _NEAR = 24, 12


@inline
def look_ahead(
    ahead: Number, i: Number, batch: Number, nodes: Number, field: Number, table: Number, bits: Number, taken: Number
) -> Number:  # fmt: skip
    """Keep the hashes of the elements from `ahead` to some way behind `i`; returns the first without one."""
    n = len(taken)
    ahead = max(ahead, i)
    while ahead < i + _FAR:
        if ahead < n:
            h = hash_event(batch[1][np.uint64(ahead)], batch[2][np.uint64(ahead)])
            prefetch(address_of(table) + 8 * (h >> bits))
            taken[np.uint64(ahead)] = h
        near = ahead - _NEAR
        if i <= near < n:
            row = address_of(nodes) + number_of(table[np.uint64(taken[np.uint64(near)] >> bits)]) * np.int64(8 * nodes.shape[1])
            prefetch(row)
            prefetch(row + 8 * field)
        ahead += 1
    return ahead
