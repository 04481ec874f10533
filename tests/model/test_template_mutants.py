"""Would the random scripts notice broken templates? Each mutant breaks one rule by which queries sit in one run of operators.

`check` is left out: answers, changes with their times, commit parts, results and errors have to tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddy.base.seat_log import SeatLog
from eddy.matching.seated_rows import SeatedRows
from eddy.operators.seat_rows import SeatChanges
from eddy.operators.stage import OperatorStage
from eddy.operators.template import Template
from filters.values.vector import Array, Vector
from tests.model.test_templates import FAMILIES, Pair
from tests.reference.breaking import Breaks, leave_it_to_the_answers
from windows.operators.seats import Seats
from windows.operators.to_stream import AnswerStream

pytestmark = pytest.mark.slow

#: Scripts a mutant may survive before the test fails, and their length.
N_SEEDS = 60
N_STEPS = 45

#: what is broken -> a function that breaks it
MUTANTS = breaks = Breaks()


@breaks("births are ignored")
def _unborn(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = SeatedRows._listed

    def listed(self: SeatedRows, rows_of: Array, n_rows: int, firsts: Array) -> Any:
        return exact(self, rows_of, n_rows, np.zeros_like(firsts))

    monkeypatch.setattr(SeatedRows, "_listed", listed)


@breaks("a seat is given again before its rows are swept")
def _unswept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Template, "sweep", lambda self: self.seats.free_dead())


@breaks("one operator is not swept")
def _half_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OperatorStage, "sweep", lambda self, dead, now: None)


@breaks("rows of queries that are gone are shown")
def _shown_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Seats.leave

    def leave(self: Seats, seat: int) -> None:
        exact(self, seat)
        self.dead[seat] = False

    monkeypatch.setattr(Seats, "leave", leave)


@breaks("constants are those of the seat before")
def _shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Seats.parameter

    def parameter(self: Seats, k: int, seats: Array) -> Vector:
        return exact(self, k, np.maximum(seats - 1, 0))

    monkeypatch.setattr(Seats, "parameter", parameter)


@breaks("what cannot be computed counts at the first seat")
def _miscounted(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Seats.fail
    monkeypatch.setattr(Seats, "fail", lambda self, seats, failures: exact(self, np.zeros_like(seats), failures))


@breaks("a query's log has the rows of its neighbour")
def _neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = SeatLog.at
    monkeypatch.setattr(SeatLog, "at", lambda self, seq, seat: exact(self, seq, seat ^ 1))


@breaks("changes of a query stand in another order")
def _unordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SeatChanges, "_order", property(lambda self: np.arange(len(self._seats))))


@breaks("an answer is streamed when any query's changed")
def _together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnswerStream, "_seat_of", lambda self, codes: np.zeros(len(codes), np.int64))


def noticed(seed: int) -> bool:
    """Whether a broken engine differs from one whose queries are alone, in a script."""
    pair = Pair(seed, [list(FAMILIES)[seed % len(FAMILIES)]])
    try:
        for _ in range(N_STEPS):
            pair.step()
            pair.compare()
        pair.compare_changes()
    except Exception:
        # whatever a broken engine raises, it is noticed
        return True
    return False


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_template_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_it_to_the_answers(monkeypatch)
    MUTANTS[name](monkeypatch)
    assert any(noticed(seed) for seed in range(N_SEEDS)), f"nobody noticed: {name}"
