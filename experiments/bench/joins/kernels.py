"""The numba kernels of the bare SteM and of NiagaraCQ's plans: find a symbol, build, walk chains, copy joined tuples.

    position      number of a row in its stream, int32; `position & (len(ring) - 1)` is its place in a ring
    heads         newest position of a symbol, of either stream; -1 before the first
    links[p]      the position before p with the same symbol
    lows[i]       oldest position of the other stream that is in the window of probing row i when its push ends

A chain ends below `lows[i]`, so stale heads and links need no care: what they lead to has left the window long before.

Chains are walked breadth first: every row of a push takes one step and asks for what the next one needs, then those that go on
take it. No load waits for another and no branch depends on a chain's length. Measured, ns a probing row, the links not in cache
from another walk (AMD EPYC, 512 KB of second-level cache):

    matches a row, rows a side                   one, 10 k    ten, 10 k    ten, 100 k    ten, 1 M
    breadth first                                        4           21            28          61
    16 chains in turn (prototypes/q3_stem2.py)          11           27            31         166
    one chain after the other                            9           37            78         357
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.bench.base.bitmaps import kernel
from lineage.bits import ONE, U64
from lineage.memory import prefetch

#: How many rows before its turn the place of a symbol is asked for from memory.
_AHEAD = 12
_HASH = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@kernel
def build_and_find(
    symbols: np.ndarray,
    times: np.ndarray,
    side: int,
    first: int,
    table: np.ndarray,
    heads: np.ndarray,
    links: np.ndarray,
    stored_times: np.ndarray,
    found: np.ndarray,
) -> None:
    """Put rows in front of their chains, and fill `found` with the newest row of the other side that has their symbol.

    `table[place]` is the symbol, or -1, and the heads of both sides; `heads` is the same memory as int32 words, of which the
    last two of a place are the heads. So one look-up serves the build and the probe.
    """
    mask = U64(len(table) - 1)
    ring = U64(len(links) - 1)
    own = U64(2 + side)
    other = U64(3 - side)
    begin = np.int64(table.ctypes.data)
    n_rows = len(symbols)
    for i in range(n_rows):
        if i + _AHEAD < n_rows:
            prefetch(begin + 16 * np.int64((U64(symbols[i + _AHEAD]) * _HASH >> _HALF) & mask))
        symbol = symbols[i]
        at = (U64(symbol) * _HASH >> _HALF) & mask
        while table[at, 0] != symbol and table[at, 0] != -1:
            at = (at + ONE) & mask
        table[at, 0] = symbol
        place = U64(first + i) & ring
        found[i] = heads[at, other]
        links[place] = heads[at, own]
        heads[at, own] = first + i
        stored_times[place] = times[i]


@kernel
def find_lows(times: np.ndarray, window: int, stored_times: np.ndarray, low: int, end: int, lows: np.ndarray) -> int:
    """`lows[i]` = first position from `low` on that the window holds when the push ends; returns it.

    What left within the push is not shown; so a row that did finds nothing.
    """
    ring = U64(len(stored_times) - 1)
    oldest = times[len(times) - 1] - window
    while low < end and stored_times[U64(low) & ring] <= oldest:
        low += 1
    for i in range(len(times)):
        lows[i] = low if times[i] > oldest else end
    return low


class Walk(NamedTuple):
    """The buffers of a walk over chains."""

    #: of each probing row: the newest row of the other side with its symbol, and the oldest in the window
    found: np.ndarray
    lows: np.ndarray
    progress: np.ndarray
    #: probing rows whose chain goes on, and where it stands
    rows: np.ndarray
    heads: np.ndarray
    #: a part of the matches
    own: np.ndarray
    other: np.ndarray


@kernel
def walk(found: np.ndarray, lows: np.ndarray, links: np.ndarray, first: int, w: Walk) -> int:
    """The next part of the matches, as many as `own` and `other` hold: positions of the probing row and of the row found.

    All rows take a step, then those whose chain goes on take the next: `rows[:left]` with the positions `heads[:left]`, of which
    `done` have taken it and `kept` go on. `progress` is (done, kept, left): -1 at the beginning, and at the end left is 0.
    """
    progress, rows, heads, own, other = w.progress, w.rows, w.heads, w.own, w.other
    ring = U64(len(links) - 1)
    begin = np.int64(links.ctypes.data)
    done, kept, left = progress[0], progress[1], progress[2]
    if left < 0:
        done = 0
        kept = 0
        left = 0
        for i in range(len(found)):
            rows[U64(left)] = i
            heads[U64(left)] = found[i]
            prefetch(begin + 4 * np.int64(U64(found[i]) & ring))
            left += found[i] >= lows[i]
    n = 0
    while left > 0 and n < len(own):
        stop = min(left, done + len(own) - n)
        for at in range(done, stop):
            row = rows[U64(at)]
            position = heads[U64(at)]
            own[U64(n)] = first + row
            other[U64(n)] = position
            n += 1
            older = links[U64(position) & ring]
            rows[U64(kept)] = row
            heads[U64(kept)] = older
            prefetch(begin + 4 * np.int64(U64(older) & ring))
            kept += older >= lows[U64(row)]
        done = stop
        if done == left:
            left = kept
            done = 0
            kept = 0
    progress[0] = done
    progress[1] = kept
    progress[2] = left
    return n


@kernel
def put(values: np.ndarray, ring: np.ndarray, first: int) -> None:
    """Store the values of new rows in a ring."""
    mask = U64(len(ring) - 1)
    for i in range(len(values)):
        ring[U64(first + i) & mask] = values[i]


@kernel
def put_quotes(symbols: np.ndarray, prices: np.ndarray, times: np.ndarray, quotes: np.ndarray, first: int) -> None:
    """Store quotes as tuples in a ring; `prices` are bits."""
    mask = U64(len(quotes) - 1)
    for i in range(len(symbols)):
        at = U64(first + i) & mask
        quotes[at, 0] = symbols[i]
        quotes[at, 1] = prices[i]
        quotes[at, 2] = times[i]


@kernel
def gather(ring: np.ndarray, positions: np.ndarray, values: np.ndarray) -> None:
    """The stored values of rows."""
    mask = U64(len(ring) - 1)
    for j in range(len(positions)):
        values[j] = ring[U64(positions[j]) & mask]


@kernel
def lineage_of_codes(codes: np.ndarray, regions: np.ndarray, lineage: np.ndarray) -> None:
    """The query bits of each match: the row of its region. `lineage` may have more rows: they get none."""
    for j in range(len(codes)):
        region = U64(codes[j])
        for w in range(lineage.shape[1]):
            lineage[j, w] = regions[region, w]
    for j in range(len(codes), len(lineage)):
        for w in range(lineage.shape[1]):
            lineage[j, w] = 0


@kernel
def encode_symbols(symbols: np.ndarray, table: np.ndarray, codes: np.ndarray, n_codes: int) -> int:
    """Symbols to dense codes; `table[place]` is (symbol or -1, code). Returns the number of codes."""
    mask = U64(len(table) - 1)
    for i in range(len(symbols)):
        symbol = symbols[i]
        at = (U64(symbol) * _HASH >> _HALF) & mask
        while table[at, 0] != symbol and table[at, 0] != -1:
            at = (at + ONE) & mask
        if table[at, 0] == -1:
            table[at, 0] = symbol
            table[at, 1] = n_codes
            n_codes += 1
        codes[i] = table[at, 1]
    return n_codes


@kernel
def join_tuples(
    stocks: np.ndarray, articles: np.ndarray, quotes: np.ndarray, published: np.ndarray, joined: np.ndarray, prices: np.ndarray
) -> None:
    """Make the joined tuple of every match, and its price for the selections above; `prices` are bits."""
    quote_ring = U64(len(quotes) - 1)
    article_ring = U64(len(published) - 1)
    for j in range(len(stocks)):
        at = U64(stocks[j]) & quote_ring
        joined[j, 0] = quotes[at, 0]
        joined[j, 1] = quotes[at, 1]
        joined[j, 2] = quotes[at, 2]
        joined[j, 3] = published[U64(articles[j]) & article_ring]
        prices[j] = quotes[at, 1]


@kernel
def split_tuples(
    joined: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    members: np.ndarray,
    cursor: np.ndarray,
    offsets: np.ndarray,
    copies: np.ndarray,
) -> None:
    """Split above the join: copy tuple j to the queries `members[starts[j]:ends[j]]`, each query's copies together."""
    cursor[:] = 0
    for j in range(len(starts)):
        for k in range(starts[j], ends[j]):
            cursor[U64(members[U64(k)])] += 1
    total = 0
    for q in range(len(cursor)):
        offsets[q] = total
        total += cursor[q]
        cursor[q] = offsets[q]
    offsets[len(cursor)] = total
    for j in range(len(starts)):
        symbol, price, quoted, written = joined[j, 0], joined[j, 1], joined[j, 2], joined[j, 3]
        for k in range(starts[j], ends[j]):
            query = U64(members[U64(k)])
            at = U64(cursor[query])
            cursor[query] += 1
            copies[at, 0] = symbol
            copies[at, 1] = price
            copies[at, 2] = quoted
            copies[at, 3] = written


