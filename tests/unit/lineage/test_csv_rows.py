"""CSV bodies as tables: what a cell means, what is NULL, and a clear answer to every bad one."""

from __future__ import annotations

import csv
import io
import random
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from lineage import csv_cells, csv_rows
from lineage.csv_cells import infer, local_to_us, read
from lineage.csv_form import CsvError, CsvForm, from_texts
from lineage.csv_rows import decode, record_end
from lineage.errors import EddyError, LimitError, RowError

TYPES = {"a": "int", "b": "float", "c": "string", "d": "bool", "t": "timestamp"}


def rows(body: bytes, types: dict[str, str] = TYPES, **texts: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = decode(body, types, CsvForm.parse(**texts)).table.to_pydict()
    return found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"a,b,c,d\n1,2.5,x,true\n,,,\n", {"a": [1, None], "b": [2.5, None], "c": ["x", None], "d": [True, None]}),
        (b"a,b,c,d,t\nNA,NA,NA,NA,NA\n-,-,-,-,-\n",
         {"a": [None] * 2, "b": [None] * 2, "c": ["NA", "-"], "d": [None] * 2, "t": [None] * 2}),
        (b'a,c\n"",""\n', {"a": [None], "c": [None]}),
        (b"a,b,c\n 12 , 1e3 , x \n", {"a": [12], "b": [1000.0], "c": [" x "]}),
        (b"a,b\n+5,.5\n-0,-inf\n", {"a": [5, 0], "b": [0.5, float("-inf")]}),
        (b"d\nT\nf\nTRUE\nno\n1\n", {"d": [True, False, True, False, True]}),
        (b'\xef\xbb\xbfC,t\n"1,5",1000\n', {"c": ["1,5"], "t": [datetime(1970, 1, 1, 0, 0, 1)]}),
        (b"t\r\n2024-05-01T12:00:00Z\r\n\r\n2024-05-01T12:00:00+02:00",
         {"t": [datetime(2024, 5, 1, 12), datetime(2024, 5, 1, 10)]}),
        (b"t,c\n1700000000123,two\n1.5,three\n",
         {"t": [datetime(2023, 11, 14, 22, 13, 20, 123_000), datetime(1970, 1, 1, 0, 0, 0, 1500)], "c": ["two", "three"]}),
        (b'c,a\n"two\nlines",1\n"a ""word""",2\n5" pipe,3\n', {"c": ["two\nlines", 'a "word"', '5" pipe'], "a": [1, 2, 3]}),
        (b"\n\na\n1\n", {"a": [1]}),
        (b"a,c\n", {"a": [], "c": []}),
        (b"b\n" + b"9" * 5000 + b"\n", {"b": [float("inf")]}),
        (b"c\na\x00b\n", {"c": ["a\x00b"]}),
        (b"c\n" + b"x" * 300_000 + b"\n", {"c": ["x" * 300_000]}),
    ],
)  # fmt: skip
def test_cells_mean_what_their_column_says(body: bytes, found: dict[str, list[Any]]) -> None:
    assert rows(body) == found


