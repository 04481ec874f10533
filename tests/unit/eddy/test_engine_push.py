"""Giving streams rows: the forms they may have, receipts, and commits over several streams."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from eddy import ConflictError, EddyError, Engine, NotFoundError, Receipt, RowError
from tests.unit.eddy.digest import at, digest, make_engine, row, signed, values

COLUMNS: dict[str, list[Any]] = {
    "sensor": [1, 2, None],
    "room": ["a", None, "b"],
    "temp": [31.5, None, 20.0],
    "ok": [True, False, None],
    "ts": [at(1000), at(1000), at(2000)],
}

FORMS = {
    "dict of lists": COLUMNS,
    "dict of tuples": {name: tuple(column) for name, column in COLUMNS.items()},
    "list of dicts": [dict(zip(COLUMNS, cells, strict=True)) for cells in zip(*COLUMNS.values(), strict=True)],
    "dicts that leave NULLs out": [
        {name: cell for name, cell in zip(COLUMNS, cells, strict=True) if cell is not None}
        for cells in zip(*COLUMNS.values(), strict=True)
    ],
    "numpy": {
        "sensor": np.ma.masked_array([1, 2, 0], [False, False, True]),
        "room": np.array(["a", None, "b"], object),
        "temp": np.ma.masked_array([31.5, 0.0, 20.0], [False, True, False]),
        "ok": np.ma.masked_array([True, False, False], [False, False, True]),
        "ts": np.array([1000, 1000, 2000], "datetime64[ms]"),
    },
    "Arrow table": pa.table(COLUMNS),
    "Arrow batch": pa.RecordBatch.from_pydict(COLUMNS),
    "Arrow reader": None,
    "pandas": pd.DataFrame(
        {**COLUMNS, "sensor": pd.array([1, 2, None], "Int64"), "ok": pd.array([True, False, None], "boolean")}
    ),
    "polars": pl.DataFrame(COLUMNS),
    "dict of Arrow arrays": {name: pa.array(column) for name, column in COLUMNS.items()},
    "other order, other case": {name.upper(): COLUMNS[name] for name in reversed(COLUMNS)},
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_any_form(form: str) -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    given = pa.table(COLUMNS).to_reader() if form == "Arrow reader" else FORMS[form]
    assert engine.push("readings", given) == Receipt(3, 0, 0, 2)
    assert query.answer().to_pydict() == COLUMNS
    engine.check()


def test_a_missing_column_is_null_and_an_unknown_one_an_error() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor, room, temp, ok FROM readings [RANGE 1 HOUR]")
    engine.push("readings", {"ts": [1000]})
    assert query.answer().to_pylist() == [{"sensor": None, "room": None, "temp": None, "ok": None}]
    with pytest.raises(EddyError) as error:
        engine.push("readings", {"ts": [1000], "tempp": [1.0]})
    assert (error.value.code, error.value.hint) == ("unknown_column", 'did you mean "temp"?')


def test_the_engine_keeps_its_own_copy_of_arrays_pushed() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    sensors, times = np.array([1, 2]), np.array([1000, 2000])
    engine.push("readings", {"sensor": sensors, "ts": times})
    sensors[:] = 9
    times[:] = 0
    assert values(query.answer()) == [1, 2]


def test_waiting_rows_are_a_copy_too() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp[us]"}, time="ts", lateness=10_000)
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    numbers, times = np.array([1, 2]), np.array([1_000_000, 2_000_000])
    engine.push("s", {"v": numbers, "ts": times})
    numbers[:] = 9
    times[:] = 0
    engine.advance(60_000)
    assert values(query.answer()) == [1, 2]


def test_receipts_number_the_rows_of_a_stream_in_order_of_acceptance() -> None:
    engine = make_engine()
    assert engine.push("readings", [row(1), row(2)]) == Receipt(2, 0, 0, 1)
    assert engine.push("readings", [row(5), row(1), row(4)]) == Receipt(3, 1, 2, 4)
    receipt = engine.push("readings", [row(6)])
    assert (receipt.accepted, receipt.late, receipt.first_row, receipt.last_row) == (1, 0, 5, 5)


def test_a_dropped_row_gets_no_number() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", late="drop")
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    engine.push("s", {"v": [1], "ts": [5000]})
    assert engine.push("s", {"v": [2, 3, 4], "ts": [4999, 5000, 1]}) == Receipt(1, 2, 1, 1)
    assert engine.push("s", {"v": [5], "ts": [1]}) == Receipt(0, 1, None, None)
    assert engine.push("s", {"v": [6], "ts": [6000]}) == Receipt(1, 0, 2, 2)
    assert values(query.answer()) == [1, 3, 6]
    assert engine.trace("s", 1)["row"]["values"]["v"] == 3
    assert engine.trace("s", 2)["row"]["values"]["v"] == 6


def test_an_empty_push_is_a_commit_without_rows() -> None:
    engine = make_engine()
    for empty in ([], {"ts": []}, {name: [] for name in COLUMNS}, pa.table(COLUMNS).slice(0, 0)):
        seq = engine.stats()["seq"]
        assert engine.push("readings", empty) == Receipt(0, 0, None, None)
        assert engine.stats()["seq"] == seq + 1
    engine.check()


def test_strings_of_any_kind_come_back_as_they_were() -> None:
    texts = ["", "a", "ä", "\U0001f600", "x\x00y", "line\nbreak", "a" * 1000, "'", '"', "NULL"]
    engine = make_engine()
    query = engine.submit("SELECT room FROM readings [RANGE 1 HOUR]")
    engine.push("readings", {"room": texts, "ts": [1000] * len(texts)})
    assert values(query.answer()) == texts


def test_numbers_at_the_edges_come_back_as_they_were() -> None:
    ints = [0, -1, 2**63 - 1, -(2**63)]
    floats = [float("inf"), float("-inf"), 5e-324, -0.0]
    engine = make_engine()
    query = engine.submit("SELECT sensor, temp FROM readings [RANGE 1 HOUR]")
    engine.push("readings", {"sensor": ints, "temp": floats, "ts": [1] * 4})
    assert query.answer().to_pydict() == {"sensor": ints, "temp": floats}
    assert str(values(query.answer(), "temp")[3]) == "-0.0"


def test_push_many_is_one_commit_merged_by_time() -> None:
    engine = two_streams()
    queries = [engine.submit(f"SELECT v FROM {name} [RANGE 1 HOUR]") for name in ("a", "b")]
    receipts = engine.push_many({"b": {"v": [3, 4], "ts": [1000, 4000]}, "a": {"v": [1, 2], "ts": [2000, 3000]}})
    assert receipts == {"b": Receipt(2, 0, 0, 1), "a": Receipt(2, 0, 0, 1)}
    assert list(receipts) == ["b", "a"]
    assert engine.stats()["seq"] == 1
    assert [values(query.answer()) for query in queries] == [[1, 2], [3, 4]]
    assert signed(queries[0].changes(0)) == [(2000, 1, 1), (3000, 1, 2)]
    assert {change.seq for query in queries for change in query.changes(0)} == {1}


def test_no_row_of_push_many_lags_though_the_same_rows_in_two_pushes_do() -> None:
    together, apart = two_streams(), two_streams()
    rows = {"a": {"v": [1], "ts": [5000]}, "b": {"v": [2], "ts": [2000]}}
    queries = [engine.submit("SELECT v FROM b [RANGE 2 SECONDS]") for engine in (together, apart)]
    together.push_many(rows)
    for name, given in rows.items():
        apart.push(name, given)
    assert [values(query.answer()) for query in queries] == [[], []]
    wide = [engine.submit("SELECT v FROM b [RANGE 10 SECONDS]") for engine in (together, apart)]
    more = {"a": {"v": [1], "ts": [9000]}, "b": {"v": [3], "ts": [6000]}}
    together.push_many(more)
    for name, given in more.items():
        apart.push(name, given)
    assert [signed(query.changes(0)) for query in wide] == [[(6000, 1, 3)], [(9000, 1, 3)]]


def test_push_many_gives_the_same_result_however_small_the_batches() -> None:
    rng = np.random.default_rng(5)
    rows = {
        name: {"v": rng.integers(0, 9, 300), "ts": np.sort(rng.integers(0, 4000, 300))} for name in ("a", "b")
    }  # fmt: skip
    found = []
    for batch_rows in (1, 7, 4096):
        engine = two_streams(batch_rows=batch_rows)
        queries = [engine.submit(f"SELECT v FROM {name} [RANGE 1 SECOND] WHERE v > 4") for name in ("a", "b")]
        engine.push_many(rows)
        found.append([signed(query.changes(0)) for query in queries])
    assert found[0] == found[1] == found[2]


def test_push_many_refuses_streams_of_two_timelines() -> None:
    engine = two_streams()
    engine.create_stream("c", {"v": "int", "ts": "timestamp"}, time="ts", timeline="other")
    before = digest(engine)
    with pytest.raises(ConflictError, match="main, other") as error:
        engine.push_many({"a": {"ts": [1]}, "c": {"ts": [1]}})
    assert (error.value.code, error.value.hint) == ("two_timelines", "push them apart")
    assert digest(engine) == before


def test_push_many_refuses_a_stream_named_twice() -> None:
    engine = two_streams()
    before = digest(engine)
    with pytest.raises(EddyError) as error:
        engine.push_many({"a": {"ts": [1]}, "A": {"ts": [1]}})
    assert error.value.code == "bad_rows"
    assert digest(engine) == before


@pytest.mark.parametrize("rows", [{}, [], None, "a"])
def test_push_many_takes_a_mapping(rows: Any) -> None:
    engine = two_streams()
    before = digest(engine)
    with pytest.raises(EddyError) as error:
        engine.push_many(rows)
    assert error.value.code == "bad_rows" and error.value.hint
    assert digest(engine) == before


def test_push_many_names_streams_in_any_case_and_receipts_carry_the_names_given() -> None:
    assert list(two_streams().push_many({"A": {"ts": [1]}})) == ["A"]


def test_push_many_with_an_unknown_stream_takes_nothing() -> None:
    engine = two_streams()
    before = digest(engine)
    with pytest.raises(NotFoundError) as error:
        engine.push_many({"a": {"ts": [1]}, "z": {"ts": [1]}})
    assert error.value.code == "unknown_stream"
    assert digest(engine) == before


def test_a_push_of_more_rows_than_a_page_and_a_batch_hold() -> None:
    engine = make_engine(batch_rows=1000)
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE sensor % 1000 = 0")
    n = 40_000
    assert engine.push("readings", {"sensor": np.arange(n), "ts": np.full(n, 1000)}) == Receipt(n, 0, 0, n - 1)
    assert values(query.answer()) == list(range(0, n, 1000))
    engine.check()


def test_times_come_in_as_numbers_texts_and_datetimes() -> None:
    engine = make_engine()
    query = engine.submit("SELECT ts FROM readings [RANGE 1 HOUR]")
    times = [
        1000,
        1500.5,
        "1970-01-01T00:00:02Z",
        "1970-01-01T01:00:03+01:00",
        datetime(1970, 1, 1, 0, 0, 4),
        np.datetime64(5, "s"),
    ]
    engine.push("readings", [{"ts": time} for time in times])
    assert values(query.answer()) == [at(1000), at(1500.5), at(2000), at(3000), at(4000), at(5000)]
    assert values(query.answer())[0].tzinfo is not None
    assert values(query.answer())[0].astimezone(UTC) == at(1000)


def two_streams(**options: Any) -> Engine:
    engine = Engine(**options)
    for name in ("a", "b"):
        engine.create_stream(name, {"v": "int", "ts": "timestamp"}, time="ts")
    return engine


@pytest.mark.parametrize(
    ("time", "says_units"),
    [("2030-01-01T00:00:00Z", False), (1_893_456_000_000, False), ("2026-11-18T12:00:00Z", False), (250_000_000_000_000, True)],
)
def test_a_time_too_far_ahead_is_told_of_the_clock_and_of_units_only_where_one_may_be_wrong(time: Any, says_units: bool) -> None:
    engine = Engine(clock=lambda: "2026-11-18T05:00:00Z", max_ahead=3_600_000)
    engine.create_stream("s", {"ts": "timestamp"}, time="ts")
    for call in (lambda: engine.push("s", [{"ts": time}]), lambda: engine.advance(time)):
        with pytest.raises(RowError) as refused:
            call()
        assert refused.value.code == "too_far_ahead" and refused.value.hint is not None
        assert "the clock here says 2026-11-18T05:00:00Z" in refused.value.hint and "max_ahead" in refused.value.hint
        assert ("milliseconds" in refused.value.hint) == says_units
