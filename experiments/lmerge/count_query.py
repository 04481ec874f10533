"""The sub-query that makes adjusts of disorder (L VI-B): a count, and a lifetime made of it.

    SELECT integer, COUNT(*) of every tumbling window: an event that begins with the window and lives longer the larger the count

A window is answered as soon as an element of a later window comes: an insert for each integer that was seen. An element that
comes later still changes its answer: an adjust to a later end, or an insert if it is the first of its integer. Without disorder
nothing comes later, and there are no adjusts. A stable says the beginning of the first window that is not over at the input's
stable.

An answer carries its integer's 1,000-byte string: the payload is one of 401, and payload and start are a key.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.lmerge.generator import SECOND_US, VALUES, take
from lineage.elements import FOREVER
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch


class CountQuery(NamedTuple):
    """The width of its windows, and how long an answer lives: `base_us`, and `step_us` for each element counted."""

    width_us: int = 10_000 * SECOND_US
    base_us: int = 270_000 * SECOND_US
    step_us: int = 1000 * SECOND_US

    def answer(self, stream: ElementBatch) -> ElementBatch:
        """Return the elements that the query makes of a stream of inserts and stables."""
        return self.placed(stream)[1]

    def placed(self, stream: ElementBatch) -> tuple[np.ndarray, ElementBatch]:
        """Return the same, and for each the place of the input's element that made it come."""
        at, said = np.flatnonzero(stream.kinds == INSERT), np.flatnonzero(stream.kinds == STABLE)
        windows, values = stream.starts[at] // self.width_us, stream.payloads[at] % VALUES
        # a window is over with the first element of a later one, or with the stable that says so
        over = np.minimum(
            _place_after(at, np.maximum.accumulate(windows), windows),
            _place_after(said, stream.ends[said] // self.width_us, windows),
        )
        late = at > over
        ranks = _ranks(windows * VALUES + values)
        made = [
            self._answers(windows[~late], values[~late], over[~late]),
            self._changes(at[late], windows[late], values[late], ranks[late]),
            self._stables(stream),
        ]
        found = ElementBatch(*(np.concatenate(columns) for columns in zip(*(batch for _, batch in made))))
        # where an element ends windows and changes an older one, the windows come first, in order of window and integer
        places = np.concatenate([place for place, _ in made])
        part = np.repeat([0, 1, 2], [len(place) for place, _ in made])
        order = np.lexsort((found.payloads, found.starts, part, places))
        return places[order], take(found, order)

    def _answers(self, windows: np.ndarray, values: np.ndarray, over: np.ndarray) -> tuple[np.ndarray, ElementBatch]:
        """The inserts of windows that are over, and where in the input each comes."""
        _, first, counts = np.unique(windows * VALUES + values, return_index=True, return_counts=True)
        olds = np.zeros(len(first), np.int64)
        return over[first], self._elements(INSERT, windows[first] * self.width_us, values[first], olds, counts)

    def _changes(
        self, places: np.ndarray, windows: np.ndarray, values: np.ndarray, ranks: np.ndarray
    ) -> tuple[np.ndarray, ElementBatch]:
        """What late elements do."""
        starts = windows * self.width_us
        olds = np.where(ranks == 0, 0, starts + self.base_us + self.step_us * ranks)
        return places, self._elements(np.where(ranks == 0, INSERT, ADJUST), starts, values, olds, ranks + 1)

    def _elements(
        self, kinds: np.ndarray | int, starts: np.ndarray, values: np.ndarray, olds: np.ndarray, counts: np.ndarray
    ) -> ElementBatch:
        kinds = np.broadcast_to(np.asarray(kinds, np.int64), starts.shape)
        return ElementBatch(kinds, starts, values, olds, starts + self.base_us + self.step_us * counts)

    def _stables(self, stream: ElementBatch) -> tuple[np.ndarray, ElementBatch]:
        """The stables, where they rise."""
        places = np.flatnonzero(stream.kinds == STABLE)
        points = stream.ends[places]
        reached = np.where(points == FOREVER, FOREVER, points // self.width_us * self.width_us)
        rises = np.diff(reached, prepend=0) > 0
        places, reached = places[rises], reached[rises]
        zeros = np.zeros(len(places), np.int64)
        return places, ElementBatch(np.full(len(places), STABLE), zeros, zeros, zeros, reached)


def _place_after(places: np.ndarray, reached: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return for each window the first place that has reached a later one; beyond all places if none has."""
    found: np.ndarray = np.append(places, np.iinfo(np.int64).max)[np.searchsorted(reached, windows, side="right")]
    return found


def _ranks(cells: np.ndarray) -> np.ndarray:
    """Return how many elements of its cell came before each.

    >>> _ranks(np.array([7, 3, 7, 7, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(cells, kind="stable")
    first = np.flatnonzero(np.diff(cells[order], prepend=-1))
    ranks = np.empty(len(cells), np.int64)
    ranks[order] = np.arange(len(cells)) - np.repeat(first, np.diff(np.append(first, len(cells))))
    return ranks
