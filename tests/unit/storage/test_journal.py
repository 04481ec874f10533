"""The journal on a real disk: what is appended comes back, a torn tail is cut, damage is named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from lineage.errors import LimitError, StorageError
from storage.disk import LocalDisk
from storage.guarded_disk import GuardedDisk
from storage.journal import Journal
from storage.records import MAX_PAYLOAD, RECORD_HEADER_SIZE, SEGMENT_HEADER_SIZE, SegmentHeader
from tests.reference.simulated_disk import SimulatedDisk


def open_journal(path: Path, **options: int) -> Journal:
    disk = GuardedDisk(LocalDisk(path))
    disk.make_directory("")
    return Journal(disk, **options)


def contents(journal: Journal, after: int = 0) -> list[tuple[int, int, bytes]]:
    return [(record.number, record.kind, bytes(record.payload)) for record in journal.read(after)]


def segments(path: Path) -> list[Path]:
    return sorted((path / "journal").iterdir())


def write_three(path: Path, **options: int) -> list[Path]:
    """Records 1 to 3 of 100 bytes, each in a group of its own."""
    journal = open_journal(path, **options)
    for number in (1, 2, 3):
        journal.append(number, bytes([number]) * 100)
        journal.sync()
    journal.close()
    return segments(path)


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_records_come_back_in_order_and_bit_by_bit(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    assert journal.append(7, b"one") == 1
    assert journal.append(8, b"tw", memoryview(b"o")) == 2
    assert journal.append(9) == 3
    journal.sync()
    journal.close()
    assert contents(open_journal(tmp_path)) == [(1, 7, b"one"), (2, 8, b"two"), (3, 9, b"")]


def test_numbers_go_on_after_reopening(tmp_path: Path) -> None:
    write_three(tmp_path)
    journal = open_journal(tmp_path)
    assert (journal.first, journal.last, journal.durable) == (1, 3, 3)
    assert journal.append(4, b"four") == 4


def test_a_record_is_durable_only_after_sync(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append(1, b"a")
    journal.append(1, b"b")
    assert (journal.last, journal.durable) == (2, 0)
    journal.sync()
    assert journal.durable == 2


def test_a_group_of_appends_is_one_sync() -> None:
    disk = SimulatedDisk(recording=True)
    journal = Journal(GuardedDisk(disk))
    opened = len(disk.points)
    for _ in range(1000):
        journal.append(1, b"x")
    journal.sync()
    journal.sync()
    assert [state.operation for state in disk.points[opened:] if state.operation != "write"] == ["sync"]


def test_reading_starts_after_any_number(tmp_path: Path) -> None:
    write_three(tmp_path, segment_bytes=200)
    journal = open_journal(tmp_path)
    for after in range(4):
        assert [number for number, _, _ in contents(journal, after)] == list(range(after + 1, 4))


def test_parts_may_be_arrays_of_any_shape(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    square = np.arange(12, dtype=np.int64).reshape(3, 4)
    journal.append(1, square.data, np.empty((0, 4)).data, bytearray(b"end"))
    assert contents(journal) == [(1, 1, square.tobytes() + b"end")]


def test_more_parts_than_one_system_call_takes_are_written_whole(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    parts = [bytes([number % 251]) * (number % 5) for number in range(3000)]
    journal.append(1, *parts)
    assert contents(journal) == [(1, 1, b"".join(parts))]


def test_a_segment_is_closed_before_it_grows_beyond_its_bound(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, segment_bytes=1000)
    for number in range(100):
        journal.append(number, os.urandom(90))
    journal.sync()
    sizes = [path.stat().st_size for path in segments(tmp_path)]
    assert len(sizes) > 10 and max(sizes) <= 1000
    assert [number for number, _, _ in contents(open_journal(tmp_path))] == list(range(1, 101))


def test_a_record_larger_than_a_segment_stands_alone(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, segment_bytes=1000)
    payloads = [b"small", os.urandom(5_000_000), b"small again"]
    for payload in payloads:
        journal.append(1, payload)
    journal.sync()
    assert [payload for _, _, payload in contents(open_journal(tmp_path))] == payloads
    assert len(segments(tmp_path)) == 3


def test_a_record_at_the_limit_is_taken_and_one_beyond_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.journal.MAX_PAYLOAD", 1000)
    journal = open_journal(tmp_path)
    journal.append(1, bytes(999))
    journal.append(1, bytes(1000))
    with pytest.raises(LimitError, match="1,001 bytes"):
        journal.append(1, bytes(1001))
    assert journal.append(1, b"goes on") == 3
    assert MAX_PAYLOAD == 256 << 20


@pytest.mark.slow
def test_a_record_of_256_megabytes_comes_back(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    block = os.urandom(1 << 20)
    journal.append(1, *[block] * 256)
    journal.append(2, b"after it")
    journal.sync()
    journal.close()
    large, small = open_journal(tmp_path).read(0)
    assert len(large.payload) == MAX_PAYLOAD and large.payload[-(1 << 20) :] == block
    assert bytes(small.payload) == b"after it"


def test_dropping_removes_only_segments_of_smaller_numbers(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, segment_bytes=400)
    for number in range(1, 11):
        journal.append(number, bytes(100))
    journal.sync()
    journal.drop_before(6)
    assert journal.first <= 6
    assert [number for number, _, _ in contents(journal, 5)] == [6, 7, 8, 9, 10]
    journal.drop_before(1000)
    assert journal.append(1, b"x") == 11
    assert len(segments(tmp_path)) == 1


def test_reading_what_was_dropped_says_which_records_are_missing(tmp_path: Path) -> None:
    write_three(tmp_path, segment_bytes=200)
    journal = open_journal(tmp_path)
    journal.drop_before(3)
    with pytest.raises(StorageError, match="records 1 to 2 are missing"):
        contents(journal)


@pytest.mark.parametrize("n_bytes", [1, 35, 36, 37, 135])
def test_a_torn_tail_is_cut_and_the_journal_goes_on(tmp_path: Path, n_bytes: int) -> None:
    (path,) = write_three(tmp_path)
    os.truncate(path, path.stat().st_size - 136 + n_bytes)
    journal = open_journal(tmp_path)
    assert [number for number, _, _ in contents(journal)] == [1, 2]
    assert len(journal.notes) == 1 and f"cut {n_bytes} bytes after record 2" in journal.notes[0]
    assert journal.append(3, b"another three") == 3
    journal.sync()
    assert contents(open_journal(tmp_path), 2) == [(3, 3, b"another three")]


def test_zeros_after_the_last_record_are_cut(tmp_path: Path) -> None:
    (path,) = write_three(tmp_path)
    size = path.stat().st_size
    os.truncate(path, size + 5_000_000)
    assert len(contents(open_journal(tmp_path))) == 3
    assert path.stat().st_size == size


@pytest.mark.parametrize("offset", range(SEGMENT_HEADER_SIZE, SEGMENT_HEADER_SIZE + 136, 5))
def test_damage_before_the_tail_is_an_error_that_names_file_and_offset(tmp_path: Path, offset: int) -> None:
    (path,) = write_three(tmp_path)
    byte = path.read_bytes()[offset]
    overwrite(path, offset, bytes([byte ^ 0x10]))
    with pytest.raises(StorageError) as caught:
        open_journal(tmp_path)
    error = caught.value
    assert (error.code, error.file, error.offset) == ("storage", f"journal/{path.name}", SEGMENT_HEADER_SIZE)
    assert "record 1 cannot be read" in str(error) and "--discard-state" in error.hint


def test_damage_far_before_the_tail_is_found_across_pieces(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    for _ in range(3):
        journal.append(1, bytes(3_000_000))
        journal.sync()
    journal.close()
    (path,) = segments(tmp_path)
    overwrite(path, SEGMENT_HEADER_SIZE, b"\0")
    with pytest.raises(StorageError, match="later ones can"):
        open_journal(tmp_path)


@pytest.mark.parametrize("which", [0, 1])
def test_damage_in_a_closed_segment_is_found_when_it_is_read(tmp_path: Path, which: int) -> None:
    paths = write_three(tmp_path, segment_bytes=200)
    assert len(paths) == 3
    overwrite(paths[which], SEGMENT_HEADER_SIZE + RECORD_HEADER_SIZE, b"\xff")
    journal = open_journal(tmp_path)
    with pytest.raises(StorageError, match=f"record {which + 1} cannot be read") as caught:
        contents(journal)
    assert caught.value.file == f"journal/{paths[which].name}"


def test_a_closed_segment_that_was_cut_short_is_damage(tmp_path: Path) -> None:
    paths = write_three(tmp_path, segment_bytes=200)
    os.truncate(paths[0], SEGMENT_HEADER_SIZE)
    with pytest.raises(StorageError, match="records 1 to 1 are missing"):
        contents(open_journal(tmp_path))


def test_a_missing_segment_in_the_middle_is_damage(tmp_path: Path) -> None:
    paths = write_three(tmp_path, segment_bytes=200)
    paths[1].unlink()
    with pytest.raises(StorageError, match="records 2 to 2 are missing"):
        contents(open_journal(tmp_path))


def test_records_behind_a_damaged_segment_header_are_not_given_up(tmp_path: Path) -> None:
    (path,) = write_three(tmp_path)
    overwrite(path, 3, b"\0")
    with pytest.raises(StorageError, match="no valid header"):
        open_journal(tmp_path)


@pytest.mark.parametrize("size", [0, 5, SEGMENT_HEADER_SIZE])
def test_a_segment_that_was_never_born_is_removed(tmp_path: Path, size: int) -> None:
    write_three(tmp_path)
    unborn = tmp_path / "journal" / f"{4:020d}.journal"
    unborn.write_bytes(bytes(size))
    journal = open_journal(tmp_path)
    assert journal.append(1, b"four") == 4
    assert len(contents(journal)) == 4 and not unborn.exists()


def test_a_segment_before_an_unborn_one_was_synced_so_a_torn_end_is_damage(tmp_path: Path) -> None:
    (path,) = write_three(tmp_path)
    os.truncate(path, path.stat().st_size - 1)
    (tmp_path / "journal" / f"{4:020d}.journal").write_bytes(b"")
    with pytest.raises(StorageError, match="record 3 cannot be read"):
        open_journal(tmp_path)


def test_records_of_another_segment_are_not_taken_for_ours(tmp_path: Path) -> None:
    (ours,) = write_three(tmp_path / "ours")
    (other,) = write_three(tmp_path / "other")
    stale = other.read_bytes()
    assert stale[SEGMENT_HEADER_SIZE:] != ours.read_bytes()[SEGMENT_HEADER_SIZE:]
    # records 2 and 3 of a file that stood in the same blocks before
    at = SEGMENT_HEADER_SIZE + RECORD_HEADER_SIZE + 100
    overwrite(ours, at, stale[at:])
    assert [number for number, _, _ in contents(open_journal(tmp_path / "ours"))] == [1]


def test_a_newer_layout_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (path,) = write_three(tmp_path)
    overwrite(path, 0, SegmentHeader(1, 5, layout=2).pack())
    with pytest.raises(StorageError, match="layout 2, and this version knows up to 1") as caught:
        open_journal(tmp_path)
    assert "newer" in caught.value.hint


def test_a_renamed_segment_is_noticed(tmp_path: Path) -> None:
    (path,) = write_three(tmp_path)
    path.rename(path.with_name(f"{9:020d}.journal"))
    with pytest.raises(StorageError, match="name says record 9"):
        open_journal(tmp_path)


def test_a_floor_removes_the_segments_before_it(tmp_path: Path) -> None:
    write_three(tmp_path)
    journal = open_journal(tmp_path, floor=50)
    assert (journal.first, journal.last, contents(journal, 49)) == (50, 49, [])
    assert journal.append(1, b"x") == 50


def test_half_a_copy_of_a_segment_is_removed_on_opening(tmp_path: Path) -> None:
    (path,) = write_three(tmp_path)
    (tmp_path / "journal" / "new").write_bytes(b"half")
    assert len(contents(open_journal(tmp_path))) == 3
    assert segments(tmp_path) == [path]
