"""Lives of rows: when a row is alive, and when its changes take effect."""

from __future__ import annotations

import numpy as np
import pytest

from lineage.elements import Elements

#: rows that begin at 5, 5 and 9 and end at 6, 9 and 9: the last one has no life
LIVES = Elements(np.array([5, 5, 9]), np.array([6, 9, 9]))


@pytest.mark.parametrize(
    ("clock", "alive"),
    [
        (4, [False, False, False]),
        (5, [True, True, False]),
        (6, [False, True, False]),
        (8, [False, True, False]),
        (9, [False] * 3),
    ],
)
def test_a_row_is_alive_from_its_start_up_to_its_end_exclusive(clock: int, alive: list[bool]) -> None:
    assert LIVES.alive_at(clock).tolist() == alive


def test_a_plus_takes_effect_at_the_start_and_a_minus_at_the_end() -> None:
    assert LIVES.times(1).tolist() == [5, 5, 9] and LIVES.times(-1).tolist() == [6, 9, 9]


def test_the_changes_up_to_a_clock_sum_to_what_is_alive() -> None:
    rng = np.random.default_rng(3)
    starts = rng.integers(0, 50, 200)
    lives = Elements(starts, starts + rng.integers(0, 30, 200))
    for clock in range(-1, 90):
        plus, minus = (int((lives.times(sign) <= clock).sum()) for sign in (1, -1))
        assert plus - minus == lives.alive_at(clock).sum()
