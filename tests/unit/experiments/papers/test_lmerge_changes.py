"""Signed changes as elements: two change streams of one answer make one table."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from experiments.papers.lmerge import PhysicalElement, adjust, batch_of, elements_of, insert
from experiments.papers.lmerge.changes import ChangeReader, SignedChanges, changes_of
from lineage.elements import FOREVER
from lmerge.streams.table import find_fault, reconstitute
from tests.reference.comparison import same
from tests.reference.presentations import present, random_table
from tests.reference.seeds import seeds

A, B = 1, 2
Change = tuple[int, int, int]


def changes(rows: list[Change]) -> SignedChanges:
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return SignedChanges(*(np.ascontiguousarray(columns[:, k]) for k in range(3)))


def read(*rows: Change) -> list[PhysicalElement]:
    return list(elements_of(ChangeReader().read(changes(list(rows)))))


def test_of_equal_rows_the_oldest_ends_first() -> None:
    assert read((1, 1, A), (1, 3, A), (-1, 5, A))[-1] == adjust(A, 1, FOREVER, 5)


def test_a_row_that_comes_at_the_instant_at_which_an_equal_one_ended_opens_it_again() -> None:
    assert read((1, 1, A), (-1, 5, A), (1, 5, A)) == [insert(A, 1, FOREVER), adjust(A, 1, FOREVER, 5), adjust(A, 1, 5, FOREVER)]


def test_of_several_that_ended_together_the_youngest_opens_again() -> None:
    elements = read((1, 1, A), (1, 3, A), (-1, 5, A), (-1, 5, A), (1, 5, A))
    assert reconstitute([batch_of(elements)]).events() == {(A, 1, 5): 1, (A, 3, FOREVER): 1}


def test_a_row_that_comes_later_than_an_equal_one_ended_is_another_event() -> None:
    assert read((1, 1, A), (-1, 5, A), (1, 6, A))[-1] == insert(A, 6, FOREVER)


def test_a_row_that_ends_where_it_began_was_never_there() -> None:
    assert reconstitute([batch_of(read((1, 1, A), (1, 4, A), (-1, 4, A), (1, 4, B), (-1, 4, B)))]).events() == {
        (A, 1, FOREVER): 1
    }


def test_a_broken_stream_of_changes_is_found() -> None:
    with pytest.raises(AssertionError, match="ends at 4 that is not there"):
        read((1, 1, A), (-1, 4, B))
    with pytest.raises(AssertionError, match="comes after one at 3"):
        read((1, 3, A), (1, 2, B))


def test_no_changes_are_no_elements() -> None:
    assert read() == []
    assert len(changes_of(reconstitute([])).signs) == 0


def snapshots(rows: list[Change]) -> dict[int, Counter[int]]:
    """The bag of payloads after each instant."""
    bags, bag = {}, Counter[int]()
    for sign, time, payload in rows:
        bag[payload] += sign
        bags[time] = +bag
    return bags


def random_changes(rng: Random) -> list[Change]:
    """Changes of few payloads that often meet at one instant."""
    rows: list[Change] = []
    open_: Counter[int] = Counter()
    for time in range(rng.randrange(1, 15)):
        for _ in range(rng.randrange(4)):
            payload = rng.randrange(2)
            sign = -1 if open_[payload] and rng.random() < 0.5 else 1
            open_[payload] += sign
            rows.append((sign, time, payload))
    return rows


def netted(rows: list[Change], rng: Random) -> list[Change]:
    """The same with the changes of each instant netted, or in another order."""
    out: list[Change] = []
    for time in sorted({row[1] for row in rows}):
        now = [row for row in rows if row[1] == time]
        if rng.random() < 0.5:
            net = Counter[int]()
            for sign, _, payload in now:
                net[payload] += sign
            now = [(1 if n > 0 else -1, time, payload) for payload, n in net.items() for _ in range(abs(n))]
        else:
            now.sort(key=lambda row: row[0])
            now = now if all(n >= 0 for n in _lows(out + now).values()) else [row for row in rows if row[1] == time]
        out += now
    return out


def _lows(rows: list[Change]) -> dict[int, int]:
    """The smallest number of open rows of each payload that there ever is."""
    bag, low = Counter[int](), Counter[int]()
    for sign, _, payload in rows:
        bag[payload] += sign
        low[payload] = min(low[payload], bag[payload])
    return low


@pytest.mark.parametrize("seed", seeds(range(600), 60))
def test_change_streams_that_agree_after_every_instant_make_one_table(seed: int) -> None:
    rng = Random(seed)
    rows = random_changes(rng)
    other = netted(rows, rng)
    reader, pieces = ChangeReader(), []
    for k in range(0, len(rows), 3):
        pieces.append(reader.read(changes(rows[k : k + 3])))
    whole = ChangeReader().read(changes(other))
    assert find_fault(pieces) is None
    table = reconstitute(pieces)
    same("table", table.events(), reconstitute([whole]).events())
    back = changes_of(table)
    changed = list(zip(back.signs.tolist(), back.times.tolist(), back.payloads.tolist()))
    bags = snapshots(rows)
    for time, bag in snapshots(changed).items():
        same(f"rows at {time}", bag, bags[time])
    same("table of the changes of the table", reconstitute([ChangeReader().read(back)]).events(), table.events())


@pytest.mark.parametrize("seed", seeds(range(300), 20))
def test_the_changes_of_a_table_show_its_rows_at_every_instant(seed: int) -> None:
    rng = Random(seed)
    table = reconstitute([batch_of(present(rng, random_table(rng, 20, key=False), key=False))])
    back = changes_of(table)
    rows = list(zip(back.signs.tolist(), back.times.tolist(), back.payloads.tolist()))
    for time, bag in snapshots(rows).items():
        alive = Counter(payload for payload, start, end in table.events().elements() if start <= time < end)
        same(f"rows at {time}", bag, alive)
