"""Snapshots on a real disk: two are kept, and one that is damaged is passed over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lineage.errors import StorageError
from storage.disk import LocalDisk
from storage.guarded_disk import GuardedDisk
from storage.snapshots import Snapshot, Snapshots


def open_snapshots(path: Path) -> Snapshots:
    return Snapshots(GuardedDisk(LocalDisk(path)))


def numbers(path: Path) -> list[int]:
    return sorted(int(file.stem) for file in (path / "snapshots").iterdir())


def test_without_snapshots_there_is_no_newest(tmp_path: Path) -> None:
    assert open_snapshots(tmp_path).newest() is None


def test_the_newest_comes_back_in_its_parts(tmp_path: Path) -> None:
    snapshots = open_snapshots(tmp_path)
    numbers = np.arange(1000)
    snapshots.write(3, [b"three"])
    snapshots.write(5, [b"five", b"", numbers.data])
    found = open_snapshots(tmp_path).newest()
    assert found == Snapshot(5, [bytearray(b"five"), bytearray(), bytearray(numbers.tobytes())])


def test_parts_that_are_read_can_be_written_to(tmp_path: Path) -> None:
    open_snapshots(tmp_path).write(1, [np.arange(3).data])
    found = open_snapshots(tmp_path).newest()
    assert found is not None
    array = np.frombuffer(found.parts[0], np.int64)
    array[0] = 7
    assert array.tolist() == [7, 1, 2]


def test_a_snapshot_may_be_empty(tmp_path: Path) -> None:
    open_snapshots(tmp_path).write(0, [])
    assert open_snapshots(tmp_path).newest() == Snapshot(0, [])


def test_two_are_kept(tmp_path: Path) -> None:
    snapshots = open_snapshots(tmp_path)
    for number in (1, 4, 9):
        snapshots.write(number, [b"state"])
    assert numbers(tmp_path) == [4, 9] and snapshots.fallback == 4


def test_after_reopening_the_one_that_was_read_is_kept_beside_the_next(tmp_path: Path) -> None:
    snapshots = open_snapshots(tmp_path)
    snapshots.write(1, [b"a"])
    snapshots.write(2, [b"b"])
    snapshots = open_snapshots(tmp_path)
    assert snapshots.newest() is not None and snapshots.fallback is None
    snapshots.write(3, [b"c"])
    assert numbers(tmp_path) == [2, 3]


def test_writing_the_same_number_again_does_nothing(tmp_path: Path) -> None:
    snapshots = open_snapshots(tmp_path)
    snapshots.write(1, [b"a"])
    snapshots.write(2, [b"b"])
    snapshots.write(2, [b"other"])
    assert numbers(tmp_path) == [1, 2]
    assert open_snapshots(tmp_path).newest() == Snapshot(2, [bytearray(b"b")])


def test_any_byte_that_changed_makes_it_fall_back_to_the_one_before(tmp_path: Path) -> None:
    snapshots = open_snapshots(tmp_path)
    snapshots.write(1, [b"a"])
    snapshots.write(2, [b"bcd", b"efg"])
    path = tmp_path / "snapshots" / f"{2:020d}.snapshot"
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        snapshots = open_snapshots(tmp_path)
        assert snapshots.newest() == Snapshot(1, [bytearray(b"a")]), f"byte {place}"
        assert "damaged" in snapshots.notes[0]


def test_a_snapshot_that_is_too_short_or_too_long_is_damaged(tmp_path: Path) -> None:
    snapshots = open_snapshots(tmp_path)
    snapshots.write(2, [b"bcd", b"efg"])
    path = tmp_path / "snapshots" / f"{2:020d}.snapshot"
    whole = path.read_bytes()
    for data in [*(whole[:size] for size in range(len(whole))), whole + b"\0"]:
        path.write_bytes(data)
        assert open_snapshots(tmp_path).newest() is None


def test_a_damaged_one_is_not_counted_among_the_two(tmp_path: Path) -> None:
    snapshots = open_snapshots(tmp_path)
    snapshots.write(1, [b"a"])
    snapshots.write(2, [b"b"])
    (tmp_path / "snapshots" / f"{2:020d}.snapshot").write_bytes(b"junk")
    snapshots = open_snapshots(tmp_path)
    assert snapshots.newest() == Snapshot(1, [bytearray(b"a")])
    snapshots.write(3, [b"c"])
    assert numbers(tmp_path) == [1, 3]


def test_half_a_snapshot_is_removed_on_opening(tmp_path: Path) -> None:
    open_snapshots(tmp_path)
    (tmp_path / "snapshots" / "new").write_bytes(b"half")
    open_snapshots(tmp_path)
    assert list((tmp_path / "snapshots").iterdir()) == []


def test_a_newer_layout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("storage.snapshots.LAYOUT", 2)
        open_snapshots(tmp_path).write(1, [b"a"])
    with pytest.raises(StorageError, match="layout 2, and this version knows up to 1"):
        open_snapshots(tmp_path).newest()
