"""Files of rows in parts, and what columns they have; CSV files sorted."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from api.commands import csv_files, row_files
from api.commands.csv_files import CsvFile, columns_of, in_order, naive_columns
from api.commands.row_files import FileError, FilePart, open_rows, schema_of
from api.wire.bodies import parse_csv, parse_rows
from eddy import EddyError
from eddy.csv import CsvError, CsvForm, decode


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


# -- CSV files on the client's side: cut, judged and sorted ------------------------------------------------------------


def bodies(content: bytes, part_bytes: int = 1 << 20, part_rows: int = 10_000, **texts: Any) -> list[tuple[int, int, bytes]]:
    return list(CsvFile(io.BytesIO(content), texts).bodies(part_bytes, part_rows))


@pytest.mark.parametrize("seed", range(6))
def test_parts_have_the_rows_of_the_whole_however_it_is_cut(seed: int) -> None:
    draw = random.Random(seed)
    text = io.StringIO(newline="")
    ending = draw.choice(["\n", "\r\n"])
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(text, delimiter=draw.choice(",;\t"), quoting=quoting, lineterminator=ending)
    writer.writerow(["n", "t"])
    for n in range(draw.randrange(1, 200)):
        writer.writerow([n, "".join(draw.choice(f'ab";,\t é{ending}') for _ in range(draw.randrange(12)))])
        if not draw.randrange(10):
            text.write(ending)
    content = text.getvalue().encode()
    file = CsvFile(io.BytesIO(content), {"delimiter": writer.dialect.delimiter})
    parts = list(file.bodies(draw.choice([16, 100, 1000]), draw.choice([3, 50])))
    assert sum(n_rows for n_rows, _, _ in parts) == decode(content, {}, file.form).table.num_rows
    assert sum(n_bytes for _, n_bytes, _ in parts) <= len(content)
    whole = decode(content, {"n": "int"}, file.form).table.to_pylist()
    assert [row for _, _, body in parts for row in decode(body, {"n": "int"}, file.form).table.to_pylist()] == whole


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        (b"a,b\n1,2\n", ","), (b"a;b\n1,5;2\n", ";"), (b"a\tb\n1;2\t2\n", "\t"), (b"a|b\n1|2\n", "|"), (b"a\n1\n", ","),
        (b'a,b\n1,"x;y"\n2,"x;z"\n', ","), (b'"a;b",c\n1,2\n', ","), (b"1,5;2,5\n3,5;4,5\n", ";"), (b"", ","),
    ],
)  # fmt: skip
def test_the_delimiter_is_the_one_that_lines_have_in_equal_number(content: bytes, delimiter: str) -> None:
    assert CsvFile(io.BytesIO(content), {}).form.delimiter == delimiter
    assert CsvFile(io.BytesIO(content), {"delimiter": "|"}).form.delimiter == "|"


@pytest.mark.parametrize(
    ("content", "time", "types"),
    [
        (b"a,x,s,b,t\n1,0.5,lab,true,2024-01-01T00:00:00Z\n", "t",
         {"a": "int", "x": "float", "s": "string", "b": "bool", "t": "timestamp"}),
        (b"t\n1700000000\n", "t", {"t": "timestamp[s]"}), (b"t\n1331901000.25\nNA\n", "t", {"t": "timestamp[s]"}),
        (b"t\n1700000000000\n", "t", {"t": "timestamp"}), (b"t\n1000\n", "t", {"t": "timestamp"}),
        (b"t\n1700000000000000\n", "t", {"t": "timestamp[us]"}), (b"t\n1700000000000000000\n", "t", {"t": "timestamp[ns]"}),
        (b"t\n1700000000\n", None, {"t": "int"}), (b"a.b\nNA\n-\n", None, {"a_b": "string"}),
        (b"n\nNA\n1\n", None, {"n": "int"}), (b"Time Stamp\n1000\n", "Time Stamp", {"Time_Stamp": "timestamp"}),
        (b"Time Stamp\n1000\n", "time_stamp", {"Time_Stamp": "timestamp"}),
    ],
)  # fmt: skip
def test_columns_of_a_csv_file_are_what_the_first_rows_look_like(content: bytes, time: str | None, types: dict[str, str]) -> None:
    assert columns_of([content], CsvForm(), time, {}).types == types


def test_types_that_are_said_are_not_guessed() -> None:
    found = columns_of([b"zip,PM2.5,ts\n00501,1,1\n"], CsvForm(), "ts", {"zip": "string", "PM2.5": "float"})
    assert found.types == {"zip": "string", "PM2_5": "float", "ts": "timestamp"} and found.time == "ts"
    with pytest.raises(CsvError, match='no column "nope"'):
        columns_of([b"a\n1\n"], CsvForm(), None, {"nope": "int"})


def test_what_was_guessed_is_noted() -> None:
    content = b"PM2.5,empty,temp,at\n" + b"1,,2.5,2024-01-01 10:00\n" * 20 + b"1,,n/a,2024-01-01 10:00\n"
    notes = columns_of([content], CsvForm(), "at", {}).notes
    assert len(notes) == 4
    for note, words in zip(notes, ("PM2_5", '"empty" is empty', '--null "n/a"', "taken as UTC")):
        assert words in note
    zoned = CsvForm.parse(tz="Europe/Berlin", rename=["PM2.5=pm"], null=["n/a"])
    assert [note for note in columns_of([content], zoned, "at", {}).notes if "empty" not in note] == []
    assert naive_columns(content, CsvForm(), {"at": "timestamp"}) == ["at"]
    assert naive_columns(b"at\n2024-01-01T00:00:00Z\n", CsvForm(), {"at": "timestamp"}) == []


def ordered(content: bytes, part_rows: int = 3) -> tuple[list[dict[str, Any]], list[int]]:
    types = {"ts": "timestamp", "n": "int"}
    parts = list(in_order(iter(bodies(content, part_rows=part_rows)), CsvForm(), types, "ts", 1 << 20, part_rows))
    rows = [row for part in parts for row in decode(part.body, {"n": "int"}, CsvForm(), skip=True).table.to_pylist()]
    return rows, [place for part in parts for place in part.places.tolist()]


def test_a_file_is_sorted_by_time_ties_as_they_stood_and_what_has_none_last() -> None:
    content = b'ts,n,s\n3000,0,"two\nlines"\n1000,1,x\noops,2,\n3000,3,y\nNA,4,\n2000,5,"a,b"\n1000,6,z\n7\n'
    rows, places = ordered(content)
    assert places == [1, 6, 5, 0, 3, 2, 4, 7]
    assert [row["n"] for row in rows] == [1, 6, 5, 0, 3, 2, 4] and rows[3]["s"] == "two\nlines"


def test_a_file_too_large_to_sort_is_refused_with_what_can() -> None:
    def sort(n_bytes: int) -> int:
        """Sort a file of two parts, which say that they are so long together."""
        parts = iter([(1, n_bytes - 1, b"ts,n\n1000,1\n"), (1, 1, b"ts,n\n1000,2\n")])
        return sum(part.n_rows for part in in_order(parts, CsvForm(), {"ts": "timestamp", "n": "int"}, "ts", 1 << 20, 3))

    assert sort(csv_files.SORT_BYTES) == 2
    with pytest.raises(CsvError) as caught:
        sort(csv_files.SORT_BYTES + 1)
    assert caught.value.code == "too_large_to_sort" and "eddy generate from" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the CSV is empty"), (b"\n\n", "the CSV is empty"), (b"#fields\tts\n", "grep"), (b"a,b\r1,2\r", "CR alone"),
        (b'a,b\n1,"x\n2,y\n', "never closed"), (b"a\n\xe9\n", "byte 2"), (b"\xef\xbb\xbfa\n1\n\xe9\n", "byte 7"),
    ],
)  # fmt: skip
def test_a_csv_file_that_cannot_be_read_is_refused_with_the_fact(content: bytes, words: str) -> None:
    with pytest.raises(CsvError) as caught:
        bodies(content)
    assert words in str(caught.value)


def test_a_file_without_names_keeps_its_first_line() -> None:
    assert bodies(b"1,2\n3,4", names="a,b") == [(2, 8, b"1,2\n3,4\n")]
