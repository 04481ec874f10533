"""The rules of update patterns, row by row, and the annotated plans of the update-patterns paper."""

from __future__ import annotations

import pytest

from lineage.schema import Schema
from queries.binder import bind
from queries.bound import QueryProperties, Readable
from queries.nodes import GroupBy, JoinNode, Node, Select, SetOperation
from queries.parser import parse
from queries.tree import walk
from windows.patterns import MONOTONIC, OPERATORS, PATTERNS, STRICT, WEAK, WEAKEST, ends_known, window_cases, window_pattern
from windows.spec import FOREVER, WindowSpec

LINK = Schema.parse({"source": "string", "protocol": "string", "size": "int", "ts": "timestamp", "until": "timestamp"}, "link")
KNOWN = {
    **{name: Readable(LINK, time=3) for name in ("a", "b", "c")},
    "keyed": Readable(LINK, key=(0,), time=3),
    "ending": Readable(LINK, time=3, end=4),
    "frozen": Readable(LINK, is_table=True, key=(0,)),
    "live": Readable(LINK, is_table=True, key=(0,), retroactive=True),
    "running": Readable(LINK, query=QueryProperties(False, WEAKEST, True)),
}


def plan(sql: str) -> Node:
    return bind(parse(sql), KNOWN.get)


LEAVES = [
    (WindowSpec.none(), MONOTONIC),
    (WindowSpec.unbounded(), MONOTONIC),
    (WindowSpec.range(5), WEAKEST),
    (WindowSpec.now(), WEAKEST),
    (WindowSpec.sliding(5, 5), WEAKEST),
    (WindowSpec.newest(5), STRICT),
    (WindowSpec.newest(5, [0], 7), STRICT),
]


@pytest.mark.parametrize(("window", "pattern"), LEAVES, ids=[str(window) for window, _ in LEAVES])
def test_a_leaf_has_the_pattern_of_its_window(window: WindowSpec, pattern: str) -> None:
    assert window_pattern(window) == pattern


@pytest.mark.parametrize("window", [WindowSpec.unbounded(), WindowSpec.range(5), WindowSpec.sliding(5, 1)])
def test_an_end_of_its_own_makes_a_leaf_weak_and_a_key_strict(window: WindowSpec) -> None:
    assert window_pattern(window, has_end=True) == WEAK
    assert window_pattern(window, keyed=True) == window_pattern(window, keyed=True, has_end=True) == STRICT


def test_rows_that_may_be_retracted_never_make_a_stream_take_anything_back() -> None:
    assert window_pattern(WindowSpec.none(), keyed=True, has_end=True) == MONOTONIC


#: operator, what comes in, what goes out: semantics.md, "Update patterns".
RULES = [
    *(("select", [pattern], pattern) for pattern in PATTERNS),
    *(("join with a frozen table", [pattern], pattern) for pattern in PATTERNS),
    *(("join with a live table", [pattern], STRICT) for pattern in PATTERNS),
    *(("group-by", [pattern], WEAK) for pattern in PATTERNS),
    *(("except", [pattern, MONOTONIC], STRICT) for pattern in PATTERNS),
    *(("istream", [pattern], MONOTONIC) for pattern in PATTERNS),
    *(("lmerge", [pattern, WEAKEST], STRICT) for pattern in PATTERNS),
    ("union", [MONOTONIC, MONOTONIC], MONOTONIC),
    ("union", [MONOTONIC, WEAKEST], WEAKEST),
    ("union", [WEAK, WEAKEST], WEAK),
    ("union", [WEAK, STRICT], STRICT),
    *(
        (operator, patterns, result)
        for operator in ("join", "intersect")
        for patterns, result in [
            ([MONOTONIC, MONOTONIC], MONOTONIC),
            ([MONOTONIC, WEAKEST], WEAK),
            ([WEAKEST, WEAKEST], WEAK),
            ([WEAK, WEAKEST], WEAK),
            ([WEAKEST, STRICT], STRICT),
        ]
    ),
    ("distinct", [MONOTONIC], MONOTONIC),
    ("distinct", [WEAKEST], WEAK),
    ("distinct", [WEAK], WEAK),
    ("distinct", [STRICT], STRICT),
]


@pytest.mark.parametrize(("operator", "patterns", "result"), RULES)
def test_an_operator_makes_its_pattern_of_those_of_its_inputs(operator: str, patterns: list[str], result: str) -> None:
    assert OPERATORS[operator].pattern(patterns) == result


CASES = [
    (("select", "union", "join", "join with a frozen table", "join with a live table", "lmerge"), "+->+ -->-"),
    (("distinct", "intersect"), "+->+ -->+ -->-"),
    (("except", "group-by"), "+->+ +->- -->+ -->-"),
    (("istream",), "+->+"),
    (("dstream",), "-->+"),
    (("rstream",), "+->+ -->+"),
]


