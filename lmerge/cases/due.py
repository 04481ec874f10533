"""The due calendar: nodes by the time at which the merge's point changes something about them.

    due       a start not yet passed, or else the first end that any input or the output has: before it nothing can change
    bucket    (due >> shift) % buckets: a doubly linked list through the nodes, so that a node that is due earlier moves at once

A stable point then looks at the nodes whose time has come, not at all that are half frozen. Where it passes more buckets than
there are nodes it looks at all nodes instead: both find the same. A node that is never due (no end) is in no bucket. The
calendar is laid out anew, for the nodes it has and the steps that the point takes, when it looks in vain too often.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import FOREVER
from lineage.kernels import Number, inline, kernel

#: Fields of a node: its event, when it is due, the order in which nodes were made (0: no node), its neighbours in a bucket.
START, PAYLOAD, DUE, ORDER, NEXT, PREVIOUS = range(6)

NO_NODE = -1
#: Buckets of the smallest calendar, and the nodes that a bucket should have about.
_LEAST_BUCKETS = 16
_FEW = 2


@inline
def link(nodes: Number, buckets: Number, shift: Number, node: Number, due: Number) -> None:
    """Put a node into the bucket of the time at which it is due."""
    nodes[node, DUE] = due
    if due < FOREVER:
        bucket = (due >> shift) & (len(buckets) - 1)
        head = buckets[bucket]
        nodes[node, NEXT] = head
        nodes[node, PREVIOUS] = NO_NODE
        if head >= 0:
            nodes[head, PREVIOUS] = node
        buckets[bucket] = node


@inline
def unlink(nodes: Number, buckets: Number, shift: Number, node: Number) -> None:
    """Take a node out of its bucket."""
    if nodes[node, DUE] < FOREVER:
        after = nodes[node, NEXT]
        before = nodes[node, PREVIOUS]
        if before < 0:
            buckets[(nodes[node, DUE] >> shift) & (len(buckets) - 1)] = after
        else:
            nodes[before, NEXT] = after
        if after >= 0:
            nodes[after, PREVIOUS] = before


@kernel("void(int64[:,::1], int64, int64[::1], int64)")
def lay_out(nodes: np.ndarray, high: int, buckets: np.ndarray, shift: int) -> None:
    """Link every node below `high` into empty buckets."""
    for node in range(high):
        if nodes[node, ORDER] != 0:
            link(nodes, buckets, shift, node, nodes[node, DUE])


def fitting(dues: np.ndarray, step: int) -> tuple[int, int]:
    """Return shift and number of buckets for nodes that are due at some times, under a point that moves by `step`."""
    dues = dues[dues < FOREVER]
    span = int(dues.max()) - int(dues.min()) + 1 if len(dues) else 1
    shift = max(1, min(step, span), span * _FEW // max(1, len(dues))).bit_length() - 1
    n_buckets = _LEAST_BUCKETS
    while n_buckets < 2 * len(dues) and (n_buckets << shift) <= span:
        n_buckets *= 2
    return shift, n_buckets


def linked(nodes: np.ndarray, buckets: np.ndarray, shift: int) -> list[int]:
    """Return the nodes of all buckets; asserts that each is where its time says."""
    found = []
    for bucket, head in enumerate(buckets.tolist()):
        before, node = NO_NODE, head
        while node >= 0:
            assert nodes[node, PREVIOUS] == before, "neighbours know each other"
            assert (nodes[node, DUE] >> shift) & (len(buckets) - 1) == bucket, "a node is in the bucket of its time"
            found.append(node)
            before, node = node, int(nodes[node, NEXT])
    return found
