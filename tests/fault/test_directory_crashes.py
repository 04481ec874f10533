"""The data directory after a crash at any moment: journal, snapshots, catalog and discarding, all together."""

from __future__ import annotations

import pytest

from storage.directory import DataDirectory
from tests.reference.crashes import ForgetfulDisk, first_loss, sweep
from tests.reference.directory_trial import DirectoryTrial
from tests.reference.seeds import kept_seeds, seeds
from tests.reference.simulated_disk import SimulatedDisk


@pytest.mark.parametrize(("kept", "n_steps"), kept_seeds("fault", "directory"))
def test_a_seed_that_failed_once_holds(kept: int, n_steps: int) -> None:
    assert sweep(DirectoryTrial(kept, n_steps=n_steps), n_losses=2, again_every=5) > 0


@pytest.mark.parametrize("seed", range(100, 102))
def test_acknowledged_state_survives_a_crash_at_any_operation(seed: int) -> None:
    assert sweep(DirectoryTrial(seed), n_losses=2) > 200


def test_it_survives_a_crash_of_the_recovery_as_well() -> None:
    assert sweep(DirectoryTrial(200, n_steps=8), n_losses=1, again_every=15) > 200


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(1000, 1010), 1))
def test_one_of_many_seeds_holds(seed: int) -> None:
    assert sweep(DirectoryTrial(seed, n_steps=40), n_losses=8, again_every=50) > 1000


def test_the_workload_does_all_that_a_service_does() -> None:
    operations = set()
    for seed in range(100, 110):
        disk = SimulatedDisk(seed, recording=True)
        DirectoryTrial(seed).run(disk)
        operations |= {(point.operation, point.path.rpartition("/")[0]) for point in disk.points}
    assert {("remove", "journal"), ("rename", "snapshots"), ("rename", "journal"), ("sync", ""), ("remove", "")} <= operations


FORGETFUL = {
    "no sync of the journal": ["sync .journal"],
    "no sync of the names of segments": ["sync_directory journal"],
    "no sync of snapshots": ["sync snapshots/new"],
    "no sync of the names of snapshots": ["sync_directory snapshots"],
    "no sync of the catalog's log": ["sync -wal"],
    "no sync of names at the root": ["sync_directory "],
}


@pytest.mark.parametrize("skipped", FORGETFUL.values(), ids=FORGETFUL.keys())
def test_a_directory_that_forgets_one_thing_is_caught(skipped: list[str]) -> None:
    assert first_loss(lambda seed: DirectoryTrial(seed, lambda disk: ForgetfulDisk(disk, skipped)), n_seeds=20, n_losses=2)


def test_a_directory_that_drops_segments_before_the_snapshot_is_durable_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = DataDirectory.save_snapshot

    def save_snapshot(self: DataDirectory, number: int, parts: list[bytes]) -> None:
        self._journal.drop_before(number + 1)
        real(self, number, parts)

    monkeypatch.setattr(DataDirectory, "save_snapshot", save_snapshot)
    assert first_loss(DirectoryTrial, n_seeds=20, n_losses=2)


def test_a_directory_that_forgets_the_floor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discarding removes the files at once and notes nothing."""
    real = DataDirectory.open.__func__  # type: ignore[attr-defined]  # the function under the class method

    def open(cls: type[DataDirectory], disk: SimulatedDisk, *, discard_state: bool, segment_bytes: int) -> DataDirectory:
        if discard_state:
            for folder in ("snapshots", "journal"):
                for name in disk.list(folder):
                    disk.remove(f"{folder}/{name}")
                    disk.sync_directory(folder)
        directory: DataDirectory = real(cls, disk, segment_bytes=segment_bytes)
        return directory

    monkeypatch.setattr(DataDirectory, "open", classmethod(open))
    assert first_loss(DirectoryTrial, n_seeds=20, n_losses=2)


def test_nothing_beyond_two_snapshots_and_their_segments_stays() -> None:
    disk = SimulatedDisk(1)
    directory = DataDirectory.open(disk, segment_bytes=300)
    directory.recover()
    for number in range(1, 101):
        directory.append(1, bytes(60))
        directory.sync()
        if number % 10 == 0:
            directory.save_snapshot(number, [b"state"])
    assert disk.list("snapshots") == [f"{number:020d}.snapshot" for number in (90, 100)]
    assert all(int(name[:20]) > 85 for name in disk.list("journal"))
