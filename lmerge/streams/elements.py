"""Elements: what a physical stream of events is made of, as columns in the order in which they came.

    insert(p, Vs, Ve)           an event with payload p lives during [Vs, Ve)
    adjust(p, Vs, Vold, Ve)     the event (p, [Vs, Vold)) lives during [Vs, Ve) instead; Ve = Vs removes it
    stable(Vc)                  no later insert has Vs < Vc, no later adjust has Vold < Vc or Ve < Vc

A payload is a 64-bit code; times are int64, `lineage.elements.FOREVER` where there is no end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lineage.kernels import Number, inline

#: Kinds of elements.
INSERT, ADJUST, STABLE = 0, 1, 2


class ElementBatch(NamedTuple):
    """Elements of one stream, one int64 column for each part."""

    kinds: np.ndarray
    #: Vs; 0 for a stable
    starts: np.ndarray
    #: 0 for a stable
    payloads: np.ndarray
    #: Vold of an adjust, else 0
    olds: np.ndarray
    #: Ve of an insert or adjust, Vc of a stable
    ends: np.ndarray


@inline
def hash_event(start: Number, payload: Number) -> Number:
    """Return 32 bits that depend on every bit of a start and a payload."""
    mixed = np.uint64(start) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(payload) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(mixed >> np.uint64(32))
