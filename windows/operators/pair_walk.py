"""Walking the rows of two sides of a join, which hang in a list by key code: the kernels of `windows/operators/join.py`.

The walk stops when its room for pairs is full, and goes on from where `state` says.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel

#: Pairs that are found before the condition is computed on them.
PART_PAIRS = 1 << 16

#: Places of `state`: the event the walk is at, the partner it goes on with (or -1: from the first), pairs that begin, that end.
EVENT, PARTNER, BEGUN, ENDED = range(4)
_NONE = -1


@inline
def _enter(slot: Number, code: Number, side: Number, first: Number, links: Number) -> None:
    """Put a row at the head of the list of its key."""
    after = first[code, side]
    links[slot, 0] = after
    links[slot, 1] = _NONE
    if after >= 0:
        links[after, 1] = slot
    first[code, side] = slot


@inline
def _leave(slot: Number, code: Number, side: Number, first: Number, links: Number) -> None:
    after = links[slot, 0]
    before = links[slot, 1]
    if before < 0:
        first[code, side] = after
    else:
        links[before, 0] = after
    if after >= 0:
        links[after, 1] = before


@inline
def _list_partners(
    slot: Number, code: Number, side: Number, event: Number, first: Number, links: Number, pairs: Number, n: Number, state: Number
) -> Number:
    """List the pairs of a row with the other side's rows of its key, from the last stop on; return the number of pairs.

    `state[PARTNER]` is -1 when all are listed, else the next one.
    """
    partner = state[PARTNER] if state[PARTNER] >= 0 else first[code, 1 - side]
    while partner >= 0 and n < pairs.shape[1]:
        pairs[side, n] = slot
        pairs[1 - side, n] = partner
        pairs[2, n] = event
        n += 1
        partner = links[partner, 0]
    state[PARTNER] = partner
    return n


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], boolean, int64[::1], int64[::1], int64[::1], int64[::1],"
    "int64[:,::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[::1])"
)
def walk_pairs(
    times: np.ndarray, sides: np.ndarray, slots: np.ndarray, signs: np.ndarray, sends_ends: bool, left_codes: np.ndarray,
    right_codes: np.ndarray, left_ends: np.ndarray, right_ends: np.ndarray, first: np.ndarray, left_links: np.ndarray,
    right_links: np.ndarray, begun: np.ndarray, ended: np.ndarray, state: np.ndarray,
) -> None:  # fmt: skip
    """Walk events until all are done or a list of pairs, (left, right, event) each, is full."""
    n_begun = np.int64(0)
    n_ended = np.int64(0)
    k = state[EVENT]
    while k < len(slots):
        slot = slots[k]
        side = sides[k]
        code = left_codes[slot] if side == 0 else right_codes[slot]
        if signs[k] > 0:
            if side == 0:
                n_begun = _list_partners(slot, code, side, k, first, right_links, begun, n_begun, state)
            else:
                n_begun = _list_partners(slot, code, side, k, first, left_links, begun, n_begun, state)
            if state[PARTNER] >= 0:
                break
            if side == 0:
                _enter(slot, code, side, first, left_links)
            else:
                _enter(slot, code, side, first, right_links)
        else:
            end = left_ends[slot] if side == 0 else right_ends[slot]
            if sends_ends or times[k] < end:
                if side == 0:
                    n_ended = _list_partners(slot, code, side, k, first, right_links, ended, n_ended, state)
                else:
                    n_ended = _list_partners(slot, code, side, k, first, left_links, ended, n_ended, state)
                if state[PARTNER] >= 0:
                    break
            if side == 0:
                _leave(slot, code, side, first, left_links)
            else:
                _leave(slot, code, side, first, right_links)
        k += 1
    state[EVENT] = k
    state[BEGUN] = n_begun
    state[ENDED] = n_ended


@kernel("void(int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[::1])")
def list_pairs(
    slots: np.ndarray, codes: np.ndarray, first: np.ndarray, links: np.ndarray, found: np.ndarray, state: np.ndarray
) -> None:
    """List the pairs of rows of the left side, until all are done or the list is full."""
    n = np.int64(0)
    k = state[EVENT]
    while k < len(slots):
        n = _list_partners(slots[k], codes[slots[k]], np.int64(0), k, first, links, found, n, state)
        if state[PARTNER] >= 0:
            break
        k += 1
    state[EVENT] = k
    state[BEGUN] = n
