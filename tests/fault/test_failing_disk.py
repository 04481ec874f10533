"""A disk on which one operation fails: the error has words, nothing is written after a failed sync, and nothing is lost."""

from __future__ import annotations

import errno
import random
from dataclasses import replace

import pytest

from lineage.errors import StorageError
from storage import DataDirectory
from tests.reference.crashes import Lost, Timeline
from tests.reference.directory_trial import DirectoryTrial, Expected
from tests.reference.simulated_disk import SimulatedDisk

CODES = (errno.EIO, errno.ENOSPC)


class FailingTrial(DirectoryTrial):
    """The service goes on after an error as long as the directory lets it, and then ends."""

    n_steps = 16

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.errors: list[StorageError] = []
        self.stopped = False

    def run(self, disk: SimulatedDisk) -> Timeline[Expected]:
        timeline = Timeline(Expected())
        chance = random.Random(self.seed)
        try:
            directory = self.open(disk)
        except StorageError as error:
            self.errors.append(error)
            return timeline
        self._start(directory)
        for _ in range(self.n_steps):
            try:
                self.work(disk, directory, timeline, chance, 1)
            except StorageError as error:
                self.errors.append(error)
                if directory.stopped is not None:
                    self.stopped = True
                    check_stop(disk, directory)
                    break
                self._look_again(disk, directory, timeline)
        try:
            directory.close()
        except StorageError as error:
            self.errors.append(error)
        return timeline

    def _look_again(self, disk: SimulatedDisk, directory: DataDirectory, timeline: Timeline[Expected]) -> None:
        """A change of the catalog that failed is there or not, and from now on stays so."""
        world = timeline.last.world
        found = world.defined.index(tuple(directory.catalog.definitions()))
        assert found >= world.d_must
        timeline.note(disk, Expected((replace(world, defined=world.defined[: found + 1], d_must=found),)))

    def _reopen(
        self, disk: SimulatedDisk, directory: DataDirectory, timeline: Timeline[Expected], *, discard_state: bool
    ) -> DataDirectory:
        """Failing while opening has its own test."""
        return directory


def check_stop(disk: SimulatedDisk, directory: DataDirectory) -> None:
    """Everything is refused, and the disk is not even asked."""
    n_operations = disk.n_operations
    for call in (
        lambda: directory.append(1, b"after the stop"),
        directory.sync,
        lambda: directory.define(directory.durable),
        lambda: directory.save_snapshot(directory.durable, [b"state"]),
    ):
        with pytest.raises(StorageError, match="storage has stopped after an error") as caught:
            call()
        assert "restart the service" in caught.value.hint
    assert disk.n_operations == n_operations


def operations_of(seed: int) -> list[str]:
    """What the trial does on a disk that works."""
    disk = SimulatedDisk(seed, recording=True)
    FailingTrial(seed).run(disk)
    return [point.operation for point in disk.points]