@pytest.mark.parametrize(("operators", "cases"), CASES)
def test_an_operator_has_the_cases_of_the_semantics(operators: tuple[str, ...], cases: str) -> None:
    assert [OPERATORS[operator].cases for operator in operators] == [tuple(cases.split())] * len(operators)


def test_every_operator_has_its_cases_tested() -> None:
    assert {operator for operators, _ in CASES for operator in operators} == set(OPERATORS)


def test_a_window_that_counts_rows_ends_one_by_another() -> None:
    assert window_cases(WindowSpec.range(5)) == ("+->+", "-->-")
    assert window_cases(WindowSpec.range(5), keyed=True) == ("+->+", "+->-", "-->-")
    assert window_cases(WindowSpec.newest(5, width_us=3)) == ("+->+", "+->-", "-->-")
    assert window_cases(WindowSpec.newest(5)) == ("+->+", "+->-"), "nothing but a newer row ends one"
    assert window_cases(WindowSpec.none()) == window_cases(WindowSpec.unbounded()) == ("+->+",)
    assert window_cases(WindowSpec.unbounded(), has_end=True) == ("+->+", "-->-")


def test_ends_are_known_unless_something_below_hides_them() -> None:
    assert ends_known("join", [WEAKEST, WEAK], [True, True])
    assert not ends_known("join", [WEAKEST, WEAK], [True, False])
    assert not ends_known("group-by", [WEAKEST], [True])
    assert not ends_known("distinct", [STRICT], [False])
    assert not ends_known("except", [WEAKEST, WEAKEST], [True, True])
    assert ends_known("istream", [STRICT], [False])


#: Query, pattern, ends_known, is_stream.
TREES = [
    ("SELECT size FROM a", MONOTONIC, True, True),
    ("SELECT size FROM a [RANGE UNBOUNDED]", MONOTONIC, True, False),
    ("SELECT size FROM a [RANGE 5 MINUTES]", WEAKEST, True, False),
    ("SELECT size FROM a [RANGE 5 MINUTES SLIDE 1 MINUTE]", WEAKEST, True, False),
    ("SELECT * FROM TUMBLE(a, 5 MINUTES) WHERE window_end > '2000-01-01'", WEAKEST, True, False),
    ("SELECT size FROM a [ROWS 5]", STRICT, False, False),
    ("SELECT size FROM keyed [RANGE 5 MINUTES]", STRICT, False, False),
    ("SELECT size FROM keyed", MONOTONIC, True, True),
    ("SELECT size FROM ending [RANGE 5 MINUTES]", WEAK, True, False),
    ("SELECT size FROM ending [RANGE UNBOUNDED]", WEAK, True, False),
    ("SELECT size FROM ending [RANGE 5 MINUTES SLIDE 1 MINUTE]", WEAK, True, False),
    ("SELECT size FROM keyed [RANGE 5 MINUTES SLIDE 1 MINUTE]", STRICT, False, False),
    ("SELECT a.size FROM a [NOW], frozen WHERE a.source = frozen.source", WEAKEST, True, False),
    ("SELECT a.size FROM a [NOW], live WHERE a.source = live.source", STRICT, False, False),
    ("SELECT a.size FROM a, live WHERE a.source = live.source", MONOTONIC, True, True),
    ("SELECT size FROM frozen", STRICT, False, False),
    ("SELECT a.size FROM a [NOW], b [NOW]", WEAK, True, False),
    ("SELECT a.size FROM a [NOW], b [ROWS 5]", STRICT, False, False),
    ("SELECT r.size FROM running r, b [NOW]", WEAK, True, False),
    ("SELECT r.size FROM running r, frozen", WEAKEST, True, False),
    ("SELECT r.size FROM running r, live", STRICT, False, False),
    ("SELECT DISTINCT size FROM a [NOW]", WEAK, True, False),
    ("SELECT DISTINCT size FROM a [ROWS 5]", STRICT, False, False),
    ("SELECT DISTINCT size FROM a [RANGE UNBOUNDED]", MONOTONIC, True, False),
    ("SELECT COUNT(*) FROM a [ROWS 5]", WEAK, False, False),
    ("SELECT COUNT(*) FROM a [RANGE UNBOUNDED]", WEAK, False, False),
    ("SELECT DISTINCT n FROM (SELECT COUNT(*) AS n FROM a [NOW] GROUP BY size) AS x", WEAK, False, False),
    ("SELECT x.n FROM (SELECT COUNT(*) AS n FROM a [NOW] GROUP BY size) AS x, b [NOW]", WEAK, False, False),
    ("SELECT size FROM a [NOW] UNION ALL SELECT size FROM b [ROWS 5]", STRICT, False, False),
    ("SELECT size FROM a [NOW] UNION ALL SELECT size FROM a [NOW] WHERE size > 5", WEAKEST, True, False),
    ("SELECT size FROM a [NOW] UNION ALL SELECT size FROM a [RANGE 5 MINUTES]", WEAK, True, False),
    ("SELECT size FROM a [NOW] UNION ALL SELECT size FROM b [NOW]", WEAK, True, False),
    ("SELECT size FROM a [NOW] UNION SELECT size FROM a [NOW]", WEAK, True, False),
    ("SELECT size FROM TUMBLE(a, 1 DAY) UNION ALL SELECT size FROM TUMBLE(a, 1 DAY) WHERE size > 5", WEAKEST, True, False),
    ("SELECT size FROM TUMBLE(a, 1 DAY) UNION ALL SELECT size FROM HOP(a, 1 HOUR, 1 DAY)", WEAK, True, False),
    ("SELECT size FROM running UNION ALL SELECT size FROM running WHERE size > 5", WEAKEST, True, False),
    ("SELECT x.size FROM (ISTREAM (SELECT size FROM keyed [NOW])) [RANGE 1 DAY SLIDE 1 HOUR] AS x", WEAKEST, True, False),
    ("SELECT size FROM a [NOW] INTERSECT SELECT size FROM b [NOW]", WEAK, True, False),
    ("SELECT size FROM a [NOW] EXCEPT SELECT size FROM b [NOW]", STRICT, False, False),
    ("ISTREAM (SELECT size FROM a [NOW] EXCEPT SELECT size FROM b [NOW])", MONOTONIC, True, True),
    ("SELECT size FROM (ISTREAM (SELECT size FROM a [ROWS 5])) [RANGE 5 MINUTES] AS x", WEAKEST, True, False),
    ("SELECT size FROM (ISTREAM (SELECT size FROM a [ROWS 5])) [ROWS 5] AS x", STRICT, False, False),
]