@pytest.mark.parametrize(
    ("texts", "body", "found"),
    [
        ({"delimiter": ";", "decimal": ","}, b"b;c\n1,5;x,y\n", {"b": [1.5], "c": ["x,y"]}),
        ({"delimiter": "tab", "names": "a,c"}, b"1\tx\n2\ty\n", {"a": [1, 2], "c": ["x", "y"]}),
        ({"null": ["NA", "-999"]}, b"a,c\n-999,NA\n1,-\n", {"a": [None, 1], "c": [None, "-"]}),
        ({"rename": ["id.orig_h=c"]}, b"a,id.orig_h\n1,x\n", {"a": [1], "c": ["x"]}),
        ({"tz": "Europe/Berlin"}, b"t\n2024-07-01 12:00\n2024-07-01 12:00Z\n",
         {"t": [datetime(2024, 7, 1, 10), datetime(2024, 7, 1, 12)]}),
        ({"time_format": "%d/%m/%Y %I:%M %p"}, b"t\n1/2/2024 1:05 PM\n", {"t": [datetime(2024, 2, 1, 13, 5)]}),
        ({"time": "t=day_,clock"}, b"day_,clock,a\n2024-02-01,12:30,1\n", {"t": [datetime(2024, 2, 1, 12, 30)], "a": [1]}),
        ({"time": "t=year,month,day,hour"}, b"year,month,day,hour\n2013,1,1,5\n", {"t": [datetime(2013, 1, 1, 5)]}),
        ({"time": "t=Date,c", "time_format": "%d.%m.%y %H"}, b"Date,c\n1.2.24,7\n", {"c": ["7"], "t": [datetime(2024, 2, 1, 7)]}),
    ],
)  # fmt: skip
def test_a_form_says_how_a_csv_is_written(texts: dict[str, Any], body: bytes, found: dict[str, list[Any]]) -> None:
    assert rows(body, **texts) == found
    # what the journal keeps gives the same rows
    assert decode(body, TYPES, from_texts(CsvForm.parse(**texts).texts())).table.to_pydict() == found


def test_names_no_column_can_have_are_known_by_their_plain_form() -> None:
    types = {"PM2_5": "float", "id_orig_h": "string", "Temp_C": "int"}
    assert rows(b"pm2.5,id.orig_h, Temp (C)\n1.5,x,2\n", types) == {"PM2_5": [1.5], "id_orig_h": ["x"], "Temp_C": [2]}
    assert rows(b"nope.x\n1\n", types) == {"nope.x": ["1"]}, "the engine says that there is none"


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"", CsvError, "the CSV is empty"),
        (b"\n\r\n", CsvError, "the CSV is empty"),
        (b"a,a\n1,2\n", CsvError, 'two columns "a"'),
        (b"c.,c\n1,2\n", CsvError, "would be one column"),
        (b"a,c\n1,\xe9\n", CsvError, "not UTF-8\nbyte 6"),
        (b"\xff\xfea\x00\n\x00", CsvError, "utf-16"),
        (b'a,c\n1,"x\n2,y\n', CsvError, "never closed"),
        (b'a,"c\n1,x\n', CsvError, "never closed"),
        (b"," * 600 + b"\n", CsvError, "more than 512"),
        (b"a,c\n1,x\n2\n", RowError, "the row has 1 cell, there are 2 columns (row 1)"),
        (b"a,c\n1,x\n\n2,y,z\n", RowError, "the row has 3 cells, there are 2 columns (row 1)"),
        (b"c,a\nx,1\ny,zwei\n", RowError, '"zwei" is not an int (row 1, column "a")'),
        (b"a\nn/a\n", RowError, "--null"),
        (b"a\n" + b"9" * 5000 + b"\n", RowError, "does not fit 64 bits"),
        (b"a\n9223372036854775808\n", RowError, "does not fit 64 bits"),
        (b"a\n0x1F\n", RowError, '"0x1F" is not an int'),
        (b"a\n1.5\n", RowError, "declare the column float"),
        (b"a\n1\x00\n", RowError, "is not an int"),
        (b'b\n"1,5"\n', RowError, "--decimal ,"),
        (b"b\nnan(7)\n", RowError, "is not a float"),
        (b"d\nmaybe\n", RowError, "true or false"),
        (b"t\n1/2/2024\n", RowError, "--time-format"),
        (b"t\n2024-02-30\n", RowError, "is not a time"),
        (b"t\n99999999999999999\n", RowError, "not within the years"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_and_where(body: bytes, kind: type[EddyError], words: str) -> None:
    with pytest.raises(kind) as caught:
        rows(body)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"delimiter": "ab"}, "cannot stand between cells"), ({"delimiter": '"'}, "cannot stand"), ({"delimiter": "é"},
         "cannot stand"),
        ({"decimal": ","}, "decimal"), ({"tz": "Mars/Olympus"}, "no zone"), ({"time_format": "%d/%m"}, "no year"),
        ({"time_format": "%Y-%m-%d %Q"}, "no part of a time"), ({"rename": ["a"]}, "old=new"), ({"rename": ["a=b.c"]}, "old=new"),
        ({"rename": ["a=b", "a=c"]}, "twice"), ({"names": "a,,b"}, "empty"), ({"time": "ts"}, "name=column"),
        ({"time": "t.s=a,b"}, "valid column name"), ({"null": ["x"] * 101}, "too many words"),
    ],
)  # fmt: skip
def test_a_form_that_makes_no_sense_is_refused(texts: dict[str, Any], words: str) -> None:
    with pytest.raises(CsvError) as caught:
        CsvForm.parse(**texts)
    assert caught.value.code == "bad_csv_form" and words in str(caught.value)