@kernel
def split_quotes(
    symbols: np.ndarray,
    prices: np.ndarray,
    times: np.ndarray,
    codes: np.ndarray,
    lows: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    members: np.ndarray,
    tails: np.ndarray,
    sizes: np.ndarray,
    quotes: np.ndarray,
    queued_codes: np.ndarray,
    queued_lows: np.ndarray,
) -> None:
    """Split below the joins: copy quote i to the joins of the queries `members[starts[i]:ends[i]]`.

    The copy goes to where the join keeps it, `quotes[q]`; beside it the code of its symbol and what the articles' window holds.
    """
    ring = U64(quotes.shape[1] - 1)
    sizes[:] = 0
    for i in range(len(symbols)):
        symbol, price, time, code, low = symbols[i], prices[i], times[i], codes[i], lows[i]
        for k in range(starts[i], ends[i]):
            q = U64(members[U64(k)])
            size = U64(sizes[q])
            at = (U64(tails[q]) + size) & ring
            quotes[q, at, 0] = symbol
            quotes[q, at, 1] = price
            quotes[q, at, 2] = time
            queued_codes[q, size] = code
            queued_lows[q, size] = low
            sizes[q] += 1


@kernel
def build_quotes(sizes: np.ndarray, queued_codes: np.ndarray, tails: np.ndarray, heads: np.ndarray, links: np.ndarray) -> None:
    """Every query's join builds the quotes it was given into its own hash table."""
    ring = U64(links.shape[1] - 1)
    for query in range(len(sizes)):
        q = U64(query)
        tail = tails[q]
        for k in range(sizes[q]):
            code = U64(queued_codes[q, U64(k)])
            links[q, U64(tail + k) & ring] = heads[q, code]
            heads[q, code] = tail + k
        tails[q] = tail + sizes[q]


