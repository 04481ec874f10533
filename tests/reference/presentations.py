"""Random temporal tables, and physically different presentations of one: what LMerge is fed with in tests.

    random_table      events (payload, start, end); with a key no two have payload and start in common
    present           one valid stream of a table: disorder, provisional ends, events taken back, repeated inserts, missing events
    present_in_order  one of inserts in order of their starts (R0 to R2)
    shuffle           presentations cut into pushes anywhere, with stalls, joins and leaves

An element says when it may come at the latest: an insert before a stable above its start, an adjust before one above either end.
So elements are placed first, and a stable then says at most the smallest such time of all that come after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from experiments.papers.lmerge import PhysicalElement, adjust, insert, stable
from lineage.elements import BEGINNING, FOREVER
from lmerge.streams.elements import INSERT, STABLE


class TableEvent(NamedTuple):
    """One event of a temporal table."""

    payload: int
    start: int
    end: int


@dataclass(frozen=True)
class Manner:
    """How far a presentation departs from the table it presents; shares of events."""

    #: How late an element comes, at most, in time units.
    disorder: int = 6
    #: Events with ends that change.
    revised: float = 0.4
    #: Events that are taken back and given again.
    wavering: float = 0.05
    #: Events that are not in the table and are taken back, per event of it.
    spurious: float = 0.2
    #: Inserts that come twice; not in bags.
    repeated: float = 0.0
    #: Events that do not come.
    missing: float = 0.0
    #: Stables per element.
    stables: float = 0.3


#: As the paper wants it: every input presents the same table.
COMPLETE = Manner()
#: As gateways are.
SLOPPY = Manner(repeated=0.1, missing=0.12, spurious=0.0)


def random_table(rng: Random, n: int, *, key: bool = True, span: int = 12, payloads: int = 3, life: int = 8) -> list[TableEvent]:
    """At most n events, some of them without an end; fewer where the key leaves no room. Times may be negative."""
    events: dict[tuple[int, int, int], TableEvent] = {}
    for k in range(n):
        payload, start = rng.randrange(payloads), rng.randrange(span) - span // 4
        end = FOREVER if rng.random() < 0.05 else start + rng.randrange(1, life)
        events.setdefault((payload, start, 0 if key else k), TableEvent(payload, start, end))
    return list(events.values())


def present(rng: Random, table: Sequence[TableEvent], manner: Manner = COMPLETE, *, key: bool = True) -> list[PhysicalElement]:
    """One valid stream of a table (but for repeated inserts), up to the stable that ends it."""
    placed: list[tuple[float, PhysicalElement]] = []
    taken = {(event.payload, event.start) for event in table}
    for event in table:
        if rng.random() >= manner.missing:
            placed += _place(rng, event, manner, repeats=key)
        if rng.random() < manner.spurious:
            payload, start = event.payload + rng.randrange(3), event.start + rng.randrange(-2, 3)
            if not key or (payload, start) not in taken:
                taken.add((payload, start))
                placed += _chain(rng, TableEvent(payload, start, start), manner, [_any_end(rng, start), start])
    placed.sort(key=lambda pair: pair[0])
    return _with_stables(rng, [element for _, element in placed], manner.stables)


def present_in_order(
    rng: Random, table: Sequence[TableEvent], *, case: str, missing: float = 0.0, stables: float = 0.3
) -> list[PhysicalElement]:
    """One stream of inserts with rising starts; in R2 those of one start in any order."""
    events = sorted(table, key=lambda event: (event.start, rng.random() if case == "R2" else event))
    return _with_stables(rng, [insert(*event) for event in events if rng.random() >= missing], stables)


def distinct_starts(table: Iterable[TableEvent]) -> list[TableEvent]:
    """A part of a table in which no two events start together, for R0."""
    return list({event.start: event for event in table}.values())


def _place(rng: Random, event: TableEvent, manner: Manner, *, repeats: bool) -> list[tuple[float, PhysicalElement]]:
    """The elements of one event, each with the moment at which it comes."""
    ends = [event.end]
    if rng.random() < manner.revised:
        ends = [_any_end(rng, event.start) for _ in range(rng.randrange(1, 4))] + ends
    wavers = rng.random() < manner.wavering
    if wavers:
        ends.insert(rng.randrange(1, len(ends) + 1), event.start)
        ends += [event.end] if ends[-1] == event.start else []
    placed = _chain(rng, event, manner, ends)
    if repeats and not wavers and rng.random() < manner.repeated:
        moment, first = placed[0]
        placed.append((moment + rng.uniform(0, manner.disorder + 1), first))
    return placed


def _any_end(rng: Random, start: int) -> int:
    """A provisional end."""
    return FOREVER if rng.random() < 0.1 else start + rng.randrange(1, 12)


def _chain(rng: Random, event: TableEvent, manner: Manner, ends: list[int]) -> list[tuple[float, PhysicalElement]]:
    """An insert and its adjusts: an event that has one end after the other. An end equal to the start: it is gone for a while."""
    moment = event.start + rng.uniform(-2, manner.disorder)
    placed: list[tuple[float, PhysicalElement]] = []
    now: int | None = None
    for end in ends:
        if now is None:
            placed.append((moment, insert(event.payload, event.start, end)))
        elif now != end:
            placed.append((moment, adjust(event.payload, event.start, now, end)))
        now = None if end == event.start else end
        moment += rng.uniform(0, manner.disorder + 1)
    return placed


def _with_stables(rng: Random, elements: list[PhysicalElement], share: float) -> list[PhysicalElement]:
    """Elements with stables between them, each as far as what comes after it allows or less, and one without end."""
    bounds = [FOREVER] * (len(elements) + 1)
    for k in reversed(range(len(elements))):
        element = elements[k]
        own = element.start if element.kind == INSERT else min(element.old, element.end)
        bounds[k] = min(bounds[k + 1], own)
    out, point = [], BEGINNING
    for element, bound in zip(elements, bounds):
        if rng.random() < share and BEGINNING < bound < FOREVER:
            said = bound - rng.choice((0, 0, 0, 1, 3))
            if said > point:
                point = said
                out.append(stable(said))
        out.append(element)
    return [*out, stable(FOREVER)]


class Attach(NamedTuple):
    """A new input, told by its place in the order of attaching, gives every event that ends at `since` or later."""

    stream: int
    since: int | None


class Push(NamedTuple):
    """The next elements of an input."""

    stream: int
    elements: list[PhysicalElement]


class Detach(NamedTuple):
    """An input leaves."""

    stream: int


Step = Attach | Push | Detach


def shuffle(
    rng: Random, streams: Sequence[list[PhysicalElement]], *, cut: int = 4, kill: float = 0.0, stall: float = 0.1
) -> list[Step]:
    """All streams attached at the start and pushed in pieces of at most `cut` elements in a random order.

    Some stand still for a while; with `kill` inputs leave, until one is left that goes to its end.
    """
    steps: list[Step] = [Attach(stream, None) for stream in range(len(streams))]
    steps += _pushes(rng, dict(enumerate(streams)), cut=cut, kill=kill, stall=stall)
    return steps


def shuffle_joins(
    rng: Random,
    table: Sequence[TableEvent],
    n: int,
    manner: Manner = COMPLETE,
    *,
    key: bool = True,
    cut: int = 4,
    lag: int = 0,
) -> list[Step]:
    """Up to n inputs that come and go anywhere: complete ones, and ones that begin at some time.

    One that has joined is always there, so at the end the merged table is this one.
    """
    steps: list[Step] = []
    streams: dict[int, list[PhysicalElement]] = {}
    sinces: dict[int, int] = {}
    joined: set[int] = set()
    point, made = BEGINNING, 0
    while streams or not made:
        if made < n and (not made or rng.random() < 0.1):
            late = made > 0 and rng.random() < 0.7
            since = rng.choice(table).start + rng.randrange(4) if late and table else BEGINNING
            streams[made] = present(rng, [event for event in table if event.end >= since], manner, key=key)
            sinces[made] = since
            joined |= {made} if since <= point else set()
            steps.append(Attach(made, since if late else None))
            made += 1
        leaving = [k for k in streams if k not in joined or len(joined) > 1]
        if leaving and rng.random() < 0.04:
            gone = rng.choice(leaving)
            del streams[gone]
            joined.discard(gone)
            steps.append(Detach(gone))
            continue
        stream = rng.choice(list(streams))
        piece = streams[stream][: rng.randrange(1, cut + 1)]
        del streams[stream][: len(piece)]
        steps.append(Push(stream, piece))
        for element in piece:
            if element.kind == STABLE and stream in joined:
                point = max(point, element.end if element.end == FOREVER else element.end - lag)
                joined |= {k for k in streams if sinces[k] <= point}
        if point == FOREVER:
            break
        if not streams[stream]:
            del streams[stream]
    return steps


def _pushes(
    rng: Random, streams: dict[int, list[PhysicalElement]], *, cut: int, kill: float, stall: float
) -> list[Push | Detach]:
    rest = {stream: list(elements) for stream, elements in streams.items()}
    still: dict[int, int] = {}
    steps: list[Push | Detach] = []
    here = len(rest)
    while rest:
        if here > 1 and rng.random() < kill:
            gone = rng.choice(list(rest))
            del rest[gone]
            here -= 1
            steps.append(Detach(gone))
            continue
        awake = [stream for stream in rest if not still.get(stream)] or list(rest)
        stream = rng.choice(awake)
        still = {k: left - 1 for k, left in still.items() if left > 1}
        if rng.random() < stall:
            still[stream] = rng.randrange(5, 40)
        piece = rest[stream][: rng.randrange(1, cut + 1)]
        steps.append(Push(stream, piece))
        del rest[stream][: len(piece)]
        if not rest[stream]:
            del rest[stream]
    return steps
