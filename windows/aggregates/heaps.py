"""Heaps of live rows, one or two a group, that any row may leave: pairing heaps whose nodes are slots.

    links[CHILD, row]   the first of the rows below it, -1 if none
    links[NEXT, row]    the next row below the same one, -1 if it is the last
    links[PREV, row]    the row before it there, or the one above if it is the first; -1 at the root
    no row's key is below that of the row above it; keys are compared as key ^ flip, and flip = -1 turns the order round

Entering costs one comparison. Leaving joins the rows below: O(log n) amortised, and O(1) for the many that have none, also
when values rise or fall for hours, where looking through a window for its next extreme would cost its length for every row.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, called, inline

CHILD, NEXT, PREV = 0, 1, 2


@inline
def link(links: Number, keys: Number, flip: Number, a: Number, b: Number) -> Number:
    """Join two heaps, given by their roots, and return the root."""
    if (keys[b] ^ flip) < (keys[a] ^ flip):
        a, b = b, a
    first = links[CHILD, a]
    links[NEXT, b] = first
    if first >= 0:
        links[PREV, first] = b
    links[PREV, b] = a
    links[CHILD, a] = b
    return a


@inline
def push(links: Number, keys: Number, flip: Number, root: Number, row: Number) -> Number:
    """Put a row into a heap and return the root."""
    links[CHILD, row] = -1
    links[NEXT, row] = -1
    links[PREV, row] = -1
    return np.int64(row) if root < 0 else link(links, keys, flip, np.int64(root), np.int64(row))


@inline
def join_siblings(links: Number, keys: Number, flip: Number, first: Number) -> Number:
    """Join `first` and its right siblings to one heap, in pairs from the left, then the pairs from the right; -1 for none."""
    paired = np.int64(-1)
    at = np.int64(first)
    while at >= 0:
        partner = np.int64(links[NEXT, at])
        if partner < 0:
            links[NEXT, at] = paired
            paired = at
            at = np.int64(-1)
        else:
            then = np.int64(links[NEXT, partner])
            root = link(links, keys, flip, at, partner)
            links[NEXT, root] = paired
            paired = root
            at = then
    root = paired
    if root >= 0:
        at = np.int64(links[NEXT, root])
        while at >= 0:
            then = np.int64(links[NEXT, at])
            root = link(links, keys, flip, root, at)
            at = then
        links[NEXT, root] = -1
        links[PREV, root] = -1
    return root


@called
def remove(links: Number, keys: Number, flip: Number, root: Number, row: Number) -> Number:
    """Take a row out of its heap and return the root, -1 if the heap is empty."""
    below = join_siblings(links, keys, flip, links[CHILD, row])
    if row == root:
        return below
    before, after = links[PREV, row], links[NEXT, row]
    if links[CHILD, before] == row:
        links[CHILD, before] = after
    else:
        links[NEXT, before] = after
    if after >= 0:
        links[PREV, after] = before
    return np.int64(root) if below < 0 else link(links, keys, flip, np.int64(root), below)
