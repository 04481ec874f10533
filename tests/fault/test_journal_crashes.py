"""The journal after a crash at any moment: every acknowledged record, in order, bit by bit, and none that was not appended."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lineage.errors import StorageError
from storage.guarded_disk import GuardedDisk
from storage.journal import Journal
from storage.renewal import renew
from tests.reference.crashes import ForgetfulDisk, Lost, Timeline, Trial, first_loss, sweep
from tests.reference.seeds import kept_seeds, seeds
from tests.reference.simulated_disk import SimulatedDisk

#: Small, so that a workload of a few dozen records has many of them.
SEGMENT_BYTES = 700


@dataclass(frozen=True, slots=True)
class Expected:
    """Records 1 to `n_must` have to be there, all of `may` can; those before `dropped` need not."""

    may: tuple[tuple[int, bytes], ...] = ()
    n_must: int = 0
    dropped: int = 1


class JournalTrial(Trial[Expected]):
    n_steps = 30

    def run(self, disk: SimulatedDisk) -> Timeline[Expected]:
        chance = random.Random(self.seed)
        journal = self._open(disk)
        timeline = Timeline(Expected())
        self._work(disk, journal, timeline, chance, self.n_steps)
        return timeline

    def recover(self, disk: SimulatedDisk, expected: Expected) -> Timeline[Expected]:
        journal = self._open(disk)
        found = tuple((record.kind, bytes(record.payload)) for record in journal.read(expected.dropped - 1))
        records = expected.may[: expected.dropped - 1] + found
        if len(records) < expected.n_must:
            raise Lost(f"{expected.n_must} records were acknowledged, {len(records)} are there")
        if records != expected.may[: len(records)]:
            raise Lost("the records are not those that were appended")
        if not journal.last == journal.durable == len(records):
            raise Lost("the numbers do not go on where the records end")
        timeline = Timeline(expected)
        timeline.note(disk, Expected(records, len(records), expected.dropped))
        self._work(disk, journal, timeline, random.Random(self.seed + 1), 4)
        return timeline

    def _open(self, disk: SimulatedDisk) -> Journal:
        return Journal(GuardedDisk(self.wrap(disk)), segment_bytes=SEGMENT_BYTES)

    def _work(
        self, disk: SimulatedDisk, journal: Journal, timeline: Timeline[Expected], chance: random.Random, n_steps: int
    ) -> None:
        """Groups of records, most of one size: only then can a stale one stand exactly where the next is expected."""
        for _ in range(n_steps):
            expected = timeline.last
            step = chance.random()
            if step < 0.6:
                size = 60 if chance.random() < 0.7 else chance.randrange(300)
                record = (chance.randrange(5), chance.randbytes(size))
                timeline.note(disk, replace(expected, may=(*expected.may, record)))
                journal.append(record[0], record[1])
            elif step < 0.95:
                journal.sync()
                timeline.note(disk, replace(expected, n_must=len(expected.may)))
            elif journal.durable:
                dropped = chance.randrange(expected.dropped, journal.durable + 1)
                timeline.note(disk, replace(expected, dropped=dropped))
                journal.drop_before(dropped)


@pytest.mark.parametrize(("kept", "n_steps"), kept_seeds("fault", "journal"))
def test_a_seed_that_failed_once_holds(kept: int, n_steps: int) -> None:
    assert sweep(JournalTrial(kept, n_steps=n_steps), n_losses=2, again_every=1) > 0


@pytest.mark.parametrize("seed", range(100, 106))
def test_acknowledged_records_survive_a_crash_at_any_operation(seed: int) -> None:
    assert sweep(JournalTrial(seed), n_losses=12) > 200


@pytest.mark.parametrize("seed", range(200, 202))
def test_they_survive_a_crash_of_the_recovery_as_well(seed: int) -> None:
    assert sweep(JournalTrial(seed), n_losses=6, again_every=3) > 500


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(1000, 1030), 8))
def test_one_of_many_seeds_holds(seed: int) -> None:
    assert sweep(JournalTrial(seed), n_losses=50, again_every=20) > 2000


#: A journal that forgets one thing, as the disk sees it.
FORGETFUL = {
    "no sync": ["sync .journal"],
    "no sync of the directory": ["sync_directory journal"],
    "no sync of the directory's own name": ["sync_directory "],
    "no sync of the copy that opening makes": ["sync journal/new"],
}


@pytest.mark.parametrize("skipped", FORGETFUL.values(), ids=FORGETFUL.keys())
def test_a_journal_that_forgets_one_thing_is_caught(skipped: list[str]) -> None:
    assert first_loss(
        lambda seed: JournalTrial(seed, lambda disk: ForgetfulDisk(disk, skipped)), n_seeds=20, n_losses=10, again_every=5
    )


def caught() -> str:
    return first_loss(JournalTrial, n_seeds=30, n_losses=10, again_every=5)


def test_a_journal_that_does_not_check_payloads_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.segment.payload_checksum", lambda parts, seed: 0)
    monkeypatch.setattr("storage.journal.payload_checksum", lambda parts, seed: 0)
    assert "not those that were appended" in caught()


def test_a_journal_that_does_not_check_headers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = zlib.crc32

    def only_payloads(data: Any, seed: int = 0) -> int:
        return 0 if len(data) == 32 and bytes(data[:4]) == b"\xedREC" else real(data, seed)

    monkeypatch.setattr("storage.records.zlib.crc32", only_payloads)
    assert caught()


def test_a_journal_that_goes_on_with_what_it_finds_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.journal.renew", lambda disk, path, size: None)
    assert "records were acknowledged" in caught()


def test_a_journal_that_does_not_cut_the_tail_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.journal.renew", lambda disk, path, size: renew(disk, path))
    assert caught()


def test_a_journal_that_writes_on_before_a_segment_is_synced_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old segment is closed unsynced, and taken for synced."""
    real = Journal.append

    def append(self: Journal, kind: int, *parts: Any) -> int:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "sync", lambda journal: None)
            return real(self, kind, *parts)

    monkeypatch.setattr(Journal, "append", append)
    assert caught()


def test_a_journal_that_takes_damage_for_a_torn_tail_is_told_by_the_synced_mark() -> None:
    """Not a crash: a byte of an acknowledged record changes on the disk, with a later group behind it."""
    disk = SimulatedDisk(1)
    journal = Journal(GuardedDisk(disk))
    for _ in range(3):
        journal.append(1, b"x" * 50)
        journal.sync()
    file = disk.open("journal/00000000000000000001.journal")
    file.write(80, [b"y"])
    with pytest.raises(StorageError, match="the journal is damaged"):
        Journal(GuardedDisk(disk))


def test_the_same_search_finds_nothing_in_the_journal_itself() -> None:
    assert first_loss(JournalTrial, n_seeds=1, n_losses=10, again_every=5) == ""


def test_the_same_seed_gives_the_same_operations() -> None:
    runs = []
    for _ in range(2):
        disk = SimulatedDisk(7, recording=True)
        JournalTrial(7).run(disk)
        runs.append([(point.operation, point.path, point.files) for point in disk.points])
    assert runs[0] == runs[1] and len(runs[0]) > 20