@kernel
def probe_articles(
    sizes: np.ndarray,
    queued_codes: np.ndarray,
    queued_lows: np.ndarray,
    tails: np.ndarray,
    quotes: np.ndarray,
    article_heads: np.ndarray,
    article_links: np.ndarray,
    article_times: np.ndarray,
    w: Walk,
    offsets: np.ndarray,
    copies: np.ndarray,
) -> int:
    """Every query's join looks its new quotes up in the shared table of articles; returns how many tuples it makes.

    Tuples beyond the room of `copies` are counted only: call again with more.
    """
    quote_ring = U64(quotes.shape[1] - 1)
    article_ring = U64(len(article_times) - 1)
    total = 0
    for q in range(len(sizes)):
        offsets[q] = total
        size = sizes[q]
        for k in range(size):
            w.found[k] = article_heads[U64(queued_codes[q, k])]
        lows = queued_lows[q, :size]
        w.progress[:] = -1
        while w.progress[2]:
            n = walk(w.found[:size], lows, article_links, tails[q] - size, w)
            if total + n <= len(copies):
                for j in range(n):
                    at = U64(w.own[j]) & quote_ring
                    copies[total + j, 0] = quotes[q, at, 0]
                    copies[total + j, 1] = quotes[q, at, 1]
                    copies[total + j, 2] = quotes[q, at, 2]
                    copies[total + j, 3] = article_times[U64(w.other[j]) & article_ring]
            total += n
    offsets[len(sizes)] = total
    return total


@kernel
def probe_quotes(
    codes: np.ndarray,
    times: np.ndarray,
    window: int,
    lows_of: np.ndarray,
    tails: np.ndarray,
    heads: np.ndarray,
    links: np.ndarray,
    quotes: np.ndarray,
    w: Walk,
    offsets: np.ndarray,
    copies: np.ndarray,
) -> int:
    """Every query's join looks the new articles up in its own table of quotes; as `probe_articles`.

    `lows_of[q]` is the oldest quote of the query that was in the window before, and moves on with it.
    """
    n_rows = len(codes)
    ring = U64(quotes.shape[1] - 1)
    total = 0
    for q in range(len(tails)):
        offsets[q] = total
        low, end = lows_of[q], tails[q]
        oldest = times[n_rows - 1] - window
        while low < end and quotes[q, U64(low) & ring, 2] <= oldest:
            low += 1
        lows_of[q] = low
        for i in range(n_rows):
            w.lows[i] = low if times[i] > oldest else end
            w.found[i] = heads[q, U64(codes[i])]
        w.progress[:] = -1
        while w.progress[2]:
            n = walk(w.found, w.lows, links[q], 0, w)
            if total + n <= len(copies):
                for j in range(n):
                    at = U64(w.other[j]) & ring
                    copies[total + j, 0] = quotes[q, at, 0]
                    copies[total + j, 1] = quotes[q, at, 1]
                    copies[total + j, 2] = quotes[q, at, 2]
                    copies[total + j, 3] = times[U64(w.own[j])]
            total += n
    offsets[len(tails)] = total
    return total
