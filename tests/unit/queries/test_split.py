"""A condition over several inputs, taken apart: each rule with what it must give.

Positions in edges are those of the input's own schema:

    a, c: readings   sensor 0 (int)  room 1 (string)  temp 2 (float)  ok 3 (bool)  ts 4 (timestamp)
    b: orders        id 0 (int)  sensor 1 (int)  price 2 (float)  at 3 (timestamp)
    r: rooms         room 0 (string)  floor 1 (int)  size 2 (float)
"""

from __future__ import annotations

import pytest

from lineage.schema import KEY_MAX, KEY_MIN
from queries.joins import BandEdge, EqualityEdge, Join
from tests.unit.queries.bindings import run

ALL = "readings [NOW] a, orders [NOW] b, readings [NOW] c, rooms r"
SECOND = 1_000_000


def split(where: str, sources: str = ALL, params: dict[str, object] | None = None) -> Join:
    join = run(f"SELECT 1 AS one FROM {sources} WHERE {where}", params).join
    assert join is not None
    return join


def edge(found: EqualityEdge) -> tuple[int, int, list[tuple[int, int]]]:
    return found.left, found.right, [(left.position, right.position) for left, right in found.pairs]


def band(found: BandEdge) -> tuple[int, int, int, int, int | None, int | None]:
    return found.left, found.right, found.left_column.position, found.right_column.position, found.low, found.high


def own(join: Join) -> list[str]:
    return [str(condition) for condition in join.own]


def residuals(join: Join) -> list[tuple[tuple[int, ...], str]]:
    return [(residual.inputs, str(residual.expression)) for residual in join.residuals]


NONE = ["None"] * 4


# -- conditions of one input


def test_a_condition_of_one_input_is_over_its_own_schema() -> None:
    join = split("a.temp > 1 AND b.price > a.temp * 2 AND b.price < 5 AND c.sensor = 3 AND (b.id = 1 OR b.price = 2)")
    assert own(join) == [
        '>("temp", int:1)',
        'and(<("price", int:5), or(=("id", int:1), =("price", int:2)))',
        '=("sensor", int:3)',
        "None",
    ]
    condition = join.own[2]
    assert condition is not None and condition.args[0].position == 0  # type: ignore[union-attr]  # a comparison
    assert residuals(join) == [((0, 1), '>("price", *("temp", int:2))')]


def test_not_is_pushed_down_to_find_the_conjuncts() -> None:
    join = split("NOT (a.ok OR b.price < 5 OR NOT a.sensor = b.sensor OR NOT (a.temp > 1 AND c.ok))")
    assert own(join) == ['and(not("ok"), >("temp", int:1))', '>=("price", int:5)', '"ok"', "None"]
    assert [edge(found) for found in join.equalities] == [(0, 1, [(0, 1)])]
    assert join.residuals == ()


def test_a_condition_without_columns_stands_with_the_first_input() -> None:
    assert own(split("1 = 2 AND a.sensor = b.id"))[0] == "bool:False"
    assert own(split("1 / 0 = 1"))[0] == "=(/(int:1, int:0), int:1)"
    assert own(split("1 = 1 AND a.sensor = b.id")) == NONE


def test_a_repeated_condition_counts_once() -> None:
    join = split("a.ok AND a.ok AND a.temp + b.price > 1 AND a.temp + b.price > 1 AND a.sensor = b.id AND b.id = a.sensor")
    assert (own(join)[0], len(join.residuals), len(join.equalities)) == ('"ok"', 1, 1)
    assert len(join.equalities[0].pairs) == 1


# -- equalities


def test_equal_columns_are_closed_over_all_inputs() -> None:
    join = split("a.sensor = b.sensor AND b.sensor = c.sensor")
    assert [edge(found) for found in join.equalities] == [(0, 1, [(0, 1)]), (0, 2, [(0, 0)]), (1, 2, [(1, 0)])]
    assert own(join) == NONE and join.bands == () and join.residuals == ()
    assert split("c.sensor = b.sensor AND c.sensor = a.sensor").equalities == join.equalities


