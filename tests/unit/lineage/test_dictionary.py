"""Strings, their codes, and two-step encoding."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage.dictionary import ENTRY_BYTES, MAX_STRING_BYTES, SMALL, BadString, Dictionary, EncodingPlan
from tests.reference.dictionaries import encode_list

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
COLUMN = st.lists(TEXTS | st.none(), max_size=8)


def decode(dictionary: Dictionary, codes: np.ndarray, plan: EncodingPlan) -> list[str | None]:
    nulls = np.zeros(len(codes), bool) if plan.nulls is None else plan.nulls
    return [None if null else dictionary.strings[code] for code, null in zip(codes.tolist(), nulls)]


def test_codes_count_from_0_in_the_order_of_first_use() -> None:
    rooms = Dictionary()
    assert [rooms.code(s) for s in ("b", "a", "b", "")] == [0, 1, 0, 2]
    assert rooms.strings == ["b", "a", ""] and len(rooms) == 3
    assert rooms.find("a") == 1 and rooms.find("c") == -1 and len(rooms) == 3
    rooms.check()


@given(COLUMN, st.sampled_from([1, SMALL]))
def test_a_list_comes_back_whatever_its_length(values: list[str | None], times: int) -> None:
    values = values * times
    rooms = Dictionary()
    plan = rooms.prepare_list(values)
    assert len(rooms) == 0
    codes = rooms.commit(plan)
    assert codes.dtype == np.int64 and len(codes) == len(plan) == len(values)
    assert decode(rooms, codes, plan) == values
    assert (plan.nulls is None) == (None not in values)
    assert len(rooms) == len({value for value in values if value is not None})
    rooms.check()


ARROW_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]


@given(COLUMN, COLUMN, st.sampled_from(ARROW_TYPES))
def test_an_arrow_column_comes_back_in_every_encoding(
    first: list[str | None], second: list[str | None], kind: pa.DataType
) -> None:
    # dictionary arrays cannot be made from Python for every value type, so they are cast
    def made(values: list[str | None]) -> pa.Array:
        plain = pa.array(values, kind.value_type if pa.types.is_dictionary(kind) else kind)
        return plain.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else plain

    for column in (made(first), pa.chunked_array([made(first), made(second)]), pa.chunked_array([], kind)):
        rooms = Dictionary()
        plan = rooms.prepare_arrow(column)
        assert decode(rooms, rooms.commit(plan), plan) == column.to_pylist()
        rooms.check()


def test_a_slice_of_a_foreign_dictionary_interns_only_what_it_uses() -> None:
    entries = pa.array(["unused", "x", None, "y", "x"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3, 4, 1]), entries).slice(1)
    rooms = Dictionary()
    plan = rooms.prepare_arrow(column)
    assert decode(rooms, rooms.commit(plan), plan) == ["x", None, None, "y", "x", "x"]
    assert rooms.strings == ["x", "y"]


@given(COLUMN, COLUMN)
def test_two_plans_for_one_dictionary_may_be_committed_in_any_order(first: list[str | None], second: list[str | None]) -> None:
    rooms = Dictionary()
    plans = [rooms.prepare_list(first), rooms.prepare_list(second * SMALL)]
    got = [decode(rooms, rooms.commit(plan), plan) for plan in reversed(plans)]
    assert got == [second * SMALL, first]
    rooms.check()


@pytest.mark.parametrize("padding", [0, SMALL])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (5, "type"),
        (b"x", "type"),
        ("\ud800", "surrogate"),
        ("x" * (MAX_STRING_BYTES + 1), "too_long"),
        ("é" * 600_000, "too_long"),
    ],
)
def test_a_bad_string_is_named_and_nothing_is_interned(padding: int, bad: object, reason: str) -> None:
    rooms = Dictionary()
    with pytest.raises(BadString) as caught:
        encode_list(rooms, ["new"] * padding + ["a", None, bad, 7])  # type: ignore[list-item]  # what is tested
    assert (caught.value.reason, caught.value.row) == (reason, padding + 2)
    assert len(rooms) == 0 and rooms.bytes == 0


def test_a_string_of_exactly_the_limit_is_taken() -> None:
    rooms = Dictionary()
    assert encode_list(rooms, ["x" * MAX_STRING_BYTES, "é" * (MAX_STRING_BYTES // 2)]).tolist() == [0, 1]


def test_an_arrow_column_names_its_bad_row_too() -> None:
    rooms = Dictionary()
    with pytest.raises(BadString) as caught:
        rooms.prepare_arrow(pa.array([None, "a", "x" * (MAX_STRING_BYTES + 1)]))
    assert (caught.value.reason, caught.value.row) == ("too_long", 2)
    broken = pa.StringArray.from_buffers(3, pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"a\xffb"))
    with pytest.raises(BadString) as caught:
        rooms.prepare_arrow(broken)
    assert (caught.value.reason, caught.value.row) == ("surrogate", 1)
    assert rooms.commit(rooms.prepare_arrow(broken.slice(2))).tolist() == [0]
    assert rooms.strings == ["b"]


def test_subclasses_of_str_are_stored_as_plain_strings() -> None:
    class Room(StrEnum):
        HALL = "hall"

    for times in (1, SMALL + 1):
        rooms = Dictionary()
        encode_list(rooms, [Room.HALL, np.str_("hall"), "hall"] * times)
        assert rooms.strings == ["hall"] and type(rooms.strings[0]) is str


def test_bytes_are_counted_as_strings_come_and_go() -> None:
    rooms = Dictionary()
    encode_list(rooms, ["ab", "é", "ab"])
    assert rooms.bytes == 2 + 2 + 2 * ENTRY_BYTES
    rooms.compact(np.array([1]))
    assert rooms.bytes == 2 + ENTRY_BYTES
    rooms.check()


def test_the_array_of_strings_grows_and_old_views_stay_right() -> None:
    rooms = Dictionary()
    views = []
    for i in range(100):
        rooms.code(str(i))
        views.append(rooms.as_array())
    assert all(view.tolist() == [str(j) for j in range(i + 1)] for i, view in enumerate(views))
    with pytest.raises(ValueError, match="read-only"):
        views[0][0] = "x"


@given(st.lists(TEXTS, unique=True, max_size=10), st.data())
def test_compact_keeps_the_used_strings_in_order(strings: list[str], data: st.DataObject) -> None:
    rooms = Dictionary()
    encode_list(rooms, strings)
    rooms.as_array()
    used = data.draw(st.lists(st.sampled_from(range(len(strings))))) if strings else []
    remap = rooms.compact(np.array(used, np.int64))
    assert remap.dtype == np.int64 and len(remap) == len(strings)
    assert rooms.strings == [strings[code] for code in sorted(set(used))] == rooms.as_array().tolist()
    assert all(rooms.strings[new] == strings[old] for old, new in enumerate(remap.tolist()) if new >= 0)
    assert {old for old, new in enumerate(remap.tolist()) if new < 0} == set(range(len(strings))) - set(used)
    rooms.check()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_chunks_with_dictionaries_of_their_own_may_have_entries_that_are_null(kind: pa.DataType) -> None:
    def chunk(entries: list[str | None], indices: list[int | None]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(entries, kind))

    shared = chunk(["b", None], [0, 1, 0])
    values = pa.chunked_array([chunk(["a", None], [0, 1, None]), shared, shared.slice(1)])
    dictionary = Dictionary()
    plan = dictionary.prepare_arrow(values)
    codes = dictionary.commit(plan)
    texts = dictionary.strings
    found = [None if null else texts[code] for code, null in zip(codes.tolist(), plan.nulls.tolist())]
    assert found == values.to_pylist() == ["a", None, None, "b", None, "b", None, "b"]
    assert sorted(texts) == ["a", "b"]
