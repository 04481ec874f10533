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

#: Fields of a node: its event, the order in which nodes were made (0: no node), when it is due, the next
#: one in its bucket and, behind it, the one before.
START, PAYLOAD, ORDER, DUE, NEXT = range(5)

NO_NODE = -1
#: Buckets of the smallest calendar, and the nodes that a bucket should have about.
_LEAST_BUCKETS = 16
_FEW = 2


@inline
def link(links: Number, at: Number, buckets: Number, shift: Number, node: Number, time: Number) -> None:
    """Put a node into the bucket of a time; the time and both neighbours are in three columns of `links`, from `at` on."""
    links[node, at] = time
    if time < FOREVER:
        bucket = (time >> shift) & (len(buckets) - 1)
        head = buckets[bucket]
        links[node, at + 1] = head
        links[node, at + 2] = NO_NODE
        if head >= 0:
            links[head, at + 2] = node
        buckets[bucket] = node


@inline
def unlink(links: Number, at: Number, buckets: Number, shift: Number, node: Number) -> None:
    """Take a node out of its bucket."""
    if links[node, at] < FOREVER:
        after = links[node, at + 1]
        before = links[node, at + 2]
        if before < 0:
            buckets[(links[node, at] >> shift) & (len(buckets) - 1)] = after
        else:
            links[before, at + 1] = after
        if after >= 0:
            links[after, at + 2] = before


@inline
def n_buckets_of(buckets: Number, shift: Number, low: Number, high: Number) -> Number:
    """Return in how many buckets the times of [low, high) are."""
    return min(((high - 1) >> shift) - (low >> shift), len(buckets) - 1) + 1


@kernel("void(int64[:,::1], int64, int64[::1], int64, int64[:,::1], int64)")
def lay_out(links: np.ndarray, at: int, buckets: np.ndarray, shift: int, nodes: np.ndarray, high: int) -> None:
    """Link every node below `high` into empty buckets."""
    for node in range(high):
        if nodes[node, ORDER] != 0:
            link(links, at, buckets, shift, node, links[node, at])


def fitting(dues: np.ndarray, step: int) -> tuple[int, int]:
    """Return shift and number of buckets for nodes that are due at some times, under a point that moves by `step`."""
    dues = dues[dues < FOREVER]
    span = int(dues.max()) - int(dues.min()) + 1 if len(dues) else 1
    shift = max(1, min(step, span), span * _FEW // max(1, len(dues))).bit_length() - 1
    n_buckets = _LEAST_BUCKETS
    while n_buckets < 2 * len(dues) and (n_buckets << shift) <= span:
        n_buckets *= 2
    return shift, n_buckets


def linked(links: np.ndarray, at: int, buckets: np.ndarray, shift: int) -> list[int]:
    """Return the nodes of all buckets; asserts that each is where its time says."""
    found = []
    for bucket, head in enumerate(buckets.tolist()):
        before, node = NO_NODE, head
        while node >= 0:
            assert links[node, at + 2] == before, "neighbours know each other"
            assert (links[node, at] >> shift) & (len(buckets) - 1) == bucket, "a node is in the bucket of its time"
            found.append(node)
            before, node = node, int(links[node, at + 1])
    return found