def test_several_equalities_of_two_inputs_are_one_key() -> None:
    join = split("a.temp = b.price AND b.id = a.sensor AND a.room = r.room AND b.at = a.ts")
    assert [edge(found) for found in join.equalities] == [(0, 1, [(0, 0), (2, 2), (4, 3)]), (0, 3, [(1, 0)])]


def test_edges_are_in_order_whatever_the_order_of_the_classes() -> None:
    join = split("a.sensor = b.sensor AND a.sensor = c.sensor AND a.temp = b.id AND a.temp = c.temp")
    assert [edge(found) for found in join.equalities][2] == (1, 2, [(0, 2), (1, 0)])
    join = split("b.id < r.floor AND b.sensor < c.sensor")
    assert [band(found)[:4] for found in join.bands] == [(1, 2, 1, 0), (1, 3, 0, 1)]


def test_two_columns_of_an_input_in_one_class_are_a_condition_of_the_input() -> None:
    join = split("a.sensor = b.id AND a.sensor = b.sensor AND b.id = r.floor")
    assert [edge(found) for found in join.equalities] == [(0, 1, [(0, 0)]), (0, 3, [(0, 1)]), (1, 3, [(0, 1)])]
    assert own(join) == ["None", '=("id", "sensor")', "None", "None"]


def test_an_equality_within_one_input_joins_classes_too() -> None:
    join = split("b.id = b.sensor AND b.sensor = a.sensor AND c.sensor = b.id")
    assert [edge(found) for found in join.equalities] == [(0, 1, [(0, 0)]), (0, 2, [(0, 0)]), (1, 2, [(0, 0)])]
    assert own(join)[1] == '=("id", "sensor")'


def test_a_column_equal_to_itself_is_a_condition() -> None:
    assert own(split("a.temp = a.temp AND a.sensor = b.id"))[0] == '=("temp", "temp")'


def test_int_and_float_join_as_numbers_and_close() -> None:
    (first, second, third) = split("a.sensor = b.price AND b.price = c.sensor").equalities
    assert [[column.type.value for column in pair] for pair in (*first.pairs, *second.pairs, *third.pairs)] == [
        ["int", "float"], ["int", "int"], ["float", "int"],
    ]  # fmt: skip


def test_bools_strings_and_times_join() -> None:
    for text in ("a.ok = c.ok", "a.room = c.room", "a.ts = c.ts", "a.ts = b.at", "a.temp = b.price", "a.room IN (c.room)"):
        join = split(text)
        assert len(join.equalities) == 1 and not join.residuals, text


@pytest.mark.parametrize(
    "text",
    [
        "a.sensor = b.id OR a.ok",
        "a.room <> r.room",
        "a.sensor + b.id = c.sensor",
        "a.sensor * b.id = 7",
        "risky(a.sensor) = c.ok",
    ],
)
def test_what_is_no_equality_of_two_inputs_is_none(text: str) -> None:
    join = split(text)
    assert (join.equalities, join.bands, len(join.residuals)) == ((), (), 1)


# -- keys that are computed


def said(found: EqualityEdge) -> tuple[int, int, list[tuple[str, str]]]:
    names = [["sensor", "room", "temp", "ok", "ts"], ["id", "sensor", "price", "at"], ["sensor"], ["room", "floor", "size"]]
    return found.left, found.right, [(left.say(names[found.left]), right.say(names[found.right])) for left, right in found.pairs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.sensor % 10 = b.id", (0, 1, [("(sensor % 10)", "id")])),
        ("b.id = a.sensor % 10", (0, 1, [("(sensor % 10)", "id")])),
        ("LOWER(a.room) = r.room", (0, 3, [("LOWER(room)", "room")])),
        ("a.sensor::float = b.price", (0, 1, [("CAST(sensor AS float)", "price")])),
        ("a.ts + INTERVAL '5' SECOND = b.at", (0, 1, [("(ts + INTERVAL (0 months, 5000000 us))", "at")])),
        ("DATE_TRUNC('hour', a.ts) = DATE_TRUNC('hour', b.at)", (0, 1, [("DATE_TRUNC('hour', ts)", "DATE_TRUNC('hour', at)")])),
        ("a.sensor + a.sensor = b.id + b.sensor", (0, 1, [("(sensor + sensor)", "(id + sensor)")])),
        ("a.sensor + 1 = b.id AND a.room = a.room AND a.temp = b.price", (0, 1, [("(sensor + 1)", "id"), ("temp", "price")])),
        ("NOT a.sensor / 2 <> b.id", (0, 1, [("(sensor / 2)", "id")])),
    ],
)
def test_an_equality_of_expressions_over_one_input_each_is_an_edge(
    text: str, expected: tuple[int, int, list[tuple[str, str]]]
) -> None:
    join = split(text)
    assert [said(found) for found in join.equalities] == [expected]
    assert join.bands == () and join.residuals == ()