def test_columns_that_a_form_names_must_be_there() -> None:
    for texts in ({"rename": ["nope=x"]}, {"time": "t=nope,b"}):
        with pytest.raises(CsvError, match='no column "nope"'):
            rows(b"a,b\n1,2\n", **texts)


def test_bad_rows_are_left_out_one_by_one_and_named() -> None:
    found = decode(b"a,b,c\n1,2,x\n3\nzwei,4,y\n5,vier,z\n6,7,ok\n,NA,\n", TYPES, skip=True)
    assert found.table.to_pydict() == {"a": [1, 6, None], "b": [2.0, 7.0, None], "c": ["x", "ok", None]}
    assert found.numbers.tolist() == [0, 4, 5]
    assert [(error.row, error.column) for error in found.errors] == [(1, None), (2, "a"), (3, "b")]
    assert found.nulls() == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("body", [b"a\n" + b",,\n" * 20_000, b"a\n" + b"x\n" * 20_000])
def test_with_too_many_bad_rows_something_else_is_wrong(body: bytes) -> None:
    with pytest.raises(LimitError, match="more than 10000"):
        decode(body, TYPES, skip=True)


def _before(text: str, kind: str) -> Any:
    """What a cell meant before there was a form."""
    if text == "":
        return None
    try:
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
        if kind == "timestamp":
            return float(text) if "." in text else int(text)
    except ValueError:
        return text
    if kind == "bool":
        word = text.lower()
        return True if word in csv_cells.TRUE else False if word in csv_cells.FALSE else text
    return text


@pytest.mark.parametrize("seed", range(8))
def test_bodies_of_old_journals_give_the_rows_they_gave(seed: int) -> None:
    draw = random.Random(seed)
    cells = {
        "a": lambda: draw.choice(["", str(draw.randrange(-(2**63), 2**63)), "007", " 12 ", "+3", "1_000"]),
        "b": lambda: draw.choice(["", repr(draw.uniform(-1e9, 1e9)), "1e-7", "nan", "inf", "12", " 5.0", "1e400"]),
        "c": lambda: "".join(draw.choice('ab,";\n\r é-') for _ in range(draw.randrange(6))),
        "d": lambda: draw.choice(["", "true", "F", "yes", "0", "No"]),
        "t": lambda: draw.choice(["", "1000", "-1.5", "1700000000000"]),
    }
    given = [{name: cell() for name, cell in cells.items()} for _ in range(draw.choice([1, 30, 300]))]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(cells), quoting=draw.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
    writer.writeheader()
    writer.writerows(given)
    found = decode(text.getvalue().encode(), TYPES).table.to_pydict()
    for name, kind in TYPES.items():
        wanted = [_before(row[name], kind) for row in given]
        if name == "t":
            wanted = [None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None) for ms in wanted]
        assert str(found[name]) == str(wanted)


