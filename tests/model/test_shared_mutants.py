"""Would the random scripts notice broken sharing? Each mutant breaks one rule by which queries have one set of sums.

`check` is left out: answers, changes with their times and commit parts have to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import eddy.operators.shared.shared_rows
import windows.shared.pair_sums
from eddy.operators.shared.shared_members import Members, Readers
from eddy.operators.shared.shared_rows import MemberRows
from eddy.operators.shared.shared_window import WindowRange
from tests.model.test_shared_groups import Pair
from tests.reference.breaking import Breaks, leave_it_to_the_answers
from windows.shared.aggregates import SharedAggregates
from windows.shared.touching import Touches

pytestmark = pytest.mark.slow

#: Scripts a mutant may survive before the test fails, and their length.
N_SEEDS = 40
N_STEPS = 45

#: what is broken -> a function that breaks it
MUTANTS = breaks = Breaks()


@breaks("births of listed members are ignored")
def _listed_unborn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eddy.operators.shared.shared_rows, "count_from_birth", lambda bits, born, positions: None)


@breaks("births of members with an interval are ignored")
def _all_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = SharedAggregates.add

    def settled(self: SharedAggregates, query: int, born: int, watermark: int, *, listed: bool = False) -> None:
        exact(self, query, min(born, watermark), watermark, listed=listed)

    monkeypatch.setattr(SharedAggregates, "add", settled)


@breaks("sums of a number that is used again are those of who had it")
def _inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(self: windows.shared.pair_sums.PairSums, places: np.ndarray) -> None:
        self.unwatch(places)
        self._free.extend(places.tolist())

    monkeypatch.setattr(windows.shared.pair_sums.PairSums, "leave_places", kept)


class ByOrder:
    """Constants by the order of readers."""

    def __init__(self, held: Any, numbers: np.ndarray) -> None:
        self._held, self._numbers = held, numbers

    def take(self, numbers: np.ndarray) -> Any:
        first = int(self._numbers.min(initial=0))
        return self._held.take(
            np.minimum(np.searchsorted(np.sort(self._numbers), numbers) + first, self._held.cells.shape[1] - 1)
        )


@breaks("constants are by the order of readers, not by member")
def _by_order(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Readers.__init__

    def misled(self: Readers, members: Members, readers_at: np.ndarray) -> None:
        exact(self, members, readers_at)
        self.faces = [one._replace(parameters=ByOrder(one.parameters, self.numbers)) for one in self.faces]  # type: ignore[arg-type]

    monkeypatch.setattr(Readers, "__init__", misled)


@breaks("a value of DISTINCT has the time of its last touch")
def _touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Touches, "flipped", lambda self, queries, groups, rows: self.touched(queries, groups))


@breaks("what ends and begins at a boundary are two events")
def _one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Touches.__init__

    def apart(self: Touches, *given: Any) -> None:
        exact(self, *given[:-1], False)  # type: ignore[call-arg]

    monkeypatch.setattr(Touches, "__init__", apart)


@breaks("rows in holes between extents are in the window")
def _no_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WindowRange, "never_in", lambda self, first, last: np.zeros(0, np.int64))


@breaks("a row that lags is in the extent that has been shown")
def _in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_time(self: WindowRange, clock: int, first: int) -> int:
        store = self._source.store
        return max(first, store.first_after(self.boundary(clock) - 1)) if self.slide else store.end

    monkeypatch.setattr(WindowRange, "high", by_time)


@breaks("an extent that no row left or joined is not shown anew")
def _unmoved(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(self: SharedAggregates, ranges: Any) -> Any:
        former = self.shown.take_all()
        return former, self.changes(ranges)

    monkeypatch.setattr(SharedAggregates, "show_again", touched)


@breaks("residuals are not in the bits")
def _intervals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = MemberRows._of_slots

    def unrestricted(self: MemberRows, wanted: np.ndarray, positions: np.ndarray) -> np.ndarray:
        modules = self._source.modules
        held, modules.by_text = modules.by_text, {}
        try:
            return exact(self, wanted, positions)
        finally:
            modules.by_text = held

    monkeypatch.setattr(MemberRows, "_of_slots", unrestricted)


@breaks("the names of columns are those of the first of a face")
def _first_names(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Readers.__init__

    def named(self: Readers, members: Members, readers_at: np.ndarray) -> None:
        exact(self, members, readers_at)
        self.faces = [one._replace(named=[(one.named[0][0], one.first, one.last)]) for one in self.faces]

    monkeypatch.setattr(Readers, "__init__", named)


def play(seeds: Sequence[int]) -> None:
    """Play pairs of engines, half of them with listeners."""
    for seed in seeds:
        pair = Pair(seed)
        if seed % 2:
            pair.listen()
        for _ in range(N_STEPS):
            pair.step()
            pair.compare()
        pair.compare_changes()


@pytest.mark.parametrize("what", MUTANTS)
def test_random_scripts_notice_broken_sharing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[what](monkeypatch)
    leave_it_to_the_answers(monkeypatch)
    try:
        play(range(N_SEEDS))
    except (AssertionError, IndexError, KeyError, ValueError):
        return
    pytest.fail(f"{what}: nobody noticed in {N_SEEDS} seeds")
