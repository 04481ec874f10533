"""Nodes that wait to give out something at a stable point: a list through them, in order of start and then of coming.

The order does not depend on where nodes are kept, so neither does the output: however pushes are cut, it is the same.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, called, inline
from lmerge.cases.due import NEXT, NO_NODE, ORDER, START


@inline
def comes_before(nodes: Number, a: Number, b: Number) -> Number:
    return nodes[a, START] < nodes[b, START] or (nodes[a, START] == nodes[b, START] and nodes[a, ORDER] < nodes[b, ORDER])


@called
def sort_pending(nodes: Number, head: Number) -> Number:
    """Sort a list of nodes by merging ever longer runs; returns its new head."""
    width = np.int64(1)
    while True:
        rest = head
        head = np.int64(NO_NODE)
        tail = np.int64(NO_NODE)
        n_merges = 0
        while rest >= 0:
            n_merges += 1
            left = rest
            n_left = np.int64(0)
            right = rest
            while n_left < width and right >= 0:
                n_left += 1
                right = nodes[right, NEXT]
            n_right = width
            while n_left > 0 or (n_right > 0 and right >= 0):
                if n_left == 0 or (n_right > 0 and right >= 0 and comes_before(nodes, right, left)):
                    node = right
                    right = nodes[right, NEXT]
                    n_right -= 1
                else:
                    node = left
                    left = nodes[left, NEXT]
                    n_left -= 1
                if tail < 0:
                    head = node
                else:
                    nodes[tail, NEXT] = node
                tail = node
            rest = right
        if tail >= 0:
            nodes[tail, NEXT] = NO_NODE
        if n_merges <= 1:
            return head
        width *= 2
