"""FROM items and the names of columns over several of them."""

from __future__ import annotations

import pytest

from lineage.errors import QueryError
from queries.syntax import MAX_INPUTS
from tests.unit.queries.bindings import run
from windows.spec import WindowSpec

MINUTE = 60_000_000
TWO = "readings [RANGE 5 MINUTES] a, orders [ROWS 10] AS b"


def positions(select: str, sources: str = TWO) -> dict[str, int]:
    """Output name -> position of the column it is."""
    bound = run(f"SELECT {select} FROM {sources}")
    return {column.name: column.expression.position for column in bound.columns}  # type: ignore[union-attr]  # plain columns


def condition(sources: str, where: str = "") -> str:
    return str(run(f"SELECT 1 AS one FROM {sources} {where}").condition)


def test_inputs_keep_their_order_and_their_columns_follow_each_other() -> None:
    bound = run(f"SELECT 1 AS one FROM {TWO}, Rooms")
    assert [(item.alias, item.name, item.is_table, item.offset) for item in bound.inputs] == [
        ("a", "readings", False, 0),
        ("b", "orders", False, 5),
        ("Rooms", "Rooms", True, 9),
    ]
    assert [item.window for item in bound.inputs] == [
        WindowSpec.range(5 * MINUTE),
        WindowSpec.newest(10),
        WindowSpec.unbounded(),
    ]
    assert bound.inputs[2].readable.key == (0,)


def test_a_query_with_one_input_is_as_before() -> None:
    bound = run("SELECT temp FROM readings [NOW] WHERE ok")
    assert (bound.stream, bound.window, len(bound.inputs), bound.inputs[0].offset) == ("readings", WindowSpec.now(), 1, 0)
    assert (str(bound.condition), bound.join) == ('"ok"', None)


@pytest.mark.parametrize(
    "sources",
    [
        "readings [NOW] a, orders [NOW] b WHERE a.sensor = b.sensor AND ok",
        "readings [NOW] a JOIN orders [NOW] b ON a.sensor = b.sensor AND ok",
        "readings [NOW] AS a INNER JOIN orders [NOW] AS b ON a.sensor = b.sensor WHERE ok",
        "readings [NOW] AS a INNER JOIN orders [NOW] AS b ON (a.sensor = b.sensor) WHERE (ok)",
    ],
)
def test_a_comma_and_a_join_mean_the_same(sources: str) -> None:
    bound = run(f"SELECT 1 AS one FROM {sources}")
    assert str(bound.condition) == 'and(=("sensor", "sensor"), "ok")'
    assert [item.alias for item in bound.inputs] == ["a", "b"]


def test_a_join_without_any_condition_has_none() -> None:
    assert condition("readings [NOW] a JOIN orders [NOW] b ON TRUE") == "None"
    assert condition("readings [NOW] a JOIN orders [NOW] b ON TRUE", "WHERE 1 = 1") == "None"
    assert condition("readings [NOW] a JOIN orders [NOW] b ON TRUE", "WHERE ok") == '"ok"'


def test_joins_are_read_from_left_to_right_among_commas() -> None:
    sources = "readings [NOW] a JOIN rooms ON a.room = rooms.room, orders [NOW] b JOIN prices p ON p.floor = a.sensor"
    bound = run(f"SELECT 1 AS one FROM {sources}")
    assert [item.alias for item in bound.inputs] == ["a", "rooms", "b", "p"]
    assert str(bound.condition) == 'and(=("room", "room"), =("floor", "sensor"))'


def test_eight_inputs_are_allowed() -> None:
    sources = ", ".join(f"readings [NOW] r{number}" for number in range(MAX_INPUTS))
    assert [item.offset for item in run(f"SELECT r7.ok FROM {sources}").inputs] == [5 * number for number in range(MAX_INPUTS)]


# -- windows

