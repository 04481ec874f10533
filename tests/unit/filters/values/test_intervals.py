"""Sets of values of one attribute: every comparison against Python's exact one, every operation against membership."""

from __future__ import annotations

import math
import operator
import struct
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filters.values.intervals import NOT_NULL, NOTHING, ONLY_NULL, Intervals, compare, float_key, successor
from lineage.schema import KEY_MAX, KEY_MIN, Type

OPS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
EDGES = [0, 1, -1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, KEY_MAX, KEY_MAX - 1, KEY_MIN, KEY_MIN + 1, 2**63 - 1024]
INTS = st.integers(KEY_MIN, KEY_MAX) | st.sampled_from(EDGES) | st.integers(-3, 3) | st.integers(2**53 - 4, 2**53 + 4)
FLOAT_EDGES = [0.0, -0.0, 0.5, 5e-324, -5e-324, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e308, math.inf, -math.inf, math.nan]
FLOATS = st.floats() | st.sampled_from(FLOAT_EDGES) | st.integers(-6, 6).map(lambda n: n / 2)
#: beyond what a float can hold, and right beside floats
BIG_INTS = INTS | st.sampled_from([10**400, -(10**400), 2**63, 2**64 + 1, -(2**63) - 1, 2**1024, 2**1024 - 2**970])
TEXTS = st.text(max_size=3) | st.sampled_from(["", "\0", "\0\0", "a", "a\0", "a\x01", "b", "é", "\uffff", "\U0001f44d", "aa"])


