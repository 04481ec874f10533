"""The rows of a live table: signs sum up to how often a row is there."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

from eddy.client.facts import Change
from eddy.client.following import Committed
from eddy.client.live_table import Bag

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def committed(seq: int, *signed: tuple[int, int], snapshot: bool = False) -> Committed:
    return Committed(seq, tuple(Change(seq, NOW, sign, {"a": a}, "q") for sign, a in signed), snapshot, {})


def test_a_row_is_there_as_often_as_its_signs_sum_to() -> None:
    bag = Bag()
    assert bag.apply(committed(1, (1, 7), (1, 7), (1, 8)))
    assert bag.apply(committed(2, (-1, 7), (-1, 8)))
    assert bag.counts == {(7,): 1} and bag.seq == 2


def test_within_a_commit_only_the_sum_counts() -> None:
    bag = Bag()
    assert bag.apply(committed(1, (-1, 7), (1, 7), (1, 9)))
    assert bag.counts == {(9,): 1}


def test_a_row_that_is_there_less_than_never_is_noticed() -> None:
    assert not Bag().apply(committed(1, (-1, 7)))


def test_a_snapshot_takes_the_place_of_everything() -> None:
    bag = Bag()
    bag.apply(committed(1, (1, 7)))
    assert bag.apply(committed(5, (1, 8), snapshot=True)) and bag.counts == {(8,): 1} and bag.seq == 5


def test_changes_can_be_taken_back() -> None:
    dice = random.Random(7)
    bag, states = Bag(), [Counter[tuple[int]]()]
    recorded = []
    for seq in range(1, 50):
        held = list(states[-1].elements())
        signed = [(1, dice.randint(0, 5)) for _ in range(3)] + [(-1, row[0]) for row in dice.sample(held, len(held) // 3)]
        commit = committed(seq, *signed)
        assert bag.apply(commit)
        recorded += commit.changes
        state = Counter(states[-1])
        for sign, a in signed:
            state[(a,)] += sign
        states.append(+state)
    for seq, state in enumerate(states):
        assert bag.before(change for change in recorded if change.seq > seq) == state