WINDOWS = [
    ("[ROWS 10]", WindowSpec.newest(10)),
    ("[rows 1]", WindowSpec.newest(1)),
    ("[ROWS 1_000]", WindowSpec.newest(1000)),
    ("[ROWS 0010]", WindowSpec.newest(10)),
    ("[ROWS 1073741824]", WindowSpec.newest(2**30)),
    ("[ROWS 10 RANGE 5 MINUTES]", WindowSpec.newest(10, width_us=5 * MINUTE)),
    ("[ROWS 10 RANGE INTERVAL '1' MINUTE]", WindowSpec.newest(10, width_us=MINUTE)),
    ("[PARTITION BY room ROWS 10]", WindowSpec.newest(10, [1])),
    ("[PARTITION  BY ROOM, sensor ROWS 10]", WindowSpec.newest(10, [0, 1])),
    ('[PARTITION BY "sensor", room, Room ROWS 10]', WindowSpec.newest(10, [0, 1])),
    ("[PARTITION BY room ROWS 10 RANGE 5 MINUTES]", WindowSpec.newest(10, [1], 5 * MINUTE)),
]


@pytest.mark.parametrize(("text", "window"), WINDOWS, ids=[text for text, _ in WINDOWS])
def test_a_rows_window_is_bound(text: str, window: WindowSpec) -> None:
    assert run(f"SELECT temp FROM readings {text}").window == window
    (left, right) = run(f"SELECT temp FROM orders [NOW] b, readings {text} AS r WHERE r.sensor = b.sensor").inputs
    assert (left.window, right.window) == (WindowSpec.now(), window), "positions of PARTITION BY are the stream's own"


def test_the_count_and_the_width_may_be_parameters() -> None:
    sql = "SELECT temp FROM readings [PARTITION BY room ROWS :n RANGE :w] r, orders [RANGE :w] o WHERE id = :n"
    bound = run(sql, {"n": 7, "w": "1 minute"})
    assert [item.window for item in bound.inputs] == [WindowSpec.newest(7, [1], MINUTE), WindowSpec.range(MINUTE)]


@pytest.mark.parametrize(
    ("value", "code", "fact"),
    [
        (0, "bad_window", "a window holds at least one row"),
        (2**31, "bad_window", "the window holds too many rows"),
        (True, "bad_param", 'parameter ":n" is of type bool, not a number of rows'),
        (2.0, "bad_param", 'parameter ":n" is of type float, not a number of rows'),
        ("5", "bad_param", 'parameter ":n" is of type str, not a number of rows'),
        (None, "bad_param", 'parameter ":n" is of type NoneType, not a number of rows'),
    ],
)
def test_a_count_that_is_none_is_refused(value: object, code: str, fact: str) -> None:
    with pytest.raises(QueryError) as caught:
        run("SELECT temp FROM readings [ROWS :n]", {"n": value})
    assert (caught.value.code, caught.value.column, caught.value.fact) == (code, 33, fact)


# -- kind and update pattern

PATTERNS = [
    ("readings", True, "monotonic"),
    ("readings [RANGE UNBOUNDED]", False, "monotonic"),
    ("readings [NOW]", False, "weakest"),
    ("readings [ROWS 5]", False, "strict"),
    ("readings a, rooms", True, "monotonic"),
    ("rooms, readings a", True, "monotonic"),
    ("readings a, prices", True, "monotonic"),
    ("readings [RANGE UNBOUNDED] a, rooms", False, "monotonic"),
    ("readings [NOW] a, rooms", False, "weakest"),
    ("readings [ROWS 5] a, rooms", False, "strict"),
    ("readings [NOW] a, prices", False, "strict"),
    ("readings [NOW] a, orders [NOW] b", False, "weak"),
    ("readings [NOW] a, orders [NOW] b, rooms", False, "weak"),
    ("readings [NOW] a, orders [ROWS 5] b", False, "strict"),
]


@pytest.mark.parametrize(("sources", "is_stream", "pattern"), PATTERNS, ids=[row[0] for row in PATTERNS])
def test_the_pattern_of_a_join_comes_from_its_inputs(sources: str, is_stream: bool, pattern: str) -> None:
    bound = run(f"SELECT 1 AS one FROM {sources}")
    assert (bound.is_stream, bound.update_pattern) == (is_stream, pattern)


def test_a_query_over_tables_alone_is_a_relation_whose_rows_may_be_taken_back() -> None:
    for text in ("SELECT floor FROM rooms WHERE floor > 1", "SELECT a.floor FROM rooms a, rooms b WHERE a.room = b.room"):
        bound = run(text)
        assert bound.join is not None and not bound.is_stream and bound.update_pattern == "strict"
    assert run("SELECT floor FROM rooms WHERE floor > 1").join.own[0] is not None