def test_equal_expressions_close_over_all_inputs_and_columns_stand_for_them() -> None:
    join = split("a.sensor % 10 = b.id AND b.id = c.sensor")
    assert [said(found)[:2] for found in join.equalities] == [(0, 1), (0, 2), (1, 2)]
    join = split("a.sensor % 10 = b.id AND b.id = a.sensor")
    assert [edge(found) for found in join.equalities] == [(0, 1, [(0, 0)])]
    assert own(join)[0] == '=("sensor", %("sensor", int:10))'


def test_a_computed_key_is_the_same_for_every_alias_and_order() -> None:
    (one,) = split("a.sensor % 10 = b.id AND LOWER(a.room) = b.id::string").equalities
    (two,) = split("CAST(b.id AS string) = LOWER(a.room) AND b.id = a.sensor % 10").equalities
    (turned,) = split("b.id = c.sensor % 10 AND LOWER(c.room) = b.id::string", "orders [NOW] b, readings [NOW] c").equalities
    assert one == two
    assert one.key(0) == turned.key(1) and one.key(1) == turned.key(0)


def test_a_constant_is_told_to_columns_only() -> None:
    join = split("a.sensor % 10 = b.id AND b.id = c.sensor AND c.sensor = 3")
    assert own(join) == ["None", '=("id", int:3)', '=("sensor", int:3)', "None"]


def test_the_key_of_a_stem_is_the_same_from_either_side_and_in_any_order() -> None:
    (one,) = split("a.sensor = b.sensor AND a.temp = b.price").equalities
    (two,) = split("b.price = a.temp AND a.sensor = b.sensor").equalities
    (turned,) = split("a.sensor = b.sensor AND a.temp = b.price", "orders [NOW] b, readings [NOW] a").equalities
    assert one == two
    assert one.key(0) == turned.key(1) and one.key(1) == turned.key(0)
    (crossed,) = split("a.temp = b.id AND a.sensor = b.price").equalities
    assert [column.position for column in crossed.key(0)] == [0, 2]
    assert [column.position for column in crossed.probe(0)] == [2, 0], "in the order of the key it probes"
    assert [column.position for column in crossed.key(1)] == [0, 2]
    assert [column.position for column in crossed.probe(1)] == [2, 0]


# -- constants


def test_a_comparison_with_constants_holds_for_equal_columns() -> None:
    join = split("a.sensor = b.sensor AND b.sensor = c.sensor AND a.sensor = 5 AND 7 > b.sensor AND c.sensor IN (1, 5)")
    terms = {'=("sensor", int:5)', '>(int:7, "sensor")', 'in("sensor", int:1, int:5)'}
    for condition in join.own[:3]:
        assert condition is not None and {str(term) for term in condition.args} == terms  # type: ignore[union-attr]  # a call
    assert own(join)[3] == "None"


def test_a_constant_is_told_over_int_and_float() -> None:
    assert own(split("a.sensor = b.price AND b.price < 2.5"))[:2] == ['<("sensor", float:2.5)', '<("price", float:2.5)']


def test_only_comparisons_with_constants_are_told() -> None:
    join = split("a.sensor = b.sensor AND (a.sensor = 1 OR a.sensor = 2) AND a.sensor + 0 = 5 AND a.sensor IS NOT NULL")
    assert own(join)[1] == "None"