@pytest.mark.parametrize(("sql", "pattern", "known", "is_stream"), TREES, ids=[row[0] for row in TREES])
def test_the_root_of_a_tree_says_what_its_rows_do(sql: str, pattern: str, known: bool, is_stream: bool) -> None:
    node = plan(sql)
    assert (node.update_pattern, node.ends_known, node.is_stream) == (pattern, known, is_stream)


def annotations(node: Node) -> list[tuple[str, str]]:
    """The operators of a plan, root first, with the pattern of the edge above each; renaming shows nothing."""
    named = [part for part in walk(node) if not isinstance(part, Select)]
    return [(part.kind if isinstance(part, SetOperation) else type(part).__name__, part.update_pattern) for part in named]


NEVER, SHORT, LONG = (f"SELECT size FROM a [RANGE {width}]" for width in ("UNBOUNDED", "1 SECOND", "1 MINUTE"))


@pytest.mark.parametrize(
    ("sql", "pattern"),
    [
        (f"{NEVER} UNION ALL {SHORT}", WEAKEST),
        (f"({NEVER} UNION ALL {SHORT}) UNION ALL ({SHORT} UNION ALL {NEVER})", WEAKEST),
        (f"({NEVER} UNION ALL {SHORT}) UNION ALL ({NEVER} UNION ALL {LONG})", WEAK),
        (f"{SHORT} UNION ALL {NEVER} UNION ALL {LONG}", WEAK),
        (f"{NEVER} UNION ALL {NEVER}", MONOTONIC),
    ],
)
def test_rows_that_never_end_do_not_hide_the_order_of_those_that_do(sql: str, pattern: str) -> None:
    assert plan(sql).update_pattern == pattern


def test_negation_above_the_join_is_annotated_as_in_figure_6_left() -> None:
    """Query 5 with the negation pulled up: only the edge above it is strict. (The paper's rewriting changes multiplicities.)"""
    node = plan(
        "SELECT a.source FROM a [RANGE 1 HOUR] JOIN c [RANGE 1 HOUR] ON a.source = c.source WHERE c.protocol = 'ftp' "
        "EXCEPT ALL SELECT source FROM b [RANGE 1 HOUR]"
    )
    assert annotations(node) == [("except", STRICT), ("Block", WEAK), ("Block", WEAKEST)]


