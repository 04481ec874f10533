"""Deleting by tag goes in slices, each a record of its own; it is refused before anything is gone; a kill leaves the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from api.base.limits import Limits
from api.core.calls import Call
from api.core.core import Core, recover
from api.core.deletions import SLICE, delete_tagged
from api.core.inbox import BusyError, InboxItem
from eddy import Engine, InUseError
from storage.directory import DataDirectory
from tests.reference.simulated_disk import SimulatedDisk

COLUMNS = {"columns": {"a": "int", "ts": "timestamp"}, "time": "ts"}


class Served:
    """A service without threads: everything that is asked is done, written and told at once, as a group of its own."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.directory = DataDirectory.open(disk)
        holdings, clock = recover(self.directory, lambda clock: Engine(clock=clock))
        self.core = Core(holdings, clock, self.directory, Limits(), lambda news: None, lambda do: do(), lambda: 1_000_000)
        #: the sizes of slices that were recorded
        self.recorded: list[int] = []
        #: called before each slice with its number
        self.before_slice: Callable[[int], None] = lambda k: None

    @property
    def engine(self) -> Engine:
        return self.core.engine

    def do(self, what: Any) -> Any:
        told: list[Any] = []
        group = self.core.work([InboxItem(what, lambda result, error: told.extend((result, error)))])
        self.core.writer.write(group)
        group.release(None)
        self.core.writer.define(group)
        if told[1] is not None:
            raise told[1]
        if isinstance(what, Call) and what.kind == "cancel_many":
            assert len(group.records) == 1, "a record a slice"
            self.recorded.append(len(what.header["queries"]))
        return told[0]

    async def ask(self, call: Call, then: Any = None) -> Any:
        self.before_slice(len(self.recorded))
        return self.do(call)

    async def read(self, look: Callable[[Core], Any]) -> Any:
        return self.do(look)

    def submit(self, name: str, sql: str, *tags: str) -> None:
        self.do(Call("submit", {"definition": {"name": name, "sql": sql, "tags": list(tags)}}))

    def fill(self, n: int) -> None:
        """A stream, so many queries with the tag "t", and one without."""
        self.do(Call("create_stream", {"name": "s", "definition": COLUMNS}))
        texts = [{"name": f"t{k}", "sql": f"SELECT a FROM s WHERE a > {k}", "tags": ["t"]} for k in range(n)]
        self.do(Call("submit_many", {"definitions": [*texts, {"name": "stays", "sql": "SELECT a FROM s"}], "partial": False}))

    def delete(self, tag: str = "t") -> int:
        return asyncio.run(delete_tagged(self, tag))  # type: ignore[arg-type]

    def names(self) -> list[str]:
        return list(self.engine.queries)


@pytest.fixture
def served() -> Served:
    return Served(SimulatedDisk())


def test_all_with_the_tag_go_in_slices_of_bounded_size_with_a_record_each(served: Served) -> None:
    n = 2 * SLICE + 40
    served.fill(n)
    assert served.delete() == n
    assert served.recorded == [SLICE, SLICE, 40]
    assert served.names() == ["stays"] and list(served.core.holdings.definitions) == ["s", "stays"]
    assert [one.name for one in served.directory.catalog.definitions()] == ["s", "stays"]
    assert served.delete() == 0 and len(served.recorded) == 3, "what changes nothing is not recorded"


def test_readers_go_before_what_they_read_across_slices(served: Served) -> None:
    served.do(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    served.submit("low", "SELECT a FROM s [RANGE 1 MINUTE]", "t")
    for k in range(2 * SLICE):
        served.submit(f"top{k}", "SELECT COUNT(*) AS n FROM low" if k % 16 == 1 else "SELECT a FROM s [RANGE 1 SECOND]", "t")
    # the oldest reads the youngest: its text was replaced
    served.submit("young", "SELECT a FROM s [RANGE 2 MINUTES]", "t")
    served.do(Call("put_query", {"name": "top0", "definition": {"sql": "SELECT a FROM young", "tags": ["t"]}}))
    assert served.delete() == 2 * SLICE + 2 and served.names() == []
    served.engine.check()


def test_it_is_refused_before_anything_has_gone_if_somebody_else_reads_one_of_them(served: Served) -> None:
    served.fill(SLICE + 10)
    served.submit("low", "SELECT a FROM s [RANGE 1 MINUTE]", "t")
    served.submit("outside", "SELECT COUNT(*) AS n FROM low")
    before = served.names()
    with pytest.raises(InUseError, match='query "low" has the tag and is read by query "outside"'):
        served.delete()
    assert served.names() == before and served.recorded == []


@pytest.mark.parametrize("slices", [0, 1, 2])
def test_after_a_kill_between_slices_what_was_recorded_is_gone_and_the_rest_is_there(served: Served, slices: int) -> None:
    served.fill(2 * SLICE + 40)

    class Killed(Exception):
        pass

    def kill(k: int) -> None:
        if k == slices:
            raise Killed

    served.before_slice = kill
    with pytest.raises(Killed):
        served.delete()
    left = served.names()
    assert len(left) == 2 * SLICE + 41 - slices * SLICE
    for disk in (served.disk.state().after_kill(), served.disk.state().after_power_loss(slices)):
        again = Served(disk)
        assert again.names() == left
        again.engine.check()
        assert {one.name for one in again.directory.catalog.definitions()} == {"s", *left}
        assert again.delete() == len(left) - 1 and again.names() == ["stays"]


def test_queries_that_come_with_the_tag_meanwhile_stay_and_those_that_went_are_passed_over(served: Served) -> None:
    served.fill(2 * SLICE)

    def meanwhile(k: int) -> None:
        if k == 1:
            served.submit("late", "SELECT a FROM s", "t")
            served.do(Call("cancel", {"query": "t0"}))
            # another one under the name of one that is gone
            served.submit(f"t{2 * SLICE - 1}", "SELECT a FROM s", "t")

    served.before_slice = meanwhile
    assert served.delete() == 2 * SLICE - 1
    assert served.names() == ["stays", "late", f"t{2 * SLICE - 1}"]


def test_one_that_has_come_to_be_read_meanwhile_ends_it_and_the_answer_says_how_far_it_came(served: Served) -> None:
    served.fill(2 * SLICE)

    def meanwhile(k: int) -> None:
        if k == 1:
            served.submit("reader", "SELECT a FROM t0")

    served.before_slice = meanwhile
    with pytest.raises(InUseError, match='query "t0" is read by query "reader"') as error:
        served.delete()
    assert error.value.detail == f"{SLICE} of {2 * SLICE} queries are cancelled, the others are not"
    assert len(served.names()) == SLICE + 2
    served.engine.check()


def test_once_it_has_begun_it_waits_for_room_instead_of_stopping_half_way(served: Served) -> None:
    served.fill(2 * SLICE)
    refused = 0

    def busy(k: int) -> None:
        nonlocal refused
        if k == 1 and refused < 3:
            refused += 1
            raise BusyError("full", 0.0)

    served.before_slice = busy
    assert served.delete() == 2 * SLICE and refused == 3


def test_where_there_is_no_room_at_first_it_is_refused_at_once(served: Served) -> None:
    served.fill(10)

    def busy(k: int) -> None:
        raise BusyError("full", 0.0)

    served.before_slice = busy
    with pytest.raises(BusyError):
        served.delete()
    assert len(served.names()) == 11
