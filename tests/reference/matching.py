"""What a query text means, and which combinations of rows are its results (`semantics.md` 6, 14, 15, 26).

    a match         one part of every FROM item, all conditions true (not NULL); (x, x) is one in a self-join
    its life        [latest start of its parts, earliest end)
    it counts       when its life is not empty
    frozen table    as it was in the commit in which the last of the match's stream rows came; no part of the life.
                    Frozen are non-retroactive tables, and every table beside a stream without window.
    other tables    a version is a part like a row: the match ends when the version does

Choice where the text leaves room: a query over tables alone sees all of them as they are, non-retroactive ones too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.reference.lives import Part, Window
from tests.reference.tables import Table, Version
from tests.reference.values import Row, Value

Rows = Sequence[Row]
MAX_INPUTS = 8


@dataclass(frozen=True)
class Input:
    """A FROM item: a table, or a stream with its window; a stream without one counts each row once."""

    source: str
    window: Window | None = None


@dataclass(frozen=True)
class Condition:
    """One conjunct of WHERE: a function over one row per input that reads only those in `uses`."""

    uses: frozenset[int]
    holds: Callable[[Rows], bool | None]


@dataclass(frozen=True)
class Meaning:
    """What a query text means."""

    inputs: tuple[Input, ...]
    where: tuple[Condition, ...]
    select: Callable[[Rows], Value]


def over_one(stream: str, window: Window | None, where: Callable[[Row], bool | None], select: Callable[[Row], Value]) -> Meaning:
    """A query with one FROM item, by functions over its row."""
    condition = Condition(frozenset({0}), lambda rows: where(rows[0]))
    return Meaning((Input(stream, window),), (condition,), lambda rows: select(rows[0]))


@dataclass(eq=False)
class Result:
    """A match that counts; `gone` once a commit has taken it back."""

    parts: tuple[Part, ...]
    value: Value
    gone: bool = False

    @property
    def start(self) -> float:
        return life(self.parts)[0]

    @property
    def end(self) -> float:
        return life(self.parts)[1]


def life(parts: Sequence[Part]) -> tuple[float, float]:
    return max(part.start for part in parts), min(part.end for part in parts)


def arrival(parts: Sequence[Part]) -> int:
    """The commit in which the last of a match's stream rows came."""
    return max(part.seq for part in parts)


def frozen_part(version: Version) -> Part:
    """A version that counts as it was: it has no life of its own."""
    return Part(version.number, version.row, -1, -math.inf, math.inf)


def matches(
    meaning: Meaning,
    parts: Sequence[Sequence[Part]],
    frozen: Mapping[int, Table],
    streams: frozenset[int],
    seq: int,
    holds: Callable[[Condition, Rows], bool],
) -> Iterator[tuple[Part, ...]]:
    """Every combination that passes WHERE and has a part that came in commit `seq`.

    `parts` holds what each input has, `frozen` says which inputs are frozen tables, `streams` which are streams. Each
    combination is found once: at its first input, in order of FROM, with a part of this commit.
    """
    n = len(meaning.inputs)
    moving = [k for k in range(n) if k not in frozen]
    came = {k: [part for part in parts[k] if part.seq == seq] for k in moving}
    there = {k: [part for part in parts[k] if part.seq != seq] for k in moving}

    def candidates(k: int, first: int, bound: dict[int, Part]) -> list[Part]:
        if k in frozen:
            return [frozen_part(version) for version in frozen[k].at(arrival([bound[s] for s in streams]))]
        return there[k] if k < first else came[k] if k == first else there[k] + came[k]

    def extend(order: list[int], first: int, bound: dict[int, Part]) -> Iterator[tuple[Part, ...]]:
        if len(bound) == n:
            yield tuple(bound[k] for k in range(n))
            return
        k = order[len(bound)]
        for part in candidates(k, first, bound):
            bound[k] = part
            rows = [bound[j].row if j in bound else {} for j in range(n)]
            ready = [c for c in meaning.where if c.uses <= bound.keys() and (k in c.uses or not c.uses)]
            if all(holds(condition, rows) for condition in ready):
                yield from extend(order, first, bound)
            del bound[k]

    for first in moving:
        if came[first]:
            # tables that count as they were come last: they are looked up by what the others say
            yield from extend([first, *(k for k in moving if k != first), *frozen], first, {})
