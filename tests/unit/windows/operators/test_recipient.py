"""The recipient: the answer by id, and net changes of commits and of instants."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.values.vector import Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from tests.unit.windows.histories import Bags, Value, commits, random_history, rows_of
from tests.unit.windows.operators.test_set_operation import EXPIRIES
from windows.delta import Delta, Plus, no_minus
from windows.operators.recipient import NEWEST, Recipient, StreamRecipient
from windows.state.rows import LiveRows

ensure()

Event = tuple[int, int, Value]


def netted(events: list[Event]) -> list[Event]:
    """What remains of a group: of each value the latest + or the latest -, as many as do not cancel."""
    by_value: dict[Value, dict[int, list[int]]] = defaultdict(lambda: {1: [], -1: []})
    for time, sign, value in events:
        by_value[value][sign].append(time)
    remaining = []
    for value, times in by_value.items():
        n = len(times[1]) - len(times[-1])
        sign = 1 if n > 0 else -1
        remaining += [(time, sign, value) for time in sorted(times[sign])[len(times[sign]) - abs(n) :]]
    return remaining


def seated(delta: Delta) -> Delta:
    """The same rows on three seats."""
    plus = delta.plus
    columns = [Vector(Type.INT, plus.ids % 3), *plus.columns]
    return Delta(Plus(plus.ids, plus.times, plus.ranks, plus.ends, columns), delta.minus)


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("emit", ["commit", "event"])
def test_changes_net_by_value_and_the_latest_remain(emit: str, expiry: str) -> None:
    buffer, shape = EXPIRIES[expiry]
    for seed in range(10):
        recipient = Recipient([Type.INT, Type.INT], LiveRows(buffer()), emit=emit)
        edge = Bags("sends_ends" in shape)
        for (unseated,), upto in commits(random_history(seed, **shape), seed):
            delta = seated(unseated)
            seen = len(edge.events)
            edge.read(delta, upto)
            events = [(time, sign, value) for time, _, sign, value in edge.events[seen:]]
            changes = recipient.process(delta, upto)
            recipient.check()
            rows = rows_of(changes.columns, len(changes))
            found = list(zip(changes.times.tolist(), changes.signs.tolist(), rows, strict=True))
            groups = [events] if emit == "commit" else [[e for e in events if e[0] == t] for t in sorted({e[0] for e in events})]
            for group in groups:
                expected = netted(group)
                part, found = found[: len(expected)], found[len(expected) :]
                assert Counter(part) == Counter(expected)
                assert [sign for _, sign, _ in part] == sorted(sign for _, sign, _ in part), "- before +"
            assert not found
            answer: dict[int, Value] = {}
            for seat in range(3):
                ids, columns = recipient.answer(seat)
                assert ids.tolist() == sorted(ids.tolist())
                answer |= dict(zip(ids.tolist(), rows_of(columns, len(ids)), strict=True))
            assert answer == {id: value for id, (value, _) in edge.live.items()} and len(recipient) == len(answer)
        assert recipient.bytes == Recipient([Type.INT, Type.INT], LiveRows(buffer()), emit=emit).bytes


def test_a_stream_shows_every_row_and_its_newest_are_its_answer() -> None:
    recipient = StreamRecipient([Type.INT, Type.INT])
    total = 0
    for n in (0, 3, 400, 700, 2500, 1):
        ids = np.arange(total, total + n)
        ends = np.full(n, FOREVER, np.int64)
        plus = Plus(ids, ids // 10, np.zeros(n, np.int64), ends, [Vector.constant(Type.INT, 7, n), Vector(Type.INT, ids * 2)])
        changes = recipient.process(Delta(plus, no_minus()), total + n)
        total += n
        assert changes.signs.tolist() == [1] * n and changes.columns[1].values.tolist() == (ids * 2).tolist()
        recipient.check()
        found, columns = recipient.answer(7)
        assert found.tolist() == list(range(max(0, total - NEWEST), total)) and columns[1].values.tolist() == (found * 2).tolist()
