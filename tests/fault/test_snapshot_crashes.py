"""Snapshots after a crash at any moment: the newest acknowledged one or a later one, whole, and never a mixture."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from storage.guarded_disk import GuardedDisk
from storage.snapshots import Snapshot, Snapshots
from tests.reference.crashes import ForgetfulDisk, Lost, Timeline, Trial, first_loss, sweep
from tests.reference.seeds import kept_seeds, seeds
from tests.reference.simulated_disk import SimulatedDisk

Parts = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """Written snapshots by number, ascending; those from `must` on have returned, the last one perhaps not."""

    written: tuple[tuple[int, Parts], ...] = ()
    must: int = 0


class SnapshotTrial(Trial[Expected]):
    n_steps = 5

    def run(self, disk: SimulatedDisk) -> Timeline[Expected]:
        timeline = Timeline(Expected())
        snapshots = Snapshots(GuardedDisk(self.wrap(disk)))
        self._work(disk, snapshots, timeline, random.Random(self.seed), self.n_steps)
        return timeline

    def recover(self, disk: SimulatedDisk, expected: Expected) -> Timeline[Expected]:
        snapshots = Snapshots(GuardedDisk(self.wrap(disk)))
        found = snapshots.newest()
        number = 0 if found is None else found.number
        if number < expected.must:
            raise Lost(f"snapshot {expected.must} was acknowledged, {number} is there")
        if found is not None and found not in [Snapshot(n, [bytearray(part) for part in parts]) for n, parts in expected.written]:
            raise Lost(f"snapshot {number} is not as it was written")
        if snapshots.notes:
            # bytes are synced before they get a name: a crash alone damages nothing
            raise Lost(snapshots.notes[0])
        timeline = Timeline(expected)
        kept = tuple(one for one in expected.written if one[0] <= number)
        timeline.note(disk, Expected(kept, number))
        self._work(disk, snapshots, timeline, random.Random(self.seed + 1), 1)
        return timeline

    def _work(
        self, disk: SimulatedDisk, snapshots: Snapshots, timeline: Timeline[Expected], chance: random.Random, n_steps: int
    ) -> None:
        for _ in range(n_steps):
            expected = timeline.last
            number = expected.must + chance.randrange(1, 10)
            parts = tuple(chance.randbytes(chance.choice((0, 3, 700, 3000))) for _ in range(chance.randrange(1, 4)))
            expected = replace(expected, written=(*expected.written, (number, parts)))
            timeline.note(disk, expected)
            snapshots.write(number, parts)
            timeline.note(disk, replace(expected, must=number))


@pytest.mark.parametrize(("kept", "n_steps"), kept_seeds("fault", "snapshots"))
def test_a_seed_that_failed_once_holds(kept: int, n_steps: int) -> None:
    assert sweep(SnapshotTrial(kept, n_steps=n_steps), n_losses=2, again_every=1) > 0


@pytest.mark.parametrize("seed", range(100, 104))
def test_the_newest_acknowledged_snapshot_survives_a_crash_at_any_operation(seed: int) -> None:
    assert sweep(SnapshotTrial(seed), n_losses=12) > 200


@pytest.mark.parametrize("seed", range(200, 202))
def test_it_survives_a_crash_of_the_recovery_as_well(seed: int) -> None:
    assert sweep(SnapshotTrial(seed), n_losses=6, again_every=3) > 500


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1000, 1020), 6))
def test_one_of_many_seeds_holds(seed: int) -> None:
    assert sweep(SnapshotTrial(seed), n_losses=50, again_every=20) > 1500


FORGETFUL = {
    "no sync before the rename": ["sync snapshots/new"],
    "no sync of the directory": ["sync_directory snapshots"],
    "no sync of the directory's own name": ["sync_directory "],
}


@pytest.mark.parametrize("skipped", FORGETFUL.values(), ids=FORGETFUL.keys())
def test_a_writer_that_forgets_one_thing_is_caught(skipped: list[str]) -> None:
    assert first_loss(
        lambda seed: SnapshotTrial(seed, lambda disk: ForgetfulDisk(disk, skipped)), n_seeds=20, n_losses=10, again_every=5
    )


def test_a_writer_that_removes_the_old_before_the_new_is_durable_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Snapshots.write

    def write(self: Snapshots, number: int, parts: Parts) -> None:
        for old in self._numbers():
            self._disk.remove(f"snapshots/{old:020d}.snapshot")
        self._disk.sync_directory("snapshots")
        real(self, number, parts)

    monkeypatch.setattr(Snapshots, "write", write)
    assert "was acknowledged, 0 is there" in first_loss(SnapshotTrial, n_seeds=5, n_losses=5)


def test_the_same_search_finds_nothing_in_snapshots_themselves() -> None:
    assert first_loss(SnapshotTrial, n_seeds=1, n_losses=10, again_every=5) == ""
