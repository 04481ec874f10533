"""Files of rows in parts, and what columns they have."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from api.commands import row_files
from api.commands.row_files import FileError, FilePart, open_rows, schema_of
from api.wire.bodies import parse_csv, parse_rows
from eddy import EddyError
from eddy.csv import CsvForm


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "PART_BYTES", 40)
    monkeypatch.setattr(row_files, "PART_ROWS", 7)


def rows_of(parts: Any, columns: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for part in parts:
        if part.media == row_files.CSV:
            table = parse_csv(part.body, columns, CsvForm(), skip=False).table
        else:
            table = part.table if part.table is not None else pa.Table.from_pylist(parse_rows(part.body, part.media))
        assert table.num_rows == part.n_rows <= 7
        found += table.to_pylist()
    return found


TEXTS = ["plain", "with, comma", 'a "quote"', "two\nlines", "", "é\u2028", 'ends with "', "\n\n", ",", "x"]


def test_a_csv_is_cut_between_records(tmp_path: Path) -> None:
    import csv

    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["n", "text"])
        writer.writerows([n, text] for n, text in enumerate(TEXTS))
    parts, size, _ = open_rows(str(path), None)
    kept = list(parts)
    assert len(kept) > 1 and sum(part.n_bytes for part in kept) == size == path.stat().st_size
    found = rows_of(kept, {"n": "int", "text": "string"})
    assert found == [{"n": n, "text": text or None} for n, text in enumerate(TEXTS)]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_a_csv_may_have_a_mark_any_line_end_and_none_at_its_end(tmp_path: Path, ending: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + ending.join([b"a,b", b"1,x", b"", b"2,y"]))
    parts = open_rows(str(path), None)[0]
    assert rows_of(parts, {"a": "int", "b": "string"}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_a_quote_that_is_never_closed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n1,"x\n2,y\n')
    with pytest.raises(EddyError, match="never closed"):
        list(open_rows(str(path), None)[0])


def test_ndjson_is_cut_between_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.ndjson"
    path.write_text("\n\n".join(json.dumps({"n": n, "text": text}) for n, text in enumerate(TEXTS)))
    assert rows_of(open_rows(str(path), None)[0], {}) == [{"n": n, "text": text} for n, text in enumerate(TEXTS)]


@pytest.mark.parametrize("kind", ["stream", "file", "parquet"])
def test_arrow_and_parquet_are_read_by_batches(tmp_path: Path, kind: str) -> None:
    table = pa.table({"n": list(range(20)), "x": [n / 2 for n in range(20)]})
    path = tmp_path / ("rows.parquet" if kind == "parquet" else "rows.arrow")
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        maker = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with maker(str(path), table.schema) as writer:
            writer.write_table(table)
    assert rows_of(open_rows(str(path), None)[0], {}) == table.to_pylist()


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b'  {"a": 1}\n', "ndjson"),
        (b"a,b\n1,2\n", "csv"),
        (b"\xff\xff\xff\xff....", "arrow"),
        (b"ARROW1..", "arrow"),
        (b"PAR1..", "parquet"),
    ],
)
def test_the_format_of_standard_input_is_seen_at_its_beginning(head: bytes, kind: str) -> None:
    assert row_files._sniffed(io.BufferedReader(io.BytesIO(head))) == kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "format_", "fact"),
    [
        ("rows.txt", b"a\n1\n", None, 'the format of "rows.txt" is not known'), ("rows.csv", b"", None, "the CSV is empty"),
        ("rows.csv", b"a\n1\n", "xml", 'there is no format "xml"'), ("rows.arrow", b"nothing", None, "this is not Arrow IPC"),
        ("rows.parquet", b"nothing", None, "this is not Parquet"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_with_the_fact(
    tmp_path: Path, name: str, content: bytes, format_: str | None, fact: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EddyError) as caught:
        list(open_rows(str(tmp_path / name), format_)[0])
    assert caught.value.fact == fact


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileError, match="nowhere.csv cannot be read"):
        open_rows("nowhere.csv", None)


@pytest.mark.parametrize(
    ("body", "media", "time", "columns"),
    [
        (b'{"a": 1, "s": "x"}\n{"a": 2.5, "b": false, "n": null}\n', row_files.NDJSON, None,
         {"a": "float", "s": "string", "b": "bool", "n": "string"}),
        (b'{"t": "2024-01-01T00:00:00Z"}\n', row_files.NDJSON, "t", {"t": "timestamp"}),
    ],
)  # fmt: skip
def test_columns_are_what_the_first_rows_look_like(body: bytes, media: str, time: str | None, columns: dict[str, str]) -> None:
    assert schema_of(FilePart(1, len(body), body, media), time) == columns


def test_columns_of_arrow_are_those_of_its_schema() -> None:
    table = pa.table({"d": pa.array([1], pa.int8()), "f": pa.array([1], pa.float32()), "t": [datetime(2024, 1, 1, tzinfo=UTC)]})
    assert schema_of(FilePart(1, 1, table=table), None) == {"d": "int", "f": "float", "t": "timestamp"}


def test_a_time_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(FileError, match='no column "ts"'):
        schema_of(FilePart(1, 1, b'{"a": 1}\n', row_files.NDJSON), "ts")
