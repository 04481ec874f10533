"""Crash everywhere: run a workload once, then ask of every moment of it what a new process would find.

A `Trial` runs on a simulated disk and notes, whenever it changes, what a crash must leave and what it may leave: an
*expectation*. `sweep` takes the disk before every operation: killed once, and with many power losses. Each disk that is found
is recovered and compared with the expectation of that moment; the recovery goes on working, and has expectations of its own
(what it has once shown must stay). Some recoveries are themselves cut off at every operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from lineage.errors import StorageError
from storage.disk import Data, Disk, File
from tests.reference.comparison import compared
from tests.reference.simulated_disk import DiskState, SimulatedDisk

E = TypeVar("E")


class Lost(AssertionError):
    """A crash took what was promised, or left what was never there."""


class Timeline(Generic[E]):
    """Expectations by the number of operations that the disk had done."""

    def __init__(self, first: E) -> None:
        self._times = [0]
        self._expectations = [first]

    def note(self, disk: SimulatedDisk, expectation: E) -> None:
        self._times.append(disk.n_operations)
        self._expectations.append(expectation)

    def at(self, time: int) -> E:
        return self._expectations[bisect_right(self._times, time) - 1]

    @property
    def last(self) -> E:
        return self._expectations[-1]


class Trial(ABC, Generic[E]):
    """A workload that follows from its seed. `wrap` puts a mutant between it and the disk."""

    #: How much work `run` does.
    n_steps = 20

    def __init__(self, seed: int, wrap: Callable[[SimulatedDisk], Disk] = lambda disk: disk, *, n_steps: int = 0) -> None:
        self.seed = seed
        self.wrap = wrap
        self.n_steps = n_steps or self.n_steps

    @abstractmethod
    def run(self, disk: SimulatedDisk) -> Timeline[E]:
        """Do the work on an empty disk."""

    @abstractmethod
    def recover(self, disk: SimulatedDisk, expected: E) -> Timeline[E]:
        """Open what a crash left, raise `Lost` unless it is as expected, then go on a little."""


def sweep(trial: Trial[E], *, n_losses: int, again_every: int = 0) -> int:
    """Crash at every operation, and in every `again_every`-th recovery as well; the number of recoveries."""
    disk = SimulatedDisk(trial.seed, recording=True)
    timeline = trial.run(disk)
    disk.points.append(disk.state())
    n_recoveries = 0
    for time, state in enumerate(disk.points):
        for loss in range(-1, n_losses):
            found = _crashed(state, loss, trial.seed * 1_000_003 + time * 1_009 + loss)
            found.recording = again_every > 0 and (time if loss < 0 else time * n_losses + loss) % again_every == 0
            where = f"{_kind(loss)} before operation {time}: {state.operation} {state.path}"
            second = _recover(trial, found, timeline.at(time), where)
            n_recoveries += 1
            for time_again, state_again in enumerate(found.points):
                again = _crashed(state_again, 0, trial.seed * 1_000_003 + time * 1_009 + time_again)
                where_again = f"{where}; then before operation {time_again}: {state_again.operation} {state_again.path}"
                _recover(trial, again, second.at(time_again), where_again)
                n_recoveries += 1
    return n_recoveries


def _kind(loss: int) -> str:
    return "killed" if loss < 0 else f"power loss {loss}"


def _crashed(state: DiskState, loss: int, seed: int) -> SimulatedDisk:
    return state.after_kill() if loss < 0 else state.after_power_loss(seed)


def _recover(trial: Trial[E], disk: SimulatedDisk, expected: E, where: str) -> Timeline[E]:
    compared()
    try:
        return trial.recover(disk, expected)
    except (Lost, StorageError) as error:
        raise Lost(f"seed {trial.seed}, {where}: {error}") from error


def first_loss(make: Callable[[int], Trial[E]], *, n_seeds: int, n_losses: int, again_every: int = 0) -> str:
    """What the first seed that loses something says; empty if none does."""
    for seed in range(n_seeds):
        try:
            sweep(make(seed), n_losses=n_losses, again_every=again_every)
        except Lost as error:
            return str(error)
    return ""


class ForgetfulDisk:
    """A mutant: it leaves out the operations in `skipped`, given as "operation path-suffix"."""

    def __init__(self, disk: Disk, skipped: Collection[str]) -> None:
        self._disk = disk
        self._skipped = [tuple(words.split(" ")) for words in skipped]

    def skips(self, operation: str, path: str) -> bool:
        return any(operation == skipped and path.endswith(suffix) for skipped, suffix in self._skipped)

    @property
    def display_path(self) -> str:
        return self._disk.display_path

    def open(self, path: str, *, create: bool = False) -> File:
        return ForgetfulFile(self, self._disk.open(path, create=create), path)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def list(self, directory: str) -> list[str]:
        return self._disk.list(directory)

    def make_directory(self, path: str) -> None:
        self._disk.make_directory(path)

    def rename(self, old: str, new: str) -> None:
        self._disk.rename(old, new)

    def remove(self, path: str) -> None:
        self._disk.remove(path)

    def sync_directory(self, path: str) -> None:
        if not self.skips("sync_directory", path):
            self._disk.sync_directory(path)

    def lock(self) -> None:
        self._disk.lock()

    def unlock(self) -> None:
        self._disk.unlock()

    def random_bytes(self, n_bytes: int) -> bytes:
        return self._disk.random_bytes(n_bytes)


class ForgetfulFile:
    """A file of a forgetful disk."""

    def __init__(self, disk: ForgetfulDisk, file: File, path: str) -> None:
        self._disk = disk
        self._file = file
        self._path = path

    def read_into(self, offset: int, target: memoryview) -> int:
        return self._file.read_into(offset, target)

    def write(self, offset: int, parts: Sequence[Data]) -> None:
        self._file.write(offset, parts)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def size(self) -> int:
        return self._file.size()

    def sync(self) -> None:
        if not self._disk.skips("sync", self._path):
            self._file.sync()

    def close(self) -> None:
        self._file.close()
