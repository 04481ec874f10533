"""A dataset appears whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lineage.errors import ConflictError
from pipeline.dataset import Dataset, DatasetError
from pipeline.draft import Draft
from tests.unit.pipeline.writing import READINGS, rows, write_chunk, write_dataset


def draft_of(out: Path) -> Draft:
    return Draft(out, kind="sensors", seed=1, parameters={})


def test_nothing_has_the_name_until_it_is_published(tmp_path: Path) -> None:
    out = tmp_path / "d"
    with draft_of(out) as draft:
        write_chunk(draft, 0, rows([1]))
        assert not out.exists()
        draft.publish({"readings": READINGS}, {"no_time": 3})
    assert Dataset.open(out).quarantined == {"no_time": 3}
    assert os.listdir(tmp_path) == ["d"]
    assert sorted(os.listdir(out)) == ["dataset.json", "readings"]


def test_leaving_a_draft_removes_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), draft_of(tmp_path / "d") as draft:
        write_chunk(draft, 0, rows([1]))
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", [[1]])
    with pytest.raises(ConflictError, match="exists already"), draft_of(tmp_path / "d"):
        raise AssertionError("unreachable")
    assert Dataset.open(tmp_path / "d").stream("readings").rows == 1


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    assert write_dataset(tmp_path / "d", [[1]]).stream("readings").rows == 1


def test_a_chunk_without_rows_is_left_out(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", [[1], [], [5]])
    assert [chunk.first for chunk in dataset.stream("readings").chunks] == [1, 5]
    assert len(os.listdir(tmp_path / "d" / "readings")) == 2


def test_a_chunk_that_was_cut_short_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="was not written whole"), draft_of(tmp_path / "d") as draft:
        path = write_chunk(draft, 0, rows([1]))
        path.write_bytes(path.read_bytes()[:-20])
        draft.publish({"readings": READINGS}, {})
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DatasetError, match="the disk is full") as caught, draft_of(tmp_path / "d") as draft:
        write_chunk(draft, 0, rows([1]))
        monkeypatch.setattr(os, "fsync", full)
        draft.publish({"readings": READINGS}, {})
    assert caught.value.code == "disk_full" and os.listdir(tmp_path) == []


#: Begins a draft, says so, and waits to be killed.
_WRITER = """
import sys
from pathlib import Path
from pipeline.draft import Draft
with Draft(Path(sys.argv[1]), kind="sensors", seed=1, parameters={}) as draft:
    (draft.folder / "readings").mkdir()
    print(draft.folder.parent, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_left_is_removed_but_not_what_a_live_one_has(tmp_path: Path) -> None:
    out = tmp_path / "d"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as writer:
        assert writer.stdout is not None
        folder = Path(writer.stdout.readline().strip())
        assert folder.is_dir()
        with pytest.raises(ConflictError, match=f"is being written by process {writer.pid}"), draft_of(out):
            raise AssertionError("unreachable")
        writer.send_signal(signal.SIGKILL)
    assert folder.is_dir() and not out.exists()
    write_dataset(out, [[1]])
    assert not folder.exists() and os.listdir(tmp_path) == ["d"]
