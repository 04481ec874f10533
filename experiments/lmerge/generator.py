"""The LMerge paper's stream generator (VI-B), as columns: one temporal table, and any number of physical streams that present it.

    table           event i starts a random gap of at most `max_gap_us` after event i - 1, and every event lives as long; its
                    payload is an integer in [0, 400] and a string of 1,000 bytes
    presentation    the events in the order of their starts, but for a share of them (`disorder`), which come up to `back_us`
                    late; a share `stables` of all elements are stables

The paper moves starts back in time and leaves elements where they are. Here the table stays, because all presentations have it in
common, and elements come later: the same order of starts. A stable says the smallest start of all that is still to come, so it
never lies; at least one insert stands between two of them. Each presentation draws its own disorder and stables, from the seed
and its number. The last element is a stable without end.

A payload's code is event x 401 + integer: the strings are random, so no two events have the same one. Merges see codes; the bytes
of a payload are counted where one is kept (`PAYLOAD_BYTES`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage.elements import FOREVER
from lmerge.streams.elements import INSERT, STABLE, ElementBatch

SECOND_US = 1_000_000
#: Integers of a payload: 0 to 400.
VALUES = 401
#: An integer and a string of 1,000 bytes.
PAYLOAD_BYTES = 8 + 1000


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """The parameters of the paper's generator, with its defaults; `back_us` is ours."""

    #: of a presentation, stables among them
    elements: int = 200_000
    #: StableFreq
    stables: float = 0.01
    #: events alive at any time, which gives EventDuration; `life_us` says it outright
    active: int = 10_000
    life_us: int | None = None
    max_gap_us: int = 20 * SECOND_US
    disorder: float = 0.2
    back_us: int = 1000 * SECOND_US

    @property
    def life(self) -> int:
        """The life of every event, microseconds."""
        return self.active * self.max_gap_us // 2 if self.life_us is None else self.life_us


def make_table(settings: GeneratorSettings, seed: int) -> ElementBatch:
    """Return the events of the logical stream, as inserts in the order of their starts, which rise strictly."""
    n = max(1, round(settings.elements * (1 - settings.stables)))
    rng = np.random.default_rng([seed, 0])
    starts = np.cumsum(rng.integers(1, settings.max_gap_us + 1, n))
    payloads = np.arange(n) * VALUES + rng.integers(0, VALUES, n)
    return ElementBatch(np.full(n, INSERT), starts, payloads, np.zeros(n, np.int64), starts + settings.life)


def present(table: ElementBatch, settings: GeneratorSettings, seed: int, number: int) -> ElementBatch:
    """Return one physical stream of a table."""
    n = len(table.kinds)
    rng = np.random.default_rng([seed, 1 + number])
    delays = np.where(rng.random(n) < settings.disorder, rng.integers(0, settings.back_us + 1, n), 0)
    order = np.argsort(table.starts + delays, kind="stable")
    # a stable stands behind some inserts: as many as their share of all elements asks for
    behind = np.flatnonzero(rng.random(n - 1) < settings.stables / (1 - settings.stables))
    return with_stables(take(table, order), behind)


def presentations(settings: GeneratorSettings, seed: int, n: int) -> list[ElementBatch]:
    """Return n physical streams of one table."""
    table = make_table(settings, seed)
    return [present(table, settings, seed, number) for number in range(n)]


def with_stables(inserts: ElementBatch, behind: np.ndarray) -> ElementBatch:
    """Return inserts with a stable behind each of the places `behind`, and one without end behind the last."""
    n = len(inserts.kinds)
    coming = np.minimum.accumulate(inserts.starts[::-1])[::-1]
    places = np.append(behind + 1, n)
    points = np.append(coming[behind + 1], FOREVER)
    kinds, starts, payloads, olds = (
        np.insert(column, places, fill) for column, fill in zip(inserts, (STABLE, 0, 0, 0))
    )  # fmt: skip
    return ElementBatch(kinds, starts, payloads, olds, np.insert(inserts.ends, places, points))


def take(batch: ElementBatch, at: np.ndarray | slice) -> ElementBatch:
    """Return some elements of a batch, in the order asked for."""
    return ElementBatch(*(column[at] for column in batch))


def chunks(stream: ElementBatch, rows: int) -> list[ElementBatch]:
    """Return a stream cut into pushes."""
    return [take(stream, slice(first, first + rows)) for first in range(0, len(stream.kinds), rows)]


def rounds(streams: Sequence[ElementBatch], rows: int) -> list[tuple[int, ElementBatch]]:
    """Return the pushes of inputs that are equally fast: number of the input, elements."""
    cut = [chunks(stream, rows) for stream in streams]
    return [(number, parts[k]) for k in range(max(map(len, cut))) for number, parts in enumerate(cut) if k < len(parts)]
