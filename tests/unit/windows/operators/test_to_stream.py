"""ISTREAM, DSTREAM and RSTREAM against the bags after each event, however the events are cut into commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from eddy.base.compile import ensure
from lineage.schema import Type
from tests.reference.deltas import check_delta
from tests.unit.windows.histories import Bags, History, Value, commits, random_history, rows_of
from tests.unit.windows.operators.test_set_operation import EXPIRIES
from windows.delta import SCHEDULED
from windows.operators.operator import Operator
from windows.operators.to_stream import AFTER_ALL, AnswerStream, ChangeStream
from windows.state.rows import LiveRows

ensure()

#: (time, rank, value) -> copies
Stream = Counter[tuple[int, int, Value]]
Bag = Counter[Value]


def run(operator: Operator, history: History, cut: int | None) -> tuple[Bags, Stream, int]:
    """What the operator gave, what it was given, and the last clock."""
    edge, found = Bags(history.sends_ends), Counter[tuple[int, int, Value]]()
    last = -(2**63)
    ids: list[int] = []
    for (delta,), upto in commits(history, cut):
        out = operator.process([delta], upto)
        check_delta(out, upto)
        operator.check()
        assert not len(out.minus) and len(operator.answer([], upto)) == 0
        assert not len(out.plus) or out.plus.times[0] >= last, "a stream's times never go back"
        last = upto
        ids += out.plus.ids.tolist()
        rows = rows_of(out.plus.columns, len(out.plus))
        found.update(zip(out.plus.times.tolist(), out.plus.ranks.tolist(), rows, strict=True))
        edge.read(delta, upto)
    assert ids == list(range(len(ids))), "rows of a stream are numbered as they come"
    return edge, found, last


def changes(states: list[tuple[tuple[int, int], Bag]], sign: int) -> Stream:
    found: Stream = Counter()
    for (_, before), (key, after) in zip(states, states[1:]):
        for value, n in (after - before if sign > 0 else before - after).items():
            found[(*key, value)] += n
    return found


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_row_for_each_net_change_of_each_event(sign: int, expiry: str) -> None:
    buffer, shape = EXPIRIES[expiry]
    for seed in range(10):
        for cut in (None, seed):
            operator = ChangeStream(sign, [Type.INT], LiveRows(buffer()))
            edge, found, _ = run(operator, random_history(seed, **shape), cut)
            assert found == changes(edge.states, sign)
            assert operator.bytes == ChangeStream(sign, [Type.INT], LiveRows(buffer())).bytes


def by_instant(states: list[tuple[tuple[int, int], Bag]]) -> list[tuple[int, Bag]]:
    """The bag after all events of each instant."""
    last: dict[int, Bag] = {}
    for (time, _), bag in states:
        last[time] = bag
    return list(last.items())


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_the_whole_answer_at_each_instant_at_which_it_changed(expiry: str) -> None:
    buffer, shape = EXPIRIES[expiry]
    for seed in range(10):
        for cut in (None, seed):
            operator = AnswerStream([Type.INT], LiveRows(buffer()))
            edge, found, clock = run(operator, random_history(seed, **shape), cut)
            expected: Stream = Counter()
            instants = by_instant(edge.states)
            for (_, before), (time, after) in zip(instants, instants[1:]):
                if +before != +after and time < clock:
                    expected.update({(time, AFTER_ALL, value): n for value, n in after.items()})
            assert found == expected
            assert operator.bytes <= AnswerStream([Type.INT], LiveRows(buffer())).bytes


@pytest.mark.parametrize("slide", [1, 7, 100])
def test_the_whole_answer_at_each_boundary_of_a_slide(slide: int) -> None:
    for seed in range(10):
        for cut in (None, seed):
            edge, found, clock = run(
                AnswerStream([Type.INT], LiveRows(EXPIRIES["calendar"][0]()), slide), random_history(seed), cut
            )
            expected: Stream = Counter()
            instants = by_instant(edge.states)[1:]
            for (time, bag), (until, _) in zip(instants, [*instants[1:], (clock, Counter())]):
                for boundary in range(-(-time // slide) * slide, until, slide):
                    expected.update({(boundary, AFTER_ALL, value): n for value, n in bag.items()})
            assert found == expected


def test_a_value_handed_over_within_an_event_is_no_change() -> None:
    """One row of a value ends and another begins at one event; a third value really changes."""
    from tests.unit.windows.histories import Change
    from windows.state.due import Calendar

    arrivals = [
        (0, [Change(begun=[(1, 10, (7,))])]),
        (5, [Change(ended=[1], begun=[(2, 10, (7,)), (3, 10, (8,))])]),
        (10, [Change(begun=[(1, 20, (7,))])]),
    ]
    history = History([(Type.INT,)], arrivals)
    make: Callable[[int], ChangeStream] = lambda sign: ChangeStream(sign, [Type.INT], LiveRows(Calendar()))  # noqa: E731
    _, begun, _ = run(make(1), history, None)
    _, ended, _ = run(make(-1), history, None)
    assert begun == Counter({(0, 0, (7,)): 1, (5, 1, (8,)): 1, (10, 2, (7,)): 1})
    assert ended == Counter({(10, SCHEDULED, (7,)): 1, (10, SCHEDULED, (8,)): 1, (20, SCHEDULED, (7,)): 1})
