"""R3 with nothing around it: first inserts go out, ends lazily; a due calendar of entries that may be out of date.

Arrays of a fixed size, no joins, leaves, policies, outcomes or counters; outputs of one stable in any order. The table has room
for eight times as many nodes as it ever has, so that almost every search ends at its first place.

    starts, payloads, shown, told[s, input], due    a node
    heads, links, whom, when                        calendar: a list of (node, due) for each bucket
    sizes                                           the point, free nodes, free entries of the calendar
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from lineage.elements import FOREVER
from lineage.kernels import OPTIONS, Number, called, inline
from lmerge.streams.elements import ADJUST, INSERT, STABLE

F = TypeVar("F", bound=Callable[..., Any])

_ABSENT = -1
_POINT, _N_FREE, _N_SPARE = range(3)


def bare(function: F) -> F:
    """Compile a bare kernel as the product's are, when it is first called."""
    compiled: F = numba.njit(cache=True, **OPTIONS)(function)
    return compiled


@inline
def place_of(start: Number, payload: Number, mask: Number) -> Number:
    """Return where the search for a node begins."""
    mixed = np.uint64(start) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(payload) * np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64(mixed >> np.uint64(24)) & mask


@inline
def put(calendar: Number, shift: Number, sizes: Number, node: Number, due: Number) -> None:
    """Enter a node under the time at which it is due."""
    heads, links, whom, when, spare = calendar
    if due < FOREVER:
        sizes[_N_SPARE] -= 1
        entry = spare[sizes[_N_SPARE]]
        bucket = (due >> shift) & (len(heads) - 1)
        whom[entry] = node
        when[entry] = due
        links[entry] = heads[bucket]
        heads[bucket] = entry


@called
def drop(table: Number, starts: Number, payloads: Number, node: Number) -> None:
    """Take a node out of the table."""
    mask = len(table) - 1
    at = place_of(starts[node], payloads[node], mask)
    while table[at] != node:
        at = (at + 1) & mask
    then = at
    while True:
        then = (then + 1) & mask
        other = table[then]
        if other < 0:
            break
        if ((then - place_of(starts[other], payloads[other], mask)) & mask) >= ((then - at) & mask):
            table[at] = other
            at = then
    table[at] = -1


@bare
def merge(
    number: int,
    batch: tuple[np.ndarray, ...],
    nodes: tuple[np.ndarray, ...],
    told: np.ndarray,
    table: np.ndarray,
    free: np.ndarray,
    calendar: tuple[np.ndarray, ...],
    shift: int,
    sizes: np.ndarray,
    out: tuple[np.ndarray, ...],
) -> int:
    """Merge elements of an input; returns how many outputs were written."""
    kinds, element_starts, element_payloads, _, ends = batch
    starts, payloads, shown, dues = nodes
    heads, links, whom, when, spare = calendar
    out_kinds, out_starts, out_payloads, out_olds, out_ends = out
    mask = len(table) - 1
    n = 0
    for i in range(len(kinds)):
        end = ends[i]
        if kinds[i] != STABLE:
            start = element_starts[i]
            payload = element_payloads[i]
            at = place_of(start, payload, mask)
            node: Number = -1
            while table[at] >= 0:
                node = table[at]
                if starts[node] == start and payloads[node] == payload:
                    break
                at = (at + 1) & mask
                node = -1
            if node < 0:
                if kinds[i] == INSERT and start >= sizes[_POINT]:
                    sizes[_N_FREE] -= 1
                    node = free[sizes[_N_FREE]]
                    table[at] = node
                    starts[node] = start
                    payloads[node] = payload
                    shown[node] = end
                    for other in range(told.shape[1]):
                        told[node, other] = _ABSENT
                    told[node, number] = end
                    dues[node] = start
                    put(calendar, shift, sizes, node, start)
                    out_kinds[n] = INSERT
                    out_starts[n] = start
                    out_payloads[n] = payload
                    out_ends[n] = end
                    n += 1
            else:
                told[node, number] = end
                if start < sizes[_POINT] <= end < dues[node]:
                    dues[node] = end
                    put(calendar, shift, sizes, node, end)
        elif end > sizes[_POINT]:
            first = sizes[_POINT] >> shift
            last = min((end - 1) >> shift, first + len(heads) - 1)
            for k in range(first, last + 1):
                bucket = k & (len(heads) - 1)
                entry = heads[bucket]
                heads[bucket] = -1
                while entry >= 0:
                    after = links[entry]
                    node = whom[entry]
                    due = when[entry]
                    if due >= end:
                        links[entry] = heads[bucket]
                        heads[bucket] = entry
                        entry = after
                        continue
                    spare[sizes[_N_SPARE]] = entry
                    sizes[_N_SPARE] += 1
                    entry = after
                    if dues[node] != due:
                        continue
                    said = told[node, number]
                    given = shown[node]
                    if said == _ABSENT:
                        said = starts[node] if starts[node] >= sizes[_POINT] else given
                    if said != given and (said < end or given < end):
                        out_kinds[n] = ADJUST
                        out_starts[n] = starts[node]
                        out_payloads[n] = payloads[node]
                        out_olds[n] = given
                        out_ends[n] = said
                        n += 1
                        shown[node] = said
                        given = said
                    if said < end:
                        drop(table, starts, payloads, node)
                        dues[node] = -1
                        free[sizes[_N_FREE]] = node
                        sizes[_N_FREE] += 1
                    else:
                        due = given
                        for other in range(told.shape[1]):
                            if end <= told[node, other] < due:
                                due = told[node, other]
                        dues[node] = due
                        put(calendar, shift, sizes, node, due)
            sizes[_POINT] = end
            out_kinds[n] = STABLE
            out_ends[n] = end
            n += 1
    return n
