"""R4 with nothing around it, as `bare_r3.py`: the same table and calendar, and for each node and input a list of ends.

firsts[node, input]         the entry with the smallest end; the output is the input after the last
copies[node, input]         how many copies there are
ends, counts, afters        entries: an end, how many copies have it, the entry with the next larger end
"""

from __future__ import annotations

import numpy as np

from experiments.bench.merges.bare_r3 import bare, drop, place_of, put
from lineage.elements import FOREVER
from lineage.kernels import Number, called
from lmerge.streams.elements import ADJUST, INSERT, STABLE

_POINT, _N_FREE, _N_SPARE, _N_ENTRIES = range(4)


@called
def add(bags: Number, sizes: Number, node: Number, number: Number, end: Number) -> None:
    """Add a copy with an end."""
    firsts, copies, ends, counts, afters, unused = bags
    copies[node, number] += 1
    before, entry = -1, firsts[node, number]
    while entry >= 0 and ends[entry] < end:
        before, entry = entry, afters[entry]
    if entry >= 0 and ends[entry] == end:
        counts[entry] += 1
    else:
        sizes[_N_ENTRIES] -= 1
        made = unused[sizes[_N_ENTRIES]]
        ends[made] = end
        counts[made] = 1
        afters[made] = entry
        if before < 0:
            firsts[node, number] = made
        else:
            afters[before] = made


@called
def take(bags: Number, sizes: Number, node: Number, number: Number, end: Number) -> Number:
    """Take away a copy with an end; returns whether there was one."""
    firsts, copies, ends, counts, afters, unused = bags
    before, entry = -1, firsts[node, number]
    while entry >= 0 and ends[entry] < end:
        before, entry = entry, afters[entry]
    if entry < 0 or ends[entry] != end:
        return False
    copies[node, number] -= 1
    counts[entry] -= 1
    if counts[entry] == 0:
        if before < 0:
            firsts[node, number] = afters[entry]
        else:
            afters[before] = afters[entry]
        unused[sizes[_N_ENTRIES]] = entry
        sizes[_N_ENTRIES] += 1
    return True


@called
def differences(bags: Number, node: Number, number: Number, floor: Number) -> Number:
    """Return how many ends from `floor` on are not out, how many are too much, and the smallest of each."""
    firsts, _, ends, counts, afters, _ = bags
    a, b = firsts[node, number], firsts[node, firsts.shape[1] - 1]
    lacking, extra, first_lacking, first_extra = 0, 0, 0, 0
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and ends[a] < ends[b]):
            end, more, a = ends[a], counts[a], afters[a]
        elif a < 0 or ends[b] < ends[a]:
            end, more, b = ends[b], -counts[b], afters[b]
        else:
            end, more, a, b = ends[a], counts[a] - counts[b], afters[a], afters[b]
        if end >= floor and more > 0:
            first_lacking = end if lacking == 0 else first_lacking
            lacking += more
        elif end >= floor and more < 0:
            first_extra = end if extra == 0 else first_extra
            extra -= more
    return lacking, extra, first_lacking, first_extra


@bare
def merge(
    number: int,
    batch: tuple[np.ndarray, ...],
    nodes: tuple[np.ndarray, ...],
    bags: tuple[np.ndarray, ...],
    table: np.ndarray,
    free: np.ndarray,
    calendar: tuple[np.ndarray, ...],
    shift: int,
    sizes: np.ndarray,
    out: tuple[np.ndarray, ...],
) -> int:
    """Merge elements of an input; returns how many outputs were written."""
    kinds, element_starts, element_payloads, olds, element_ends = batch
    starts, payloads, dues = nodes
    firsts, copies, ends, _, afters, unused = bags
    heads, links, whom, when, spare = calendar
    out_kinds, out_starts, out_payloads, out_olds, out_ends = out
    mask = len(table) - 1
    output = firsts.shape[1] - 1
    n = 0
    for i in range(len(kinds)):
        end = element_ends[i]
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
            if kinds[i] == INSERT:
                if node < 0:
                    if start < sizes[_POINT]:
                        continue
                    sizes[_N_FREE] -= 1
                    node = free[sizes[_N_FREE]]
                    table[at] = node
                    starts[node] = start
                    payloads[node] = payload
                    for other in range(output + 1):
                        firsts[node, other] = -1
                        copies[node, other] = 0
                    dues[node] = start
                    put(calendar, shift, sizes, node, start)
                add(bags, sizes, node, number, end)
                if start >= sizes[_POINT] and copies[node, number] > copies[node, output]:
                    add(bags, sizes, node, output, end)
                    out_kinds[n] = INSERT
                    out_starts[n] = start
                    out_payloads[n] = payload
                    out_ends[n] = end
                    n += 1
            elif node < 0 or not take(bags, sizes, node, number, olds[i]):
                continue
            elif end > start:
                add(bags, sizes, node, number, end)
            if start < sizes[_POINT] <= end < dues[node]:
                dues[node] = end
                put(calendar, shift, sizes, node, end)
        elif end > sizes[_POINT]:
            point = sizes[_POINT]
            first = point >> shift
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
                    start = starts[node]
                    while True:
                        floor = point if start < point else -FOREVER
                        lacking, extra, said, given = differences(bags, node, number, floor)
                        if start >= point and lacking != extra:
                            if extra > lacking:
                                said = start
                            else:
                                given = start
                        elif lacking == 0 or extra == 0 or min(said, given) >= end:
                            break
                        if given != start:
                            take(bags, sizes, node, output, given)
                        if said > start:
                            add(bags, sizes, node, output, said)
                        out_kinds[n] = ADJUST if given != start else INSERT
                        out_starts[n] = start
                        out_payloads[n] = payloads[node]
                        out_olds[n] = given if given != start else 0
                        out_ends[n] = said
                        n += 1
                    due = FOREVER
                    kept = False
                    for other in range(output, -1, -1):
                        link = firsts[node, other]
                        while link >= 0 and ends[link] < end:
                            link = afters[link]
                        if link >= 0:
                            due = min(due, ends[link])
                            kept |= other == output
                        if not kept:
                            break
                    if kept:
                        dues[node] = due
                        put(calendar, shift, sizes, node, due)
                    else:
                        for other in range(output + 1):
                            link = firsts[node, other]
                            while link >= 0:
                                unused[sizes[_N_ENTRIES]] = link
                                sizes[_N_ENTRIES] += 1
                                link = afters[link]
                        drop(table, starts, payloads, node)
                        dues[node] = -1
                        free[sizes[_N_FREE]] = node
                        sizes[_N_FREE] += 1
            sizes[_POINT] = end
            out_kinds[n] = STABLE
            out_ends[n] = end
            n += 1
    return n
