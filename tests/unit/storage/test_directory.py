"""The data directory on a real disk: lock, recovery, what is kept, and discarding state."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lineage.errors import StorageError
from storage import CatalogEntry, DataDirectory, LocalDisk, Snapshot
from storage.records import RECORD_HEADER_SIZE, RECORD_MAGIC, SEGMENT_HEADER_SIZE


def open_directory(path: Path, **options: bool) -> DataDirectory:
    return DataDirectory.open(LocalDisk(path), segment_bytes=300, **options)


def opened(path: Path) -> DataDirectory:
    directory = open_directory(path)
    for _ in directory.recover().records:
        pass
    return directory


def push(directory: DataDirectory, n_records: int) -> None:
    for _ in range(n_records):
        directory.append(1, f"record {directory.last + 1}".encode() * 5)
    directory.sync()


def recovered(directory: DataDirectory) -> tuple[Snapshot | None, list[int]]:
    recovery = directory.recover()
    return recovery.snapshot, [record.number for record in recovery.records]


def test_a_new_directory_is_made_with_its_parents_for_its_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    directory = open_directory(root)
    assert directory.is_new and recovered(directory) == (None, [])
    directory.close()
    assert root.stat().st_mode & 0o777 == 0o700
    directory = open_directory(root)
    assert not directory.is_new and directory.catalog.meta("created_us") is not None
    directory.close()


def test_recovery_is_the_newest_snapshot_and_the_records_after_it(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    push(directory, 5)
    directory.save_snapshot(3, [b"state", b"after three"])
    directory.close()
    directory = open_directory(tmp_path)
    assert recovered(directory) == (Snapshot(3, [bytearray(b"state"), bytearray(b"after three")]), [4, 5])
    directory.close()


def places(path: Path) -> list[tuple[Path, int, int]]:
    """The file and place of every byte of the journal, with the number of the record it belongs to; 0 for a segment's header."""
    found = []
    for file in sorted((path / "journal").iterdir()):
        data, number = file.read_bytes(), int(file.stem) - 1
        for at in range(len(data)):
            if data.startswith(RECORD_MAGIC, at):
                number += 1
            found.append((file, at, 0 if at < SEGMENT_HEADER_SIZE else number))
    return found


@pytest.mark.parametrize("snapshot", [5, 8])
def test_damage_that_a_snapshot_covers_does_not_stop_the_start_wherever_it_is(snapshot: int, tmp_path: Path) -> None:
    first = tmp_path / "first"
    directory = opened(first)
    for _ in range(8):
        push(directory, 1)
    directory.save_snapshot(snapshot, [b"state"])
    directory.close()
    tried = 0
    for n, (file, at, number) in enumerate(places(first)):
        if not 0 < number <= snapshot or at % 19:
            continue
        tried += 1
        path = tmp_path / str(n)
        shutil.copytree(first, path)
        damaged = path / "journal" / file.name
        data = bytearray(damaged.read_bytes())
        data[at] ^= 1 << (n % 8)
        damaged.write_bytes(data)
        for more in range(2):
            # again and again: what is damaged stays, and numbers go on
            directory = open_directory(path)
            recovery = directory.recover()
            assert recovery.snapshot == Snapshot(snapshot, [bytearray(b"state")])
            assert [record.number for record in recovery.records] == list(range(snapshot + 1, 9 + more))
            # segments that are not needed are not looked at
            assert all("covers" in note or "cut" in note for note in recovery.notes)
            assert recovery.notes or file != places(first)[-1][0] or more
            push(directory, 1)
            assert directory.last == directory.durable == 9 + more
            directory.close()
        shutil.rmtree(path)
    assert tried > 10


