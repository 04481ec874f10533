# ruff: noqa: E501
"""Text in, trees out: which nodes each clause of the language becomes.

A tree is shown in one line by `bindings.outline`: `#n` is a column by its position in what a node reads, `*` behind an input
of a join is a frozen table.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from lineage.errors import QueryError
from lineage.schema import Type
from queries.bound import NOWHERE
from queries.nodes import (
    BOUNDS,
    Aggregate,
    Block,
    GroupBy,
    JoinNode,
    NamedQuery,
    Select,
    SetOperation,
    Slide,
    ToStream,
    schema_of,
)
from queries.syntax import MAX_LEVELS, MAX_SELECTS
from queries.tree import defaults_of, leaves, levels, walk
from tests.unit.queries.bindings import outline, tree
from windows.spec import WindowSpec

Row = tuple[str, str]

# One row a line, however long: a table is read by its columns.
# fmt: off
GROUPS: list[Row] = [
    ("SELECT room, COUNT(*) FROM readings [NOW] WHERE ok GROUP BY room", "group[1; count(*)](block[#1 where #3 from readings[NOW]])"),
    ("SELECT COUNT(*) FROM readings [NOW]", "group[0; count(*)](block[ from readings[NOW]])"),
    ("SELECT room FROM readings [NOW] GROUP BY room", "group[1; ](block[#1 from readings[NOW]])"),
    ("SELECT MIN(temp), MAX(temp), FIRST(room), LAST(ok), MEDIAN(sensor) FROM readings [NOW]", "group[0; min(#0), max(#0), first(#1), last(#2), median(#3)](block[#2, #1, #3, #0 from readings[NOW]])"),
    ("SELECT STDDEV(temp), VARIANCE(temp), AVG(temp), SUM(temp), COUNT(temp) FROM readings [NOW]", "group[0; stddev(#0), variance(#0), avg(#0), sum(#0), count(#0)](block[#2 from readings[NOW]])"),
    ("SELECT COUNT(DISTINCT room), COUNT(room), count(*), COUNT(1), COUNT(NULL) FROM readings [NOW]", "select[#0, #1, #2, #2, #3](group[0; count(distinct #0), count(#0), count(*), count(#1)](block[#1, int:None from readings[NOW]]))"),
    ("SELECT SUM(temp) FILTER (WHERE ok), COUNT(*) FILTER (WHERE ok), SUM(temp) FILTER (WHERE TRUE) FROM readings [NOW]", "group[0; sum(#0) if #1, count(*) if #1, sum(#0)](block[#2, #3 from readings[NOW]])"),
    ("SELECT COUNT(*) FILTER (WHERE NULL) FROM readings [NOW]", "group[0; count(*) if #0](block[bool:None from readings[NOW]])"),
    ("SELECT SUM(ok) FROM readings [NOW]", "group[0; sum(#0)](block[cast:int(#3) from readings[NOW]])"),
    # expressions over keys and aggregates
    ("SELECT SUM(temp) / COUNT(*) + 1 FROM readings [NOW]", "select[+(/(#0, #1), int:1)](group[0; sum(#0), count(*)](block[#2 from readings[NOW]]))"),
    ("SELECT 2 * (sensor + 1) AS x FROM readings [NOW] GROUP BY sensor + (1)", "select[*(int:2, #0)](group[1; ](block[+(#0, int:1) from readings[NOW]]))"),
    ("SELECT sensor + 1 - 1 AS x FROM readings [NOW] GROUP BY sensor + 1", "select[-(#0, int:1)](group[1; ](block[+(#0, int:1) from readings[NOW]]))"),
    ("SELECT risky(room, MAX(temp)) AS r FROM readings [NOW] GROUP BY room", "select[RISKY(#0, #1)](group[1; max(#1)](block[#1, #2 from readings[NOW]]))"),
    ("SELECT CASE WHEN room = 'a' THEN COUNT(*) ELSE 0 END AS x FROM readings [NOW] GROUP BY room", "select[case(=(#0, string:'a'), #1, int:0)](group[1; count(*)](block[#1 from readings[NOW]]))"),
    ("SELECT 5 AS five FROM readings [NOW] GROUP BY room", "select[int:5](group[1; ](block[#1 from readings[NOW]]))"),
    ("SELECT SUM(temp + sensor) + SUM(sensor + temp) AS x FROM readings [NOW]", "select[+(#0, #1)](group[0; sum(#0), sum(#1)](block[+(#2, #0), +(#0, #2) from readings[NOW]]))"),
    # keys: in the order of the select list, once each; aliases, numbers
    ("SELECT room, sensor, COUNT(*) FROM readings [NOW] GROUP BY sensor, room, SENSOR", "group[2; count(*)](block[#1, #0 from readings[NOW]])"),
    ("SELECT COUNT(*), room FROM readings [NOW] GROUP BY room", "select[#1, #0](group[1; count(*)](block[#1 from readings[NOW]]))"),
    ("SELECT room AS r, sensor + 1 AS s, MAX(ts) FROM readings [NOW] GROUP BY r, s", "group[2; max(#2)](block[#1, +(#0, int:1), #4 from readings[NOW]])"),
    ("SELECT sensor + 1 AS temp, COUNT(*) FROM readings [NOW] GROUP BY 1", "group[1; count(*)](block[+(#0, int:1) from readings[NOW]])"),
    ("SELECT *, COUNT(*) FROM readings [NOW] GROUP BY 5, 4, 3, 2, 1", "group[5; count(*)](block[#0, #1, #2, #3, #4 from readings[NOW]])"),
    ("SELECT room, COUNT(*) FROM readings [NOW] GROUP BY room, 'a', NULL", "select[#0, #3](group[3; count(*)](block[#1, string:'a', int:None from readings[NOW]]))"),
    # HAVING
    ("SELECT room FROM readings [NOW] GROUP BY room HAVING COUNT(*) > 1", "select[#0 where >(#1, int:1)](group[1; count(*)](block[#1 from readings[NOW]]))"),
    ("SELECT room, COUNT(*) AS n FROM readings [NOW] GROUP BY room HAVING n > 1 AND room = 'a'", "select[#0, #1 where and(>(#1, int:1), =(#0, string:'a'))](group[1; count(*)](block[#1 from readings[NOW]]))"),
    ("SELECT COUNT(*) AS n FROM readings [NOW] HAVING n > 1", "select[#0 where >(#0, int:1)](group[0; count(*)](block[ from readings[NOW]]))"),
    ("SELECT room, MAX(sensor) AS temp FROM readings [NOW] GROUP BY room HAVING MIN(temp) > 1", "select[#0, #1 where >(#2, int:1)](group[1; max(#1), min(#2)](block[#1, #0, #2 from readings[NOW]]))"),
    ("SELECT room FROM readings [NOW] GROUP BY room HAVING TRUE", "group[1; ](block[#1 from readings[NOW]])"),
    ("SELECT 1 AS one FROM readings [NOW] HAVING TRUE", "select[int:1](group[0; ](block[ from readings[NOW]]))"),
    # over joins, tables, other queries
    ("SELECT a.room, SUM(b.price) FROM readings [NOW] a JOIN orders [NOW] b ON a.sensor = b.sensor GROUP BY a.room", "group[1; sum(#1)](block[#1, #7 where =(#0, #6) from readings[NOW], orders[NOW]])"),
    ("SELECT COUNT(*) FROM rooms", "group[0; count(*)](block[ from rooms])"),
    ("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM readings [NOW] GROUP BY room) AS x WHERE n > 1", "group[0; max(#0)](select[#0 where >(#0, int:1)](select[#1](group[1; count(*)](block[#1 from readings[NOW]]))))"),
    ("SELECT DISTINCT COUNT(*) AS n FROM readings [NOW] GROUP BY room", "distinct(select[#1](group[1; count(*)](block[#1 from readings[NOW]])))"),
]

SETS: list[Row] = [
    ("SELECT room FROM readings [NOW] UNION ALL SELECT room FROM rooms", "union all(block[#1 from readings[NOW]], block[#0 from rooms])"),
    ("SELECT room FROM rooms UNION SELECT room FROM rooms EXCEPT ALL SELECT room FROM rooms", "except all(union(block[#0 from rooms], block[#0 from rooms]), block[#0 from rooms])"),
    ("SELECT room FROM rooms EXCEPT SELECT room FROM prices INTERSECT ALL SELECT room FROM rooms", "except(block[#0 from rooms], intersect all(block[#0 from prices], block[#0 from rooms]))"),
    ("(SELECT room FROM rooms EXCEPT SELECT room FROM prices) INTERSECT SELECT room FROM rooms", "intersect(except(block[#0 from rooms], block[#0 from prices]), block[#0 from rooms])"),
    ("SELECT room FROM rooms EXCEPT (SELECT room FROM prices UNION ((SELECT room FROM rooms)))", "except(block[#0 from rooms], union(block[#0 from prices], block[#0 from rooms]))"),
    ("SELECT sensor FROM readings [NOW] UNION SELECT temp FROM readings [NOW]", "union(block[cast:float(#0) from readings[NOW]], block[#2 from readings[NOW]])"),
    ("SELECT 1 AS x FROM rooms UNION SELECT 2.5 AS y FROM rooms", "union(block[float:1.0 from rooms], block[float:2.5 from rooms])"),
    ("SELECT NULL AS x FROM rooms UNION SELECT room FROM rooms", "union(block[string:None from rooms], block[#0 from rooms])"),
    ("SELECT NULL AS x FROM rooms UNION SELECT NULL AS x FROM rooms EXCEPT SELECT room FROM rooms", "except(select[cast:string(#0)](union(block[int:None from rooms], block[int:None from rooms])), block[#0 from rooms])"),
    ("SELECT DISTINCT sensor FROM readings [NOW] UNION ALL SELECT temp FROM readings [NOW]", "union all(select[cast:float(#0)](distinct(block[#0 from readings[NOW]])), block[#2 from readings[NOW]])"),
]

QUERIES: list[Row] = [
    ("SELECT * FROM (SELECT room, floor FROM rooms) AS x", "block[#0, #1 from rooms]"),
    ("SELECT room AS r, floor FROM (SELECT room, floor FROM rooms) x", "select[#0, #1](block[#0, #1 from rooms])"),
    ("SELECT x.floor FROM (SELECT room, floor FROM rooms) AS x WHERE room = 'a'", "select[#1 where =(#0, string:'a')](block[#0, #1 from rooms])"),
    ("SELECT temp FROM (SELECT temp, ok FROM readings) AS x WHERE ok", "select[#0 where #1](block[#2, #3 from readings])"),
    ("SELECT temp FROM (SELECT temp, ok FROM readings) [RANGE 5 MINUTES] AS x WHERE ok", "select[#0 where #1](window[RANGE 5 MINUTES](block[#2, #3 from readings]))"),
    ("SELECT temp FROM (SELECT temp, ok FROM readings) [PARTITION BY ok ROWS 5] AS x", "select[#0](window[PARTITION BY ok ROWS 5](block[#2, #3 from readings]))"),
    ("WITH a AS (SELECT room FROM rooms), b AS (SELECT room FROM a WHERE room > 'a') SELECT room FROM B", "select[#0 where >(#0, string:'a')](block[#0 from rooms])"),
    ("WITH readings AS (SELECT room FROM readings [NOW]) SELECT room FROM readings", "block[#1 from readings[NOW]]"),
    ("WITH a AS (SELECT room FROM rooms) SELECT x.room FROM (WITH a AS (SELECT room FROM prices) SELECT room FROM a) AS x", "block[#0 from prices]"),
    ("WITH a AS (SELECT room FROM rooms) SELECT room FROM a UNION ALL SELECT room FROM a", "union all(block[#0 from rooms], block[#0 from rooms])"),
    ("(WITH a AS (SELECT room FROM rooms) SELECT room FROM a) UNION ALL SELECT room FROM rooms;", "union all(block[#0 from rooms], block[#0 from rooms])"),
    ("SELECT * FROM hot", "query[hot]"),
    ("SELECT price FROM HOT WHERE id > 5", "select[#2 where >(#0, int:5)](query[HOT])"),
    ("SELECT price FROM fresh [ROWS 5]", "select[#2](window[ROWS 5](query[fresh]))"),
]

STREAMS: list[Row] = [
    ("ISTREAM (SELECT room FROM readings [NOW])", "istream(block[#1 from readings[NOW]])"),
    ("DSTREAM (SELECT room FROM rooms UNION SELECT room FROM rooms)", "dstream(union(block[#0 from rooms], block[#0 from rooms]))"),
    ("RSTREAM (SELECT COUNT(*) FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE])", "rstream(group[0; count(*)](slide[RANGE 5 MINUTES SLIDE 1 MINUTE](block[ from readings])))"),
    ("ISTREAM (SELECT room FROM readings)", "block[#1 from readings]"),
    ("ISTREAM (DSTREAM (SELECT room FROM readings [NOW]))", "dstream(block[#1 from readings[NOW]])"),
    ("SELECT room FROM (ISTREAM (SELECT room FROM readings [NOW])) AS x", "istream(block[#1 from readings[NOW]])"),
    ("SELECT room FROM ISTREAM (SELECT room FROM readings [NOW]) [NOW] x", "window[NOW](istream(block[#1 from readings[NOW]]))"),
    ("WITH a AS (ISTREAM (SELECT room FROM readings [NOW])) SELECT COUNT(*) FROM a [RANGE UNBOUNDED]", "group[0; count(*)](select[](window[RANGE UNBOUNDED](istream(block[#1 from readings[NOW]]))))"),
    ("WITH a AS (ISTREAM (SELECT room FROM readings [NOW])) SELECT * FROM TUMBLE(a, 5 MINUTES) AS t", "slide[RANGE 5 MINUTES SLIDE 5 MINUTES]+bounds(istream(block[#1 from readings[NOW]]))"),
    # a column and a stream may be called so
    ("SELECT istream.room FROM rooms AS istream", "block[#0 from rooms]"),
]

SLIDES: list[Row] = [
    ("SELECT temp FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE] AS r WHERE r.ok", "slide[RANGE 5 MINUTES SLIDE 1 MINUTE](block[#2 where #3 from readings])"),
    ("SELECT * FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE ok", "slide[RANGE 5 MINUTES SLIDE 1 MINUTE]+bounds(block[#0, #1, #2, #3, #4 where #3 from readings])"),
    ("SELECT window_end, COUNT(*) FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY window_end", "group[1; count(*)](select[#1](slide[RANGE 5 MINUTES SLIDE 1 MINUTE]+bounds(block[ from readings])))"),
    ("SELECT room FROM (ISTREAM (SELECT room FROM readings [NOW])) [RANGE 5 MINUTES SLIDE 1 MINUTE] AS x", "slide[RANGE 5 MINUTES SLIDE 1 MINUTE](istream(block[#1 from readings[NOW]]))"),
    ("SELECT window_start FROM (ISTREAM (SELECT room FROM readings [NOW])) [RANGE 5 MINUTES SLIDE 1 MINUTE] AS x", "select[#1](slide[RANGE 5 MINUTES SLIDE 1 MINUTE]+bounds(istream(block[#1 from readings[NOW]])))"),
    ("SELECT temp + 1 AS t FROM TUMBLE(readings, 5 MINUTES)", "slide[RANGE 5 MINUTES SLIDE 5 MINUTES](block[+(#2, int:1) from readings])"),
    ("SELECT temp FROM HOP(readings, ts, INTERVAL '1' MINUTE, '5 minutes') AS h", "slide[RANGE 5 MINUTES SLIDE 1 MINUTE](block[#2 from readings])"),
    ("SELECT * FROM TUMBLE(readings, 5 MINUTES) WHERE ok", "slide[RANGE 5 MINUTES SLIDE 5 MINUTES]+bounds(block[#0, #1, #2, #3, #4 where #3 from readings])"),
    ("SELECT window_end, temp FROM TUMBLE(readings, 5 MINUTES) WHERE ok AND window_start > '1970-01-01'", "select[#2, #0 where >(#1, timestamp:0)](slide[RANGE 5 MINUTES SLIDE 5 MINUTES]+bounds(block[#2 where #3 from readings]))"),
    ("SELECT temp FROM TUMBLE(readings, 5 MINUTES) WHERE ok OR window_start > '1970-01-01'", "select[#0 where or(#1, >(#2, timestamp:0))](slide[RANGE 5 MINUTES SLIDE 5 MINUTES]+bounds(block[#2, #3 from readings]))"),
    ("SELECT room, COUNT(*) FROM TUMBLE(readings, 5 MINUTES) WHERE ok GROUP BY room", "group[1; count(*)](slide[RANGE 5 MINUTES SLIDE 5 MINUTES](block[#1 where #3 from readings]))"),
    ("SELECT room, window_end, COUNT(*) FROM TUMBLE(readings, 5 MINUTES) GROUP BY room, window_end", "group[2; count(*)](select[#0, #2](slide[RANGE 5 MINUTES SLIDE 5 MINUTES]+bounds(block[#1 from readings])))"),
    ("SELECT DISTINCT room FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE]", "distinct(slide[RANGE 5 MINUTES SLIDE 1 MINUTE](block[#1 from readings]))"),
    # words of the language are names elsewhere
    ("SELECT tumble.room AS slide FROM rooms AS tumble", "block[#0 from rooms]"),
]

JOINS: list[Row] = [
    ("SELECT a.room FROM readings [NOW] a JOIN orders [NOW] b ON a.sensor = b.sensor", "block[#1 where =(#0, #6) from readings[NOW], orders[NOW]]"),
    ("SELECT a.room, x.price FROM readings [NOW] a JOIN hot x ON a.sensor = x.sensor WHERE a.ok AND x.price > 1", "join[#1, #3 where =(#0, #2)](block[#0, #1 where #3 from readings[NOW]], select[#1, #2 where >(#2, int:1)](query[hot]))"),
    ("SELECT a.room FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE] a, orders [NOW] b WHERE a.sensor = b.sensor", "join[#1 where =(#0, #2)](slide[RANGE 5 MINUTES SLIDE 1 MINUTE](block[#0, #1 from readings]), block[#1 from orders[NOW]])"),
    ("SELECT a.window_end FROM TUMBLE(readings, 1 MINUTE) a, orders [NOW] b WHERE a.window_start < b.at AND a.ok", "join[#1 where <(#0, #2)](slide[RANGE 1 MINUTE SLIDE 1 MINUTE]+bounds(block[ where #3 from readings]), block[#3 from orders[NOW]])"),
    ("SELECT a.id FROM hot a, hot b WHERE a.sensor = 5 AND a.sensor = b.sensor", "join[#0 where =(#1, #2)](select[#0, #1 where =(#1, int:5)](query[hot]), select[#1 where =(#1, int:5)](query[hot]))"),
    ("SELECT a.id FROM hot a, hot b WHERE a.sensor = b.sensor AND b.id = b.sensor", "join[#0 where =(#1, #3)](select[#0, #1](query[hot]), select[#0, #1 where =(#0, #1)](query[hot]))"),
    ("SELECT a.id FROM hot a, hot b", "join[#0](select[#0](query[hot]), select[](query[hot]))"),
    ("SELECT 1 AS one FROM hot a, hot b WHERE 1 = 2", "join[int:1](select[ where bool:False](query[hot]), select[](query[hot]))"),
    # tables: frozen unless retroactive; all are beside a stream without a window
    ("SELECT a.id, r.floor FROM hot a, rooms r, prices p WHERE a.id = r.floor AND p.floor = a.sensor", "join[#0, #2 where and(=(#0, #2), =(#3, #1))](select[#0, #1](query[hot]), block[#1 from rooms]*, block[#1 from prices])"),
    ("SELECT a.id FROM fresh a, prices p WHERE p.floor = a.sensor AND p.size > 1", "join[#0 where =(#2, #1)](select[#0, #1](query[fresh]), block[#1 where >(#2, int:1) from prices]*)"),
    ("SELECT a.id FROM hot a, (SELECT room, floor FROM rooms) AS r WHERE a.id = r.floor", "join[#0 where =(#0, #1)](select[#0](query[hot]), select[#1](block[#0, #1 from rooms]))"),
]
# fmt: on

ROWS = GROUPS + SETS + QUERIES + STREAMS + SLIDES + JOINS


@pytest.mark.parametrize(("sql", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_a_text_becomes_a_tree(sql: str, expected: str) -> None:
    shown = outline(tree(sql))
    assert shown.replace(shown[shown.find("risky@") : shown.find("(#0, #1)")] or "risky@", "RISKY") == expected


def test_equal_texts_give_equal_trees_wherever_they_stand_in_a_text() -> None:
    sql = "SELECT x.n FROM (SELECT room, COUNT(*) AS n FROM readings [NOW] GROUP BY room) AS x JOIN hot ON hot.id = x.n"
    one, other = tree(sql), tree(" \n " + sql)
    assert one == other and hash(one) == hash(other)
    assert one != tree(sql.replace("[NOW]", "[RANGE 5 MINUTES]"))


def test_a_name_of_with_is_one_node_wherever_it_is_read() -> None:
    node = tree("WITH a AS (SELECT DISTINCT room FROM rooms) SELECT room FROM a EXCEPT ALL SELECT room FROM a")
    assert isinstance(node, SetOperation) and node.left is node.right


def test_widths_of_a_slide_may_be_parameters() -> None:
    sql = "SELECT room FROM HOP(readings, :slide, :size)"
    node = tree(sql, {"slide": timedelta(minutes=1), "size": "5 minutes"})
    assert isinstance(node, Slide) and node.window == WindowSpec.sliding(300_000_000, 60_000_000)
    node = tree("SELECT room FROM readings [RANGE :size SLIDE 1 MINUTE]", {"size": timedelta(minutes=5)})
    assert isinstance(node, Slide) and node.window == WindowSpec.sliding(300_000_000, 60_000_000)
    with pytest.raises(QueryError) as caught:
        tree(sql, {"slide": timedelta(minutes=1)})
    assert (caught.value.code, caught.value.column) == ("missing_param", 40)


def test_a_parameter_in_an_inner_query_belongs_to_the_whole_text() -> None:
    node = tree("SELECT room FROM (SELECT room FROM rooms WHERE floor > :low) AS x WHERE room < :high", {"low": 1, "high": "z"})
    assert outline(node) == "select[#0 where <(#0, string:'z')](block[#0 where >(#1, int:1) from rooms])"


def test_an_aggregate_says_where_its_argument_and_its_filter_are() -> None:
    node = tree("SELECT room, SUM(sensor) FILTER (WHERE ok) AS s FROM readings [NOW] GROUP BY room")
    assert isinstance(node, GroupBy)
    assert node.aggregates == (Aggregate("sum", 1, False, 2, Type.INT),)
    assert [(column.name, column.type) for column in node.child.columns] == [
        ("key_1", Type.STRING), ("value_1", Type.INT), ("value_2", Type.BOOL),
    ]  # fmt: skip
    assert [(column.name, column.type) for column in node.columns] == [("room", Type.STRING), ("s", Type.INT)]
    assert not node.scalar


def test_only_a_group_by_without_keys_is_scalar() -> None:
    node = tree("SELECT COUNT(*) FROM readings [NOW]")
    assert isinstance(node, GroupBy) and node.scalar and node.n_keys == 0
    node = tree("SELECT COUNT(*) FROM readings [NOW] GROUP BY 'all'")
    assert isinstance(node, Select) and isinstance(node.child, GroupBy) and not node.child.scalar


def test_a_join_node_joins_by_the_columns_its_inputs_still_have() -> None:
    node = tree(
        "SELECT a.temp FROM readings [NOW] a, hot b WHERE a.sensor = b.sensor AND a.ts < b.at AND a.temp + b.price > 7 AND a.ok"
    )
    assert isinstance(node, JoinNode)
    assert [[column.name for column in item.columns] for item in node.inputs] == [
        ["sensor", "temp", "ts"],
        ["sensor", "price", "at"],
    ]
    (edge,) = node.join.equalities
    assert [(left.position, right.position) for left, right in edge.pairs] == [(0, 0)]
    (band,) = node.join.bands
    assert (band.left_column.position, band.right_column.position, band.low, band.high) == (2, 2, 1, None)
    (residual,) = node.join.residuals
    assert residual.inputs == (0, 1) and residual.expression == residual.key[1]
    assert node.join.own == (None, None)
    assert node.aliases == ("a", "b")


def test_a_running_query_is_a_leaf_with_its_place() -> None:
    node = tree("SELECT a.id FROM hot a, (SELECT COUNT(*) AS n FROM readings [NOW]) AS b, rooms")
    found = list(leaves(node))
    assert [leaf.name for leaf in found] == ["hot", "readings", "rooms"]
    assert [leaf.span for leaf in found] == [(17, 20), (51, 59), (73, 78)]
    assert NOWHERE not in [leaf.span for leaf in found]
    assert levels(node) == 2 and levels(tree("SELECT room FROM rooms")) == 1
    assert [type(part) for part in walk(node) if isinstance(part, NamedQuery)] == [NamedQuery]


def test_every_leaf_knows_where_its_window_stands() -> None:
    (leaf,) = leaves(tree("SELECT room FROM readings [ROWS 5]"))
    assert not isinstance(leaf, NamedQuery) and leaf.window_span == (27, 33)


def test_what_was_assumed_is_gathered_from_the_whole_tree() -> None:
    node = tree(
        "SELECT x.room, y.room FROM (SELECT room FROM readings) [NOW] AS x, hot, (SELECT room, NULL AS n FROM rooms) AS y"
    )
    assert defaults_of(node) == (
        'a second column "room" is called "room_1"',
        "no condition joins x with hot with y: every combination of their rows counts",
        "no window: each row counts once, as it comes",
        'column "n" is NULL of type int',
    )


def test_windows_in_steps_give_their_bounds() -> None:
    nodes = [
        tree(f"SELECT * FROM {item}") for item in ("TUMBLE(readings, 5 MINUTES)", "readings [RANGE 5 MINUTES SLIDE 5 MINUTES]")
    ]
    assert [column.name for column in schema_of(nodes[0]).columns][-2:] == [column.name for column in BOUNDS]
    assert nodes[0] == nodes[1]


def test_a_stream_may_hold_every_row_only_where_that_is_asked_for() -> None:
    """What holds groups or values may stand where every row could not."""
    for sql in (
        "SELECT MEDIAN(x.n) FROM (SELECT COUNT(*) AS n FROM readings [RANGE UNBOUNDED] GROUP BY room) AS x",
        "SELECT COUNT(DISTINCT x.room) FROM (SELECT DISTINCT room FROM readings [RANGE UNBOUNDED]) AS x",
        "SELECT x.n FROM (SELECT COUNT(*) AS n FROM readings [RANGE UNBOUNDED] GROUP BY room) AS x, orders [NOW]",
        "SELECT SUM(temp), MIN(temp), LAST(temp) FROM readings [RANGE UNBOUNDED]",
        "SELECT MEDIAN(temp) FROM readings [ROWS 5]",
    ):
        assert tree(sql).columns


def nested(depth: int) -> str:
    sql = "SELECT room FROM rooms"
    for _ in range(depth - 1):
        sql = f"SELECT room FROM ({sql}) AS x WHERE room > 'a'"
    return sql


def chained(depth: int, twice: bool = False) -> str:
    """Names of WITH that read each other."""
    names = ["a1 AS (SELECT room FROM rooms)"]
    for number in range(2, depth):
        also = f" UNION SELECT room FROM a{number - 1}" if twice else ""
        names.append(f"a{number} AS (SELECT room FROM a{number - 1} WHERE room > 'a'{also})")
    return f"WITH {', '.join(names)} SELECT room FROM a{depth - 1} WHERE room > 'a'"


@pytest.mark.parametrize("sql_of", [nested, chained])
def test_queries_stand_inside_each_other_up_to_sixteen_levels(sql_of: object) -> None:
    assert callable(sql_of)
    node = tree(sql_of(MAX_LEVELS))
    assert len(list(walk(node))) == MAX_LEVELS
    with pytest.raises(QueryError) as caught:
        tree(sql_of(MAX_LEVELS + 1))
    assert caught.value.code == "query_too_deep" and "16 levels" in caught.value.fact


def test_a_query_has_a_bounded_number_of_selects() -> None:
    assert tree(" UNION ALL ".join(["SELECT room FROM rooms"] * MAX_SELECTS)).columns
    with pytest.raises(QueryError) as caught:
        tree(" UNION ALL ".join(["SELECT room FROM rooms"] * (MAX_SELECTS + 1)))
    assert caught.value.code == "query_too_large"


def test_names_that_double_each_other_are_counted_wherever_they_are_read() -> None:
    """Five doublings are 32 + 32 SELECTs; a tree of thousands would be easy to write."""
    assert tree(chained(6, twice=True)).columns
    with pytest.raises(QueryError) as caught:
        tree(chained(8, twice=True))
    assert caught.value.code == "query_too_large"


def test_a_plain_query_is_one_block() -> None:
    assert isinstance(tree("SELECT room FROM readings [NOW] WHERE ok"), Block)
    assert isinstance(tree("(SELECT room FROM readings [NOW] WHERE ok)"), Block)


def test_a_stream_of_changes_is_outermost_in_its_query() -> None:
    node = tree("ISTREAM (SELECT room FROM readings [NOW] UNION SELECT room FROM rooms)")
    assert isinstance(node, ToStream) and node.is_stream and not node.child.is_stream