# -- bands


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.sensor < b.id", (0, 1, 0, 0, 1, None)),
        ("a.sensor <= b.id", (0, 1, 0, 0, 0, None)),
        ("a.sensor > b.id", (0, 1, 0, 0, None, -1)),
        ("a.sensor >= b.id", (0, 1, 0, 0, None, 0)),
        ("b.id > a.sensor", (0, 1, 0, 0, 1, None)),
        ("NOT b.id > a.sensor", (0, 1, 0, 0, None, 0)),
        ("a.temp < b.price", (0, 1, 2, 2, 1, None)),
        ("a.temp >= b.price AND a.temp <= b.price", (0, 1, 2, 2, 0, 0)),
        ("b.at BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '1 minute'", (0, 1, 4, 3, -5 * SECOND, 60 * SECOND)),
        ("a.ts BETWEEN b.at - INTERVAL '5' SECOND AND b.at", (0, 1, 4, 3, 0, 5 * SECOND)),
        ("INTERVAL '5' SECOND + a.ts - INTERVAL '2' SECOND > b.at", (0, 1, 4, 3, None, 3 * SECOND - 1)),
        ("a.sensor - b.id BETWEEN -2 AND 5", (0, 1, 0, 0, -5, 2)),
        ("b.id - a.sensor BETWEEN -2 AND 5", (0, 1, 0, 0, -2, 5)),
        ("b.id - a.sensor >= 0 AND 5 > b.id - a.sensor", (0, 1, 0, 0, 0, 4)),
        ("b.id - a.sensor = 5", (0, 1, 0, 0, 5, 5)),
        ("a.sensor < b.id AND b.id < a.sensor + 10 AND a.sensor <= b.id", (0, 1, 0, 0, 1, 9)),
    ],
)
def test_a_band_bounds_right_minus_left(text: str, expected: tuple[int, int, int, int, int | None, int | None]) -> None:
    join = split(text)
    assert [band(found) for found in join.bands] == [expected]
    assert join.residuals == () and join.equalities == ()


def test_a_shifted_int_is_kept_from_passing_its_range() -> None:
    join = split("b.id BETWEEN a.sensor - 5 AND a.sensor + 3")
    assert [band(found) for found in join.bands] == [(0, 1, 0, 0, -5, 3)]
    assert own(join)[:2] == [f'and(>=("sensor", int:{KEY_MIN + 5}), <=("sensor", int:{KEY_MAX - 3}))', "None"]


def test_each_step_of_a_sum_is_kept_in_range() -> None:
    join = split("a.sensor + 5 - 7 + 1 < b.id - 2")
    assert [band(found) for found in join.bands] == [(0, 1, 0, 0, 2, None)]
    assert own(join)[:2] == [
        f'and(>=("sensor", int:{KEY_MIN + 2}), <=("sensor", int:{KEY_MAX - 5}))',
        f'>=("id", int:{KEY_MIN + 2})',
    ]


def test_times_in_rows_need_no_guard() -> None:
    assert own(split("b.at > a.ts - INTERVAL '3000 days'")) == NONE
    far = "INTERVAL '53000000 days' - INTERVAL '53100000 days'"
    least = -106_751_991 + 53_000_000 + 53_100_000
    assert own(split(f"b.at > a.ts - {far}"))[0] == f'>=("ts", timestamp:{least * 86_400 * SECOND})'


def test_bands_on_other_columns_are_other_edges() -> None:
    join = split("a.sensor < b.id AND a.sensor < b.sensor AND c.ts < b.at AND a.sensor < c.sensor")
    assert [band(found) for found in join.bands] == [
        (0, 1, 0, 0, 1, None), (0, 1, 0, 1, 1, None), (0, 2, 0, 0, 1, None), (1, 2, 3, 4, None, -1),
    ]  # fmt: skip


def test_a_band_is_looked_at_from_either_side() -> None:
    (found,) = split("b.id BETWEEN a.sensor - 5 AND a.sensor + 3").bands
    assert found.bounds(1) == (-5, 3) and found.bounds(0) == (-3, 5)
    (half,) = split("b.id > a.sensor").bands
    assert half.bounds(1) == (1, None) and half.bounds(0) == (None, -1)


def test_a_band_that_nothing_satisfies_keeps_no_row() -> None:
    join = split("a.sensor < b.id AND a.sensor > b.id")
    assert (own(join)[0], join.bands) == ("bool:False", ())