def test_a_stream_without_a_window_is_told_as_a_default_also_beside_tables() -> None:
    text = "no window: each row counts once, as it comes"
    assert text in run("SELECT 1 AS one FROM readings a, rooms WHERE a.room = rooms.room").defaults
    assert text not in run("SELECT 1 AS one FROM readings [NOW] a, rooms").defaults


# -- names


def test_names_find_their_columns() -> None:
    assert positions("a.sensor, B.Sensor AS other, temp, PRICE, readings.ok, orders.at") == {
        "sensor": 0, "other": 6, "temp": 2, "price": 7, "ok": 3, "at": 8,
    }  # fmt: skip


def test_an_alias_hides_the_name_of_another_input() -> None:
    sources = "readings [NOW] AS orders, orders [NOW] AS b"
    assert positions("orders.sensor AS x, b.sensor AS y", sources) == {"x": 0, "y": 6}


def test_an_unqualified_name_in_an_on_is_looked_for_up_to_its_own_item() -> None:
    text = condition("orders [NOW] b JOIN rooms ON price > size JOIN readings [NOW] a ON temp > 1 AND a.sensor > 1")
    assert text == 'and(>("price", "size"), >("temp", int:1), >("sensor", int:1))'
    text = condition("orders [NOW] b JOIN rooms ON sensor > 1 JOIN readings [NOW] a ON TRUE")
    assert text == '>("sensor", int:1)', "readings.sensor is not yet there"


# -- output names


def test_a_star_is_all_columns_of_all_inputs_with_repeated_names_numbered() -> None:
    bound = run(f"SELECT * FROM {TWO} WHERE a.sensor = b.sensor")
    names = ["sensor", "room", "temp", "ok", "ts", "id", "sensor_1", "price", "at"]
    assert [column.name for column in bound.columns] == names
    assert [column.expression.position for column in bound.columns] == list(range(9))  # type: ignore[union-attr]  # plain columns
    assert bound.defaults == ('a second column "sensor" is called "sensor_1"',)


def test_a_star_of_one_input_is_its_columns() -> None:
    assert positions("b.*, a.ok") == {"id": 5, "sensor": 6, "price": 7, "at": 8, "ok": 3}
    assert positions("b.*, a.*")["sensor_1"] == 0


def test_a_self_join_numbers_every_name() -> None:
    found = positions("a.room, b.room, c.room", "readings [NOW] a, readings [NOW] b, readings [NOW] c")
    assert found == {"room": 1, "room_1": 6, "room_2": 11}


def test_a_name_the_user_wrote_is_never_changed() -> None:
    assert positions("a.sensor, b.sensor, a.temp AS sensor_1") == {"sensor": 0, "sensor_2": 6, "sensor_1": 2}
    assert positions("a.sensor, b.sensor AS SENSOR") == {"sensor_1": 0, "SENSOR": 6}


def test_the_remark_of_a_null_column_has_its_final_name() -> None:
    bound = run(f"SELECT NULL, a.temp AS expr_1 FROM {TWO} WHERE a.sensor = b.sensor")
    assert [column.name for column in bound.columns] == ["expr_1_1", "expr_1"]
    assert bound.defaults[-1] == 'column "expr_1_1" is NULL of type int'


# -- products


def test_a_product_is_allowed_and_told() -> None:
    remark = "no condition joins a with b: every combination of their rows counts"
    assert run(f"SELECT 1 AS one FROM {TWO} WHERE a.ok AND b.id > 1").defaults == (remark,)
    assert run(f"SELECT 1 AS one FROM {TWO} WHERE a.sensor = b.id").defaults == ()
    assert run(f"SELECT 1 AS one FROM {TWO} WHERE a.sensor < b.id").defaults == ()
    assert run(f"SELECT 1 AS one FROM {TWO} WHERE a.sensor * b.id > 5").defaults == ()
    three = run(f"SELECT 1 AS one FROM {TWO}, orders [NOW] c WHERE a.sensor = c.sensor")
    assert three.defaults == ("no condition joins a, c with b: every combination of their rows counts",)