def test_negation_below_the_join_is_annotated_as_in_figure_6_right() -> None:
    """Query 5 with the negation pushed down: what stands above it is strict too."""
    node = plan(
        "SELECT n.source FROM (SELECT source FROM a [RANGE 1 HOUR] EXCEPT ALL SELECT source FROM b [RANGE 1 HOUR]) AS n "
        "JOIN c [RANGE 1 HOUR] ON n.source = c.source WHERE c.protocol = 'ftp'"
    )
    expected = [("JoinNode", STRICT), ("except", STRICT), ("Block", WEAKEST), ("Block", WEAKEST), ("Block", WEAKEST)]
    assert annotations(node) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT x.source FROM (SELECT DISTINCT source, protocol FROM a [RANGE 1 HOUR]) AS x JOIN b [RANGE 1 HOUR] "
            "ON x.source = b.source WHERE x.protocol = 'ftp'",
            [("JoinNode", WEAK), ("Distinct", WEAK), ("Block", WEAKEST), ("Block", WEAKEST)],
        ),
        ("SELECT DISTINCT source FROM a [RANGE 1 HOUR]", [("Distinct", WEAK), ("Block", WEAKEST)]),
        (
            "SELECT source FROM a [RANGE 1 HOUR] EXCEPT ALL SELECT source FROM b [RANGE 1 HOUR]",
            [("except", STRICT), ("Block", WEAKEST), ("Block", WEAKEST)],
        ),
    ],
    ids=["1", "2", "3"],
)
def test_the_first_three_queries_of_figure_8_are_annotated(sql: str, expected: list[tuple[str, str]]) -> None:
    """Query 1 joins streams: a block by itself, so that here one side of it is an operator."""
    assert annotations(plan(sql)) == expected


def test_the_join_of_two_distincts_of_figure_8_is_weak_throughout() -> None:
    node = plan(
        "SELECT x.source FROM (SELECT DISTINCT source FROM a [RANGE 1 HOUR]) AS x "
        "JOIN (SELECT DISTINCT source FROM b [RANGE 1 HOUR]) AS y ON x.source = y.source"
    )
    assert annotations(node) == [
        ("JoinNode", WEAK), ("Distinct", WEAK), ("Block", WEAKEST), ("Distinct", WEAK), ("Block", WEAKEST),
    ]  # fmt: skip
    assert isinstance(node, JoinNode) and node.ends_known


def test_what_stands_above_groups_does_not_count_on_their_ends() -> None:
    """Rule 4 says weak, whatever comes in; delta-star, which is right over weak input, would be wrong here."""
    node = plan("SELECT DISTINCT n FROM (SELECT COUNT(*) AS n FROM a [ROWS 5] GROUP BY source) AS x")
    groups = next(part for part in walk(node) if isinstance(part, GroupBy))
    assert (groups.update_pattern, groups.ends_known) == (WEAK, False)
    assert (node.update_pattern, node.ends_known) == (WEAK, False)


# -- Window specifications: what they promise the engine ---------------------------------------------------------------


MINUTE = 60_000_000
#: spec, text, is_stream, ends, update pattern, width
SPECS = [
    (WindowSpec.none(), "no window", True, False, "monotonic", 0),
    (WindowSpec.now(), "[NOW]", False, True, "weakest", 1),
    (WindowSpec.unbounded(), "[RANGE UNBOUNDED]", False, False, "monotonic", FOREVER),
    (WindowSpec.range(5 * MINUTE), "[RANGE 5 MINUTES]", False, True, "weakest", 5 * MINUTE),
    (WindowSpec.range(7), "[RANGE 7 MICROSECONDS]", False, True, "weakest", 7),
    (WindowSpec.newest(10), "[ROWS 10]", False, True, "strict", FOREVER),
    (WindowSpec.newest(10, width_us=MINUTE), "[ROWS 10 RANGE 1 MINUTE]", False, True, "strict", MINUTE),
    (WindowSpec.newest(3, [2, 0]), "[PARTITION BY #0, #2 ROWS 3]", False, True, "strict", FOREVER),
    (WindowSpec.newest(3, [1], 1000), "[PARTITION BY #1 ROWS 3 RANGE 1 MILLISECOND]", False, True, "strict", 1000),
]


@pytest.mark.parametrize("row", SPECS, ids=[row[1] for row in SPECS])
def test_a_window_says_what_it_is(row: tuple[WindowSpec, str, bool, bool, str, int]) -> None:
    spec = row[0]
    assert (str(spec), spec.is_stream, spec.ends, spec.update_pattern, spec.width_us) == row[1:]


def test_windows_with_the_same_rows_are_one_key() -> None:
    assert WindowSpec.newest(3, [2, 0]) == WindowSpec.newest(3, [0, 2, 2])
    assert len({spec for spec, *_ in SPECS} | {WindowSpec.newest(3, (0, 2)), WindowSpec.newest(10)}) == len(SPECS)


def test_key_columns_are_said_by_name() -> None:
    assert WindowSpec.newest(3, [2, 0]).say(["a", "b", "c"]) == "[PARTITION BY a, c ROWS 3]"
    assert WindowSpec.now().say(["a"]) == "[NOW]"