def test_a_bound_beyond_64_bits_stays_a_residual() -> None:
    join = split("a.sensor - b.id < 5")
    assert [band(found) for found in join.bands] == [(0, 1, 0, 0, -4, None)], "wider than the condition"
    assert residuals(join) == [((0, 1), '<(-("sensor", "id"), int:5)')]
    join = split("b.id - a.sensor < 5")
    assert [band(found) for found in join.bands] == [(0, 1, 0, 0, None, 4)], "the same from the other side"
    assert len(join.residuals) == 1
    join = split(f"a.sensor + {KEY_MAX} < b.id - 5")
    assert join.bands == () and len(join.residuals) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a.temp + 1 < b.price",
        "a.temp < b.id",
        "a.sensor + 0.5 < b.id",
        "5 - a.sensor < b.id",
        "a.sensor * 2 < b.id",
        "-a.sensor < b.id",
        "a.ts + INTERVAL '1' MONTH < b.at",
        "a.room < r.room",
        "a.ok < c.ok",
        "a.sensor <> b.id",
        "a.sensor - b.id < 2.5",
        "a.sensor - b.id <> 5",
        "a.sensor + NULL < b.id",
        "EPOCH_MS(a.ts) - EPOCH_MS(b.at) < 5",
        "a.sensor + b.id < c.sensor",
        f"a.sensor + {KEY_MAX} + {KEY_MAX} + {KEY_MAX} < b.id",
    ],
)
def test_what_is_not_exactly_a_band_is_a_residual(text: str) -> None:
    join = split(text)
    assert (join.bands, join.equalities, len(join.residuals)) == ((), (), 1), own(join)


def test_a_comparison_within_one_input_is_its_own_condition() -> None:
    assert (
        own(split("b.id < b.sensor + 1 AND b.sensor - b.id > 3"))[1]
        == 'and(<("id", +("sensor", int:1)), >(-("sensor", "id"), int:3))'
    )


# -- residuals and sharing


def test_a_residual_knows_its_inputs() -> None:
    join = split("a.temp + b.price > 1 AND risky(c.ok, a.ok, b.id) AND (a.ok OR r.floor = 1)")
    assert [residual.inputs for residual in join.residuals] == [(0, 1), (0, 1, 2), (0, 3)]


def test_a_residual_is_shared_whatever_else_is_read() -> None:
    text = "a.temp + b.price > 1"
    (one,) = split(text).residuals
    (two,) = split(text, "readings [ROWS 5] a, rooms r, Orders [NOW] b").residuals
    (other,) = split("b.temp + a.price > 1", "orders [NOW] a, readings [NOW] b").residuals
    assert one.expression != two.expression and one.key == two.key and hash(one.key) == hash(two.key)
    assert other.key != one.key


def test_columns_of_one_name_are_told_apart() -> None:
    (one,) = split("a.temp * 2 > c.temp").residuals
    (two,) = split("c.temp * 2 > a.temp").residuals
    assert str(one.expression) == str(two.expression) and one.key != two.key


def test_queries_that_join_alike_have_equal_keys() -> None:
    sources = "readings [NOW] x, orders [NOW] y"
    one = split("a.sensor = b.id AND a.temp < b.price AND a.ok", "readings [RANGE 1 DAY] a, orders [ROWS 9] b")
    two = split("y.id = x.sensor AND y.price > 3 AND NOT x.temp >= y.price", sources)
    other = split("x.sensor = y.sensor AND x.temp < y.price", sources)
    assert one.key == two.key and hash(one.key) == hash(two.key) and one.own != two.own
    assert one.key != other.key
    turned = [split(text).key for text in ("a.temp * 2 > b.price AND a.ok <> c.ok", "a.ok <> c.ok AND a.temp * 2 > b.price")]
    assert turned[0] == turned[1]


def test_parts_are_the_inputs_that_something_leads_between() -> None:
    assert split("a.ok").parts() == [[0], [1], [2], [3]]
    assert split("a.ok = c.ok AND b.id < r.floor").parts() == [[0, 2], [1, 3]]
    assert split("a.sensor + b.id + c.sensor > r.floor").parts() == [[0, 1, 2, 3]]