@pytest.mark.parametrize("code", CODES, ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_operation_fails_what_was_acknowledged_is_there_after_a_restart(seed: int, code: int) -> None:
    operations = operations_of(seed)
    n_errors = 0
    for number, operation in enumerate(operations):
        disk = SimulatedDisk(seed, fail=(number, code))
        trial = FailingTrial(seed)
        timeline = trial.run(disk)
        assert all(error.fact and error.hint and error.code == "storage" for error in trial.errors)
        n_errors += bool(trial.errors)
        if operation in ("sync", "sync_directory"):
            assert trial.errors, f"operation {number}, a sync, failed and nobody said so"
        state = disk.state()
        for found in (state.after_kill(), state.after_power_loss(number), state.after_power_loss(-number)):
            trial.recover(found, timeline.last)
    assert n_errors > 0.9 * len(operations)


def restart_after_each_failed_sync(seed: int) -> int:
    """Start again with the page cache as it is, and lose power at any moment from then on; the number of recoveries."""
    n_recoveries = 0
    for number in [at for at, operation in enumerate(operations_of(seed)) if operation == "sync"]:
        disk = SimulatedDisk(seed, fail=(number, errno.EIO))
        trial = FailingTrial(seed)
        timeline = trial.run(disk)
        restarted = disk.state().after_kill()
        restarted.recording = True
        second = trial.recover(restarted, timeline.last)
        for time, state in enumerate(restarted.points):
            trial.recover(state.after_power_loss(time), second.at(time))
            n_recoveries += 1
    return n_recoveries


def test_a_service_restarted_after_a_failed_sync_does_not_build_on_what_the_kernel_gave_up() -> None:
    """The page cache still shows it, and a later sync says all is well; a power loss then would leave a hole."""
    assert restart_after_each_failed_sync(1) > 300


@pytest.mark.parametrize("module", ["journal", "definition_catalog"])
def test_one_that_does_build_on_it_is_caught(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"storage.{module}.renew", lambda disk, path, size=None: None)
    with pytest.raises((Lost, StorageError)):
        for seed in range(10):
            restart_after_each_failed_sync(seed)


def test_a_failed_sync_stops_everything_and_a_failed_snapshot_nothing() -> None:
    disk = SimulatedDisk(1)
    directory = DataDirectory.open(disk)
    directory.recover()
    directory.append(1, b"one")
    directory.sync()
    # create, write the head, write the part: the disk is full
    disk.fail = (disk.n_operations + 2, errno.ENOSPC)
    with pytest.raises(StorageError, match="cannot write simulated/snapshots/new: the disk is full"):
        directory.save_snapshot(1, [b"large"])
    assert directory.stopped is None and disk.list("snapshots") == []
    directory.save_snapshot(1, [b"large"])
    directory.append(1, b"two")
    disk.fail = (disk.n_operations, errno.EIO)
    with pytest.raises(StorageError, match="cannot sync simulated/journal/.* input/output error"):
        directory.sync()
    assert directory.durable == 1
    check_stop(disk, directory)
    directory.close()


def test_an_append_that_fails_half_way_stops_everything() -> None:
    disk = SimulatedDisk(1)
    directory = DataDirectory.open(disk)
    directory.recover()
    disk.fail = (disk.n_operations, errno.ENOSPC)
    with pytest.raises(StorageError, match="the disk is full") as caught:
        directory.append(1, bytes(1000))
    assert "free some space" in caught.value.hint
    check_stop(disk, directory)
    directory.close()


@pytest.mark.parametrize("discard_state", [False, True])
def test_an_opening_that_fails_says_so_and_can_be_tried_again(discard_state: bool) -> None:
    trial = DirectoryTrial(5)
    disk = SimulatedDisk(5)
    expected = trial.run(disk).last
    state = disk.state()
    found = state.after_kill()
    trial.open(found, discard_state=discard_state).close()
    n_operations = found.n_operations
    assert n_operations > 10
    for number in range(n_operations):
        found = state.after_kill()
        found.fail = (number, errno.EIO)
        try:
            trial.open(found, discard_state=discard_state).close()
        except StorageError as error:
            assert error.fact and error.hint
        directory = trial.open(found, discard_state=discard_state)
        recovery = directory.recover()
        assert recovery.discarded == discard_state
        assert tuple(directory.catalog.definitions()) in expected.world.defined[expected.world.d_must :]
        directory.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EACCES, "no permission"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "input/output error"),
        (errno.EMFILE, "too many files are open"),
        (errno.ENXIO, "No such device"),
    ],
)
def test_each_error_is_one_sentence_with_a_way_out(code: int, words: str) -> None:
    disk = SimulatedDisk(1, fail=(0, code))
    with pytest.raises(StorageError, match=words) as caught:
        DataDirectory.open(disk)
    assert "\n" not in caught.value.fact and caught.value.hint
    DataDirectory.open(disk).close()


def test_a_directory_that_is_in_use_is_refused() -> None:
    disk = SimulatedDisk(1)
    directory = DataDirectory.open(disk)
    with pytest.raises(StorageError, match="the data directory simulated is in use by another process"):
        DataDirectory.open(disk)
    directory.close()
    DataDirectory.open(disk).close()