def test_damage_beyond_the_snapshot_still_stops_the_start(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for _ in range(8):
        push(directory, 1)
    directory.save_snapshot(5, [b"state"])
    directory.close()
    file, at, _ = next(place for place in places(tmp_path) if place[2] == 6)
    data = bytearray(file.read_bytes())
    data[at + RECORD_HEADER_SIZE] ^= 1
    file.write_bytes(data)
    with pytest.raises(StorageError):
        list(open_directory(tmp_path).recover().records)


def test_a_crash_while_it_goes_on_after_lost_records_costs_nothing(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    push(directory, 1)
    directory.save_snapshot(1, [b"state"])
    directory.close()
    file, at, _ = places(tmp_path)[-1]
    data = file.read_bytes()
    file.write_bytes(data[:at])
    (tmp_path / "journal" / f"{2:020d}.journal").write_bytes(b"")  # the next segment, before it was born
    directory = opened(tmp_path)
    assert directory.last == 1
    push(directory, 1)
    directory.close()
    assert recovered(open_directory(tmp_path))[1] == [2]


def test_segments_are_kept_for_the_older_of_two_snapshots(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    push(directory, 10)
    n_segments = len(list((tmp_path / "journal").iterdir()))
    directory.save_snapshot(6, [b"six"])
    assert len(list((tmp_path / "journal").iterdir())) == n_segments
    directory.save_snapshot(10, [b"ten"])
    assert len(list((tmp_path / "journal").iterdir())) < n_segments
    directory.close()
    (tmp_path / "snapshots" / f"{10:020d}.snapshot").write_bytes(b"gone bad")
    directory = open_directory(tmp_path)
    recovery = directory.recover()
    assert recovery.snapshot == Snapshot(6, [bytearray(b"six")])
    assert [record.number for record in recovery.records] == [7, 8, 9, 10]
    assert "damaged" in recovery.notes[0]
    directory.close()


def test_two_damaged_snapshots_are_an_error_and_no_empty_start(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    push(directory, 10)
    directory.save_snapshot(6, [b"six"])
    directory.save_snapshot(10, [b"ten"])
    directory.close()
    for path in (tmp_path / "snapshots").iterdir():
        path.write_bytes(b"gone bad")
    directory = open_directory(tmp_path)
    with pytest.raises(StorageError, match="records 1 to .* are missing"):
        recovered(directory)
    directory.close()


def test_a_second_process_is_told_who_has_the_directory(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom storage import DataDirectory, LocalDisk\n"
        "directory = DataDirectory.open(LocalDisk(sys.argv[1]))\nprint('open', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        with pytest.raises(StorageError, match=f"in use by process {other.pid}") as caught:
            open_directory(tmp_path)
        assert "stop it first" in caught.value.hint
        other.communicate("")
    open_directory(tmp_path).close()


def test_the_lock_is_given_back_when_opening_fails(tmp_path: Path) -> None:
    push(directory := opened(tmp_path), 3)
    directory.close()
    path = sorted((tmp_path / "journal").iterdir())[-1]
    path.write_bytes(b"x" * 1000)
    for _ in range(2):
        with pytest.raises(StorageError, match="no valid header"):
            open_directory(tmp_path)


def test_a_journal_without_its_catalog_is_not_taken_for_a_new_directory(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "catalog.sqlite").unlink()
    with pytest.raises(StorageError, match="a journal but no catalog"):
        open_directory(tmp_path)
    (tmp_path / "catalog.sqlite").write_bytes(b"")
    with pytest.raises(StorageError, match="a journal but no catalog"):
        open_directory(tmp_path)


def test_a_newer_layout_is_refused(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.catalog.set_meta(layout="7")
    directory.close()
    with pytest.raises(StorageError, match="the data directory has layout 7, and this version knows up to 1"):
        open_directory(tmp_path)


def test_a_path_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match="a file, not a directory"):
            open_directory(path)


def test_neither_snapshot_nor_catalog_runs_ahead_of_the_journal(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.append(1, b"not synced")
    with pytest.raises(AssertionError):
        directory.save_snapshot(1, [])
    with pytest.raises(AssertionError):
        directory.define(1)
    directory.close()


def test_snapshots_may_be_saved_and_definitions_written_while_another_thread_appends(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    push(directory, 1)
    done = threading.Event()

    def save() -> None:
        while not done.is_set():
            number = directory.durable
            directory.save_snapshot(number, [str(number).encode()])
            directory.define(number, [CatalogEntry("query", "q", "{}", number)])

    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(save)
        for _ in range(100):
            push(directory, 3)
        done.set()
        saving.result(timeout=60)
    directory.close()
    directory = open_directory(tmp_path)
    snapshot, numbers = recovered(directory)
    assert snapshot is not None and snapshot.parts == [bytearray(str(snapshot.number).encode())]
    assert numbers == list(range(snapshot.number + 1, 302)) and directory.catalog.number() <= snapshot.number
    directory.close()


def test_discarding_state_keeps_the_definitions_alone(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    push(directory, 8)
    directory.define(8, [CatalogEntry("stream", "lab", "{}", 2)])
    directory.save_snapshot(5, [b"state"])
    directory.close()

    directory = open_directory(tmp_path, discard_state=True)
    recovery = directory.recover()
    assert recovery.discarded and recovery.snapshot is None and list(recovery.records) == []
    assert directory.catalog.definitions() == [CatalogEntry("stream", "lab", "{}", 2)]
    assert directory.durable > 8
    with pytest.raises(AssertionError):
        directory.append(1, b"before the snapshot")
    directory.save_snapshot(start := directory.durable, [b"made of definitions"])
    push(directory, 1)
    directory.close()

    directory = open_directory(tmp_path)
    assert recovered(directory) == (Snapshot(start, [bytearray(b"made of definitions")]), [start + 1])
    directory.close()


def test_a_crash_right_after_discarding_still_asks_for_the_definitions(tmp_path: Path) -> None:
    push(directory := opened(tmp_path), 3)
    directory.close()
    open_directory(tmp_path, discard_state=True).close()
    directory = open_directory(tmp_path)
    assert directory.recover().discarded
    directory.close()


def test_state_can_be_discarded_again_and_again(tmp_path: Path) -> None:
    last = 0
    for _ in range(3):
        directory = open_directory(tmp_path, discard_state=True)
        if directory.recover().discarded:
            directory.save_snapshot(directory.durable, [b"definitions"])
        push(directory, 2)
        assert directory.last > last
        last = directory.last
        directory.close()


def test_a_damaged_journal_can_be_discarded(tmp_path: Path) -> None:
    push(directory := opened(tmp_path), 8)
    directory.close()
    for path in (tmp_path / "journal").iterdir():
        path.write_bytes(b"x" * 1000)
    directory = open_directory(tmp_path, discard_state=True)
    assert directory.recover().discarded
    directory.close()


def test_a_lost_first_snapshot_after_discarding_is_an_error(tmp_path: Path) -> None:
    opened(tmp_path).close()
    directory = open_directory(tmp_path, discard_state=True)
    directory.recover()
    directory.save_snapshot(directory.durable, [b"definitions"])
    push(directory, 2)
    directory.close()
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    directory = open_directory(tmp_path)
    with pytest.raises(StorageError, match="the snapshot that the journal starts from"):
        directory.recover()
    directory.close()
