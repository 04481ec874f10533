"""The two disks: they do the same, and the simulated one loses what it may and nothing else."""

from __future__ import annotations

import ast
import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from storage.disk import Disk, LocalDisk, read_at
from tests.reference.simulated_disk import DiskState, SimulatedDisk

STORAGE = Path(__file__).resolve().parents[3] / "storage"


def play(disk: Disk, seed: int) -> list[object]:
    """Random operations, and all that can be seen of the disk after each."""
    chance = random.Random(seed)
    disk.make_directory("")
    disk.make_directory("d")
    seen: list[object] = []
    for _ in range(60):
        path = chance.choice(("a", "b", "d/a", "d/b"))
        operation = chance.choice(("create", "write", "write", "truncate", "sync", "rename", "remove", "sync_directory"))
        try:
            if operation == "create":
                disk.open(path, create=True).close()
            elif operation == "rename":
                disk.rename(path, path[:-1] + chance.choice("ab"))
            elif operation == "remove":
                disk.remove(path)
            elif operation == "sync_directory":
                disk.sync_directory(chance.choice(("", "d")))
            else:
                file = disk.open(path)
                if operation == "write":
                    file.write(chance.randrange(50), [chance.randbytes(chance.randrange(30)) for _ in range(3)])
                elif operation == "truncate":
                    file.truncate(chance.randrange(80))
                else:
                    file.sync()
                seen.append((file.size(), read_at(file, 10, 40)))
                file.close()
        except OSError as error:
            seen.append((type(error), error.errno))
        seen.append([(folder, disk.list(folder)) for folder in ("", "d")])
        seen.append([disk.exists(name) for name in ("a", "b", "d/a")])
    return seen


@pytest.mark.parametrize("seed", range(30))
def test_the_simulated_disk_behaves_like_a_real_one(seed: int, tmp_path: Path) -> None:
    assert play(LocalDisk(tmp_path / "root"), seed) == play(SimulatedDisk(), seed)


def content(disk: SimulatedDisk, path: str) -> bytes:
    return bytes(read_at(disk.open(path), 0, 100_000))


T = TypeVar("T")


def losses(state: DiskState, look: Callable[[SimulatedDisk], T]) -> set[T]:
    return {look(state.after_power_loss(seed)) for seed in range(500)}


def test_what_was_synced_survives_every_loss() -> None:
    disk = SimulatedDisk()
    file = disk.open("a", create=True)
    file.write(0, [b"x" * 3000])
    file.sync()
    disk.sync_directory("")
    assert losses(disk.state(), lambda found: content(found, "a")) == {b"x" * 3000}


def test_what_was_not_synced_is_dropped_kept_torn_or_mixed() -> None:
    disk = SimulatedDisk()
    file = disk.open("a", create=True)
    file.sync()
    disk.sync_directory("")
    file.write(0, [b"x" * 2000])
    file.write(2000, [b"y" * 100])
    found = losses(disk.state(), lambda found: content(found, "a"))
    assert {b"", b"x" * 2000 + b"y" * 100} <= found
    assert any(len(one) % 512 and one == b"x" * len(one) for one in found), "torn at a byte"
    assert any(b"y" in one and b"x" * 2000 not in one for one in found), "the later write without the earlier one"
    assert any(bytes(512) in one for one in found), "zeros where bytes did not arrive"
    assert any(set(one) - set(b"xy\0") for one in found), "garbage, or a flipped bit"


def test_synced_bytes_beside_an_unsynced_write_are_not_touched() -> None:
    disk = SimulatedDisk()
    file = disk.open("a", create=True)
    file.write(0, [b"x" * 700])
    file.sync()
    disk.sync_directory("")
    file.write(700, [b"y" * 700])
    assert losses(disk.state(), lambda found: content(found, "a")[:700]) == {b"x" * 700}


def test_a_name_survives_only_with_its_directory_synced() -> None:
    disk = SimulatedDisk()
    file = disk.open("a", create=True)
    file.write(0, [b"x"])
    file.sync()
    assert losses(disk.state(), lambda found: found.exists("a")) == {True, False}
    disk.sync_directory("")
    assert losses(disk.state(), lambda found: found.exists("a")) == {True}
    disk.remove("a")
    assert losses(disk.state(), lambda found: found.exists("a")) == {True, False}


def test_a_rename_happens_wholly_or_not_at_all() -> None:
    disk = SimulatedDisk()
    for name in "ab":
        file = disk.open(name, create=True)
        file.write(0, [name.encode()])
        file.sync()
    disk.sync_directory("")
    disk.rename("a", "b")
    found = losses(disk.state(), lambda found: (found.exists("a"), content(found, "b")))
    assert found == {(True, b"b"), (False, b"a")}


def test_a_directory_without_a_synced_name_takes_its_files_with_it() -> None:
    disk = SimulatedDisk()
    disk.make_directory("d")
    disk.open("d/a", create=True).sync()
    disk.sync_directory("d")
    assert losses(disk.state(), lambda found: found.exists("d/a")) == {True, False}
    disk.sync_directory("")
    assert losses(disk.state(), lambda found: found.exists("d/a")) == {True}


def test_a_kill_loses_nothing_and_syncs_nothing() -> None:
    disk = SimulatedDisk()
    disk.open("a", create=True).write(0, [b"x" * 2000])
    found = disk.state().after_kill()
    assert content(found, "a") == b"x" * 2000
    assert losses(found.state(), lambda found: found.exists("a")) == {True, False}


def test_a_sync_after_a_failed_one_does_not_bring_the_data_back() -> None:
    left = set()
    for seed in range(20):
        disk = SimulatedDisk(seed)
        file = disk.open("a", create=True)
        disk.sync_directory("")
        file.write(0, [b"x" * 2000])
        disk.fail = (disk.n_operations, errno.EIO)
        with pytest.raises(OSError):
            file.sync()
        file.sync()
        assert content(disk, "a") == b"x" * 2000
        left.add(content(disk.state().after_power_loss(seed), "a"))
    assert b"" in left and len(left) > 5


def test_the_same_seed_loses_the_same() -> None:
    disk = SimulatedDisk()
    disk.open("a", create=True).write(0, [b"x" * 5000])
    state = disk.state()
    for seed in range(50):
        first, second = state.after_power_loss(seed), state.after_power_loss(seed)
        assert first.list("") == second.list("")
        assert not first.exists("a") or content(first, "a") == content(second, "a")


def test_only_the_disk_itself_touches_files() -> None:
    """What goes around the interface is not in the simulation."""
    for path in STORAGE.glob("*.py"):
        if path.name == "disk.py":
            continue
        tree = ast.parse(path.read_text())
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not modules & {"os", "io", "pathlib", "shutil", "tempfile", "mmap", "fcntl", "sqlite3"}, path.name
        calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert "open" not in calls, path.name