def in_order(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values as Python compares exactly what the engine compares: NaN equals itself and is above all numbers."""
    if isinstance(a, str) or isinstance(b, str):
        return a.encode("utf-32-be", "surrogatepass"), b.encode("utf-32-be", "surrogatepass")
    return tuple((1, 0) if value != value else (0, value) for value in (a, b))  # type: ignore[return-value]  # two of them


def key_of(value: Any) -> Any:
    return float_key(value) if isinstance(value, float) else value


def expect(type_: Type, value: Any, constant: Any) -> None:
    for op, python in OPS.items():
        found = compare(type_, op, constant)
        assert found.holds(key_of(value)) is python(*in_order(value, constant)), f"{value!r} {op} {constant!r}: {found}"
        assert not found.holds(None)


@settings(max_examples=300, deadline=None)
@given(INTS, BIG_INTS)
@example(KEY_MAX, KEY_MAX)
@example(KEY_MIN, KEY_MIN)
@example(KEY_MAX, KEY_MAX + 1)
def test_an_int_compares_exactly_with_an_int(value: int, constant: int) -> None:
    expect(Type.INT, value, constant)
    expect(Type.TIMESTAMP, value, constant)


@settings(max_examples=400, deadline=None)
@given(INTS, FLOATS)
@example(2**53 + 1, 2.0**53)
@example(KEY_MAX, 2.0**63)
@example(KEY_MIN, -(2.0**63))
@example(KEY_MAX, math.nan)
@example(KEY_MIN, -math.inf)
@example(-2, -2.5)
def test_an_int_compares_exactly_with_a_float(value: int, constant: float) -> None:
    expect(Type.INT, value, constant)


@settings(max_examples=300, deadline=None)
@given(INTS)
def test_an_int_compares_exactly_with_the_floats_around_it(value: int) -> None:
    near = float(value)
    for constant in (near, math.nextafter(near, -math.inf), math.nextafter(near, math.inf)):
        expect(Type.INT, value, constant)


@settings(max_examples=400, deadline=None)
@given(FLOATS, FLOATS)
@example(math.nan, math.nan)
@example(0.0, -0.0)
@example(math.inf, math.nan)
def test_a_float_compares_with_a_float_as_duckdb_orders_them(value: float, constant: float) -> None:
    expect(Type.FLOAT, value, constant)


@settings(max_examples=400, deadline=None)
@given(FLOATS, BIG_INTS)
@example(2.0**53, 2**53 + 1)
@example(math.inf, 10**400)
@example(-math.inf, -(10**400))
@example(1.7976931348623157e308, 2**1024)
@example(math.nan, 10**400)
def test_a_float_compares_exactly_with_an_int(value: float, constant: int) -> None:
    expect(Type.FLOAT, value, constant)


@settings(max_examples=200, deadline=None)
@given(BIG_INTS)
def test_the_floats_around_an_int_compare_exactly_with_it(constant: int) -> None:
    try:
        near = float(constant)
    except OverflowError:
        near = math.inf if constant > 0 else -math.inf
    for value in (near, math.nextafter(near, -math.inf), math.nextafter(near, math.inf)):
        expect(Type.FLOAT, value, constant)


@settings(max_examples=400, deadline=None)
@given(TEXTS, TEXTS)
@example("", "")
@example("\0", "")
@example("a\0", "a")
@example("\uffff", "\U0001f44d")
def test_strings_compare_by_code_points(value: str, constant: str) -> None:
    expect(Type.STRING, value, constant)


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_bools_compare_false_before_true(value: bool, constant: bool) -> None:
    expect(Type.BOOL, value, constant)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("type_", [Type.INT, Type.FLOAT, Type.STRING, Type.BOOL, Type.TIMESTAMP])
def test_a_comparison_with_null_holds_nothing(op: str, type_: Type) -> None:
    assert compare(type_, op, None) == NOTHING


def test_what_is_no_comparison_is_refused() -> None:
    with pytest.raises(AssertionError, match="not a comparison: like"):
        compare(Type.STRING, "like", "a")


@pytest.mark.parametrize(
    ("type_", "op", "constant", "expected"),
    [
        (Type.INT, ">", 2.5, "[3, )"),
        (Type.INT, "=", 2.5, "nothing"),
        (Type.INT, "<>", 2.5, "[, )"),
        (Type.INT, "<=", KEY_MAX, "[, )"),
        (Type.INT, "<", KEY_MIN, "nothing"),
        (Type.INT, ">=", KEY_MIN, "[, )"),
        (Type.INT, ">", KEY_MAX, "nothing"),
        (Type.INT, "<>", 7, "[, 7) u [8, )"),
        (Type.STRING, ">=", "", "[, )"),
        (Type.STRING, "<", "", "nothing"),
        (Type.STRING, "=", "a", "['a', 'a\\x00')"),
    ],
)
def test_equal_sets_are_written_the_same_way(type_: Type, op: str, constant: Any, expected: str) -> None:
    assert str(compare(type_, op, constant)) == expected


# ---- sets


@st.composite
def int_sets(draw: st.DrawFn) -> Intervals:
    """Unions of small ranges, open or closed, with and without NULL."""
    found = NOTHING
    for _ in range(draw(st.integers(0, 4))):
        low, high = draw(st.integers(-2, 12)), draw(st.integers(-2, 12))
        found = found.union(compare(Type.INT, ">=", low).intersect(compare(Type.INT, "<", high)))
    if draw(st.booleans()):
        found = found.union(compare(Type.INT, draw(st.sampled_from(list(OPS))), draw(st.integers(-2, 12))))
    return found.union(ONLY_NULL) if draw(st.booleans()) else found


KEYS = [None, KEY_MIN, *range(-4, 15), KEY_MAX]


def members(intervals: Intervals) -> set[int | None]:
    return {key for key in KEYS if intervals.holds(key)}


@settings(max_examples=300, deadline=None)
@given(int_sets(), int_sets())
def test_union_and_intersection_are_those_of_the_sets(a: Intervals, b: Intervals) -> None:
    assert members(a.union(b)) == members(a) | members(b)
    assert members(a.intersect(b)) == members(a) & members(b)
    assert a.union(b) == b.union(a) and a.intersect(b) == b.intersect(a)


@settings(max_examples=300, deadline=None)
@given(int_sets(), int_sets())
def test_spans_are_sorted_disjoint_and_do_not_touch(a: Intervals, b: Intervals) -> None:
    for found in (a, a.union(b), a.intersect(b)):
        bounds = found.bounds()
        assert bounds == sorted(set(bounds)), "every bound is a change of membership"
        assert all(lo is None or hi is None or lo < hi for lo, hi in found.spans)
        assert all(span[0] is not None for span in found.spans[1:]) and all(span[1] is not None for span in found.spans[:-1])
        for bound in bounds:
            assert found.holds(bound) is not found.holds(bound - 1)


@settings(max_examples=200, deadline=None)
@given(int_sets(), int_sets())
def test_two_descriptions_of_one_set_are_equal(a: Intervals, b: Intervals) -> None:
    assert a.union(a.intersect(b)) == a == a.intersect(a.union(b))


@settings(max_examples=200, deadline=None)
@given(int_sets())
def test_points_are_given_exactly_when_every_span_holds_one_value(found: Intervals) -> None:
    points = found.points()
    single = all(lo is not None and hi is not None and hi == lo + 1 for lo, hi in found.spans)
    if found.null or not found.spans or not single:
        assert points is None
    else:
        assert points == sorted(key for key in members(found) if key is not None)


def test_points_of_the_last_int_of_strings_and_of_floats() -> None:
    assert compare(Type.INT, "=", KEY_MAX).points() == [KEY_MAX]
    assert compare(Type.STRING, "=", "b").union(compare(Type.STRING, "=", "a")).points() == ["a", "b"]
    assert compare(Type.FLOAT, "=", 1.5).points() == [float_key(1.5)]
    assert compare(Type.INT, "=", 3).union(ONLY_NULL).points() is None
    assert NOTHING.points() is None and NOT_NULL.points() is None


def test_empty_and_everything_are_told_apart_from_what_leaves_null_out() -> None:
    assert NOTHING.empty and not ONLY_NULL.empty and not NOT_NULL.empty
    assert not NOT_NULL.everything and NOT_NULL.union(ONLY_NULL).everything
    assert str(NOTHING) == "nothing" and str(ONLY_NULL) == "NULL" and str(NOT_NULL.union(ONLY_NULL)) == "[, ) u NULL"


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS)
def test_nothing_is_between_a_key_and_its_successor(text: str, other: str) -> None:
    after = successor(text)
    assert text < after and not text < other < after
    assert successor(5) == 6 and successor(KEY_MAX) is None


# ---- order keys of floats


@settings(max_examples=300, deadline=None)
@given(FLOATS, FLOATS)
def test_float_keys_order_as_numbers_with_nan_on_top(a: float, b: float) -> None:
    x, y = in_order(a, b)
    assert (float_key(a) < float_key(b)) is (x < y)
    assert (float_key(a) == float_key(b)) is (x == y)
    assert KEY_MIN < float_key(a) < KEY_MAX


def test_every_nan_is_one_key() -> None:
    for bits in (0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF):
        (value,) = struct.unpack("<d", struct.pack("<Q", bits))
        assert float_key(value) == float_key(math.nan)


def test_float_keys_order_as_duckdb_orders_floats() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.integers(0, 2**64, 400, np.uint64).view(np.float64), np.array(FLOAT_EDGES)])
    values = rng.permutation(values)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (i INTEGER, x DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, x) for i, x in enumerate(values.tolist())])
    ranks = connection.execute("SELECT dense_rank() OVER (ORDER BY x) FROM t ORDER BY i").fetchall()
    keys = [float_key(x) for x in values.tolist()]
    place = {key: rank + 1 for rank, key in enumerate(sorted(set(keys)))}
    assert [rank for (rank,) in ranks] == [place[key] for key in keys]