@pytest.mark.parametrize("kind", ["int", "float", "bool", "timestamp", "timestamp[s]"])
def test_a_cell_means_the_same_whatever_stands_beside_it(kind: str) -> None:
    texts = [
        "", " ", "NA", " NA ", "-", "1", " 1", "1.", "1.0", "1e3", "+1", "1_0", "0x1", "nan", "NaN(1)", "inf", "true",
        "T", "1700000000",
        "1700000000.25", "2024-05-01", "2024-05-01 10:00", "2024-05-01T10:00:00+02:00", "9" * 30, "x", "1,5", "\u0661",
        "-5", "-5.5",
    ]  # fmt: skip
    for form in (CsvForm(), CsvForm.parse(tz="America/New_York"), CsvForm.parse(decimal=",", delimiter=";")):
        together, bad = read(pa.array(texts), kind, form)
        for n, text in enumerate(texts):
            alone, wrong = read(pa.array([text]), kind, form)
            again, doubly = read(pa.array([text] * 3), kind, form)
            assert (wrong is not None) == bool(bad is not None and bad[n]) == (doubly is not None), text
            assert str(alone[0].as_py()) == str(together[n].as_py()) == str(again[2].as_py()), text


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"])
def test_local_times_are_those_of_pythons_zones_also_where_clocks_are_changed(zone: str) -> None:
    draw = random.Random(zone)
    local = [datetime(2024, 1, 1).timestamp() + 900 * n for n in range(0, 35_000, 3)]
    us = [round(draw.choice([second, second + draw.randrange(900)])) * 1_000_000 for second in local]
    found = local_to_us(pa.array(us).to_numpy(), zone)
    there = ZoneInfo(zone)
    for one, utc in zip(us, found.tolist()):
        wanted = datetime.fromtimestamp(one / 1e6, UTC).replace(tzinfo=there).timestamp()
        assert round(wanted * 1e6) == utc


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "NA", ""], "int"), (["1", "2.5", "-"], "float"), (["T", "F"], "bool"), (["F", "F"], "string"), (["true"], "bool"),
        (["0", "1"], "int"), (["2024-01-01", "2024-01-01T10:00:00Z"], "timestamp"), (["NA", "x"], "string"), (["NA", "-",
         ""], None),
        (["12:30", "13:00"], "string"), ([str(n) for n in range(100)] + ["x"], "string"), (["1e5"], "float"), (["yes",
         "no"], "bool"),
    ],
)  # fmt: skip
def test_a_column_has_the_narrowest_type_of_all_its_cells(cells: list[str], kind: str | None) -> None:
    assert infer(pa.array(cells), CsvForm()) == kind


@pytest.mark.parametrize("body", [b'1,"a\nb"\n2,c\n', b'"x""y\n",2\r\n3', b'a"b,c\n"d', b"\n", b"a\rb"])
def test_a_record_ends_where_arrow_ends_it(body: bytes) -> None:
    at, n_records = 0, 0
    while at < len(body):
        end = record_end(body, at, ",")
        n_records += bool(body[at : end or len(body)].strip(b"\r\n"))
        at = end or len(body)
    names = ["0", "1"]
    seen: list[int] = []
    table = csv_rows.pyarrow.csv.read_csv(
        pa.BufferReader(body),
        csv_rows.pyarrow.csv.ReadOptions(use_threads=False, column_names=names),
        csv_rows.pyarrow.csv.ParseOptions(
            newlines_in_values=True, invalid_row_handler=lambda row: seen.append(row.number) or "skip"
        ),
    )
    assert table.num_rows + len(seen) == n_records


def test_only_the_cells_of_a_column_that_fails_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    one_by_one = csv_cells._one_by_one
    monkeypatch.setattr(csv_cells, "_one_by_one", lambda texts, *rest: looked.append(len(texts)) or one_by_one(texts, *rest))
    body = b"a,b,t\n" + b"1,2.5,2024-01-01\nNA, -,2024-01-02\n" * 500
    assert decode(body, TYPES).nulls() == {"a": 500, "b": 500} and looked == []
    decode(body + b"1_0,3,2024-01-01\n", TYPES)
    assert looked == [1001]
