"""LMERGE in FROM: what its inputs may be, what its window is over, and what is refused, with the place."""

from __future__ import annotations

import pytest

from lineage.errors import QueryError
from lineage.schema import Schema
from queries.binder import bind
from queries.bound import QueryProperties, Readable
from queries.nodes import Block, LMerge, NamedQuery, Node, Select, Slide, Window
from queries.parser import parse
from queries.syntax import MAX_INPUTS, SelectQuery
from queries.tree import is_ordered, mapped, walk, word_of
from windows import patterns
from windows.spec import WindowKind, WindowSpec

COLUMNS = {"k": "int", "v": "float", "ts": "timestamp"}
ROWS = Schema.parse(COLUMNS, "a")
STREAM, RELATION = QueryProperties(True, "monotonic", True), QueryProperties(False, "weak", False)
KNOWN = {
    "a": Readable(ROWS, time=2),
    "b": Readable(ROWS, time=2),
    "upper": Readable(Schema.parse({"K": "int", "V": "float", "TS": "timestamp"}, "upper"), time=2),
    "keyed": Readable(ROWS, time=2, key=(0,)),
    "ending": Readable(ROWS, time=2, end=2),
    "revised": Readable(ROWS, time=2, taken_back=True),
    "two_times": Readable(Schema.parse({"k": "int", "v": "float", "ts": "timestamp"}, "two_times"), time=None),
    "narrow": Readable(Schema.parse({"k": "int", "ts": "timestamp"}, "narrow"), time=1),
    "renamed": Readable(Schema.parse({"k": "int", "w": "float", "ts": "timestamp"}, "renamed"), time=2),
    "texts": Readable(Schema.parse({"k": "int", "v": "string", "ts": "timestamp"}, "texts"), time=2),
    "times": Readable(Schema.parse({"k": "int", "t": "timestamp", "u": "timestamp"}, "times"), time=1),
    "others": Readable(Schema.parse({"k": "int", "t": "timestamp", "u": "timestamp"}, "others"), time=2),
    "rooms": Readable(ROWS, is_table=True, key=(0,)),
    "fresh": Readable(ROWS, query=STREAM),
    "hot": Readable(ROWS, query=RELATION),
    "cold": Readable(ROWS, query=RELATION),
    "idle": Readable(ROWS, query=QueryProperties(False, "weak", False, paused=True)),
    "deep": Readable(ROWS, query=QueryProperties(False, "weak", False, levels=16)),
}


def tree(sql: str) -> Node:
    return bind(parse(sql), lambda name: KNOWN.get(name.lower()), None, None, lambda: list(KNOWN))


def test_the_text_names_its_inputs_with_their_places() -> None:
    sql = 'SELECT k FROM LMERGE(a, "b") [RANGE 5 MINUTES] AS r'
    query = parse(sql).query
    assert isinstance(query, SelectQuery)
    (item,) = query.from_items
    assert [(name.name, sql[name.start : name.end]) for name in item.merged] == [("a", "a"), ("b", '"b"')]
    assert (item.name, item.alias, sql[item.start : item.end]) == ("r", "r", 'LMERGE(a, "b")')
    assert item.window == WindowSpec.range(300_000_000)


def test_lmerge_is_a_name_where_no_parenthesis_follows() -> None:
    query = parse("SELECT lmerge FROM lmerge [NOW]").query
    assert isinstance(query, SelectQuery) and query.from_items[0].name == "lmerge" and query.from_items[0].merged == ()


def test_streams_merge_to_a_stream() -> None:
    node = tree("SELECT * FROM LMERGE(a, fresh, B) AS r")
    assert isinstance(node, LMerge) and node.is_stream and not node.windowed
    assert node.names == ("a", "fresh", "B") and [column.name for column in node.columns] == ["k", "v", "ts"]
    assert [type(item) for item in node.inputs] == [Block, NamedQuery, Block]
    assert node.update_pattern == patterns.MONOTONIC and node.ends_known and node.cases == patterns.STREAM_CASES
    assert is_ordered(node) and not node.grows and node.end_order is None and word_of(node) == "lmerge"
    assert [item.merged for item in node.inputs if isinstance(item, NamedQuery)] == [True]
    assert mapped(node, lambda found: found) is node
    assert isinstance(tree("SELECT k FROM LMERGE(a, upper) AS r"), Select), "names of columns are the same in any case"


@pytest.mark.parametrize(
    ("window", "cases"),
    [
        ("[RANGE 5 MINUTES]", "+->+ -->-"), ("[NOW]", "+->+ -->-"), ("[RANGE UNBOUNDED]", "+->+ -->-"),
        ("[ROWS 3]", "+->+ +->- -->-"), ("[PARTITION BY k ROWS 3]", "+->+ +->- -->-"),
        ("[RANGE 5 MINUTES SLIDE 1 MINUTE]", "+->+ -->-"),
    ],
)  # fmt: skip
def test_a_window_over_merged_streams_is_strict_for_rows_may_be_taken_back(window: str, cases: str) -> None:
    node = tree(f"SELECT DISTINCT k FROM LMERGE(a, b) {window} AS r")
    (over,) = [found for found in walk(node) if isinstance(found, Window | Slide)]
    assert isinstance(over.child, LMerge) and over.child.windowed
    assert over.update_pattern == patterns.STRICT and not over.ends_known and " ".join(over.cases) == cases


def test_a_window_over_a_stream_query_of_a_merge_takes_nothing_back() -> None:
    """A query that is a stream only gains rows, also where it selects nothing."""
    for select in ("*", "k"):
        node = tree(f"WITH m AS (SELECT {select} FROM LMERGE(a, b) AS r) SELECT DISTINCT k FROM m [RANGE 5 MINUTES]")
        (over,) = [found for found in walk(node) if isinstance(found, Window)]
        (merge,) = [found for found in walk(node) if isinstance(found, LMerge)]
        assert over.update_pattern == patterns.WEAKEST and not merge.windowed


def test_relations_merge_to_a_relation() -> None:
    node = tree("SELECT * FROM LMERGE(hot, cold) AS r")
    assert isinstance(node, LMerge) and not node.is_stream
    assert node.update_pattern == patterns.STRICT and not node.ends_known and not node.grows and not is_ordered(node)


def test_the_window_beside_relations_is_that_of_the_streams() -> None:
    node = tree("SELECT * FROM LMERGE(a, hot, fresh, keyed) [ROWS 3] AS r")
    assert isinstance(node, LMerge) and not node.is_stream
    pushed, query, stream, keyed = node.inputs
    assert isinstance(pushed, Block) and isinstance(keyed, Block) and pushed.window == keyed.window == WindowSpec.newest(3)
    assert isinstance(query, NamedQuery) and query.merged
    assert isinstance(stream, Window) and stream.window == WindowSpec.newest(3)
    assert tree("SELECT k FROM LMERGE(a, hot) [RANGE UNBOUNDED] AS r").grows


def test_a_window_in_steps_gives_its_bounds() -> None:
    node = tree("SELECT k, window_end FROM LMERGE(a, b) [RANGE 5 MINUTES SLIDE 1 MINUTE] AS r")
    (slide,) = [found for found in walk(node) if isinstance(found, Slide)]
    assert slide.of_query and slide.bounds and slide.window.kind is WindowKind.SLIDE


def test_merges_stand_beside_each_other_and_in_joins() -> None:
    sql = "SELECT r.k FROM LMERGE(a, b) [NOW] AS r JOIN LMERGE(hot, cold) AS s ON r.k = s.k, rooms WHERE rooms.k = r.k"
    assert sum(isinstance(found, LMerge) for found in walk(tree(sql))) == 2


MERGE = "write FROM LMERGE(a, b) [RANGE 5 MINUTES] AS r"
EQUAL = "inputs of LMERGE have equal columns, in the same order"
KEYED = "give it a window: submit SELECT * FROM {} [RANGE 5 MINUTES] with a name, and merge that"


@pytest.mark.parametrize(
    ("source", "code", "column", "fact", "hint"),
    [
        ("LMERGE(a) AS r", "too_few_inputs", 15, "LMERGE has one input", f"at least two give the same rows: {MERGE}"),
        ("LMERGE() AS r", "too_few_inputs", 15, "LMERGE has no inputs", f"at least two give the same rows: {MERGE}"),
        (
            "LMERGE(a, b, A) AS r",
            "duplicate_input",
            28,
            '"A" stands twice in LMERGE',
            "an input merged with itself is that input",
        ),
        ("LMERGE(a, b)", "missing_alias", 15, "LMERGE needs a name", "write AS behind it: LMERGE(a, b) AS r"),
        ("LMERGE(a b) AS r", "syntax_error", 24, 'unexpected "b"', MERGE),
        ("LMERGE(a, b, ) AS r", "syntax_error", 28, 'unexpected ")"', "the name of a stream is missing"),
        ("LMERGE(, a) AS r", "syntax_error", 22, 'unexpected ","', "the name of a stream is missing"),
        ("LMERGE(a [NOW], b) AS r", "syntax_error", 24, "a window stands behind LMERGE", MERGE),
        ("LMERGE(a, (SELECT 1)) AS r", "syntax_error", 25, "LMERGE takes names", "submit the query with a name, and merge that"),
        (
            "LMERGE(a, x.b) AS r",
            "not_supported",
            26,
            "a name of two parts in FROM is not part of the language",
            "stream names have no prefix",
        ),
        (
            "LMERGE(a, b) AS r [NOW]",
            "syntax_error",
            28,
            "the alias stands before the window",
            "the window stands right behind the stream: FROM s [RANGE 5 MINUTES] AS a",
        ),
        ("LMERGE(a, bb) AS r", "unknown_stream", 25, 'stream "bb" does not exist', 'did you mean "b"?'),
        (
            "LMERGE(a, rooms) AS r",
            "bad_merge_input",
            25,
            'table "rooms" cannot be merged',
            "LMERGE takes streams and running queries; join the table with what they give",
        ),
        ("LMERGE(hot, idle) AS r", "paused", 27, 'query "idle" is paused', "resume it first"),
        (
            "LMERGE(hot, deep) AS r",
            "query_too_deep",
            27,
            "running queries stand above each other deeper than 16 levels",
            'read what "deep" reads',
        ),
        ("LMERGE(a, narrow) AS r", "column_count", 25, '"narrow" has 2 columns and "a" has 3', EQUAL),
        (
            "LMERGE(a, renamed) AS r",
            "column_mismatch",
            25,
            '"renamed" has a column "w" of type float where "a" has "v" of type float',
            EQUAL,
        ),
        (
            "LMERGE(a, texts) AS r",
            "column_mismatch",
            25,
            '"texts" has a column "v" of type string where "a" has "v" of type float',
            EQUAL,
        ),
        (
            "LMERGE(a, keyed) AS r",
            "bad_merge_input",
            25,
            'stream "keyed" cannot be merged as it is: its rows have a key and replace each other',
            KEYED.format("keyed"),
        ),
        (
            "LMERGE(ending, a) AS r",
            "bad_merge_input",
            22,
            'stream "ending" cannot be merged as it is: a column has the ends of its rows',
            KEYED.format("ending"),
        ),
        (
            "LMERGE(a, revised) [NOW] AS r",
            "bad_merge_input",
            25,
            'stream "revised" cannot be merged as it is: its rows may be taken back',
            KEYED.format("revised"),
        ),
        (
            "LMERGE(times, others) AS r",
            "bad_merge_input",
            29,
            'the time of "others" is column "u"',
            'that of "times" is "t": rows are merged by their times',
        ),
        (
            "LMERGE(hot, a) AS r",
            "missing_window",
            27,
            'stream "a" needs a window beside a relation in LMERGE',
            "the window behind LMERGE is that of the streams in it: LMERGE(hot, a) [RANGE 5 MINUTES] AS r",
        ),
        (
            "LMERGE(hot, cold) [NOW] AS r",
            "relation_window",
            34,
            'LMERGE "r" is one of relations and takes no window',
            "rows of a relation end by themselves: leave the window out",
        ),
        ("LMERGE(hot, a) [RANGE 5 MINUTES SLIDE 1 MINUTE] AS r", "column_count", 27, '"a" has 5 columns and "hot" has 3', EQUAL),
        (
            "LMERGE(a, b) AS r, hot",
            "missing_window",
            15,
            'merge "r" is a stream and needs a window in a join',
            "choose [RANGE 5 MINUTES], [ROWS 100] or [NOW]",
        ),
        (
            "LMERGE(a, b) [RANGE UNBOUNDED] AS r, hot",
            "unbounded_join",
            15,
            'merge "r" reads [RANGE UNBOUNDED] and cannot stand in a join',
            "it would keep every row for ever: choose [RANGE 5 MINUTES], [ROWS 100] or [NOW]",
        ),
        (
            "LMERGE(a, b) AS r GROUP BY k",
            "missing_window",
            15,
            'merge "r", which is a stream, needs a window under GROUP BY',
            "choose [RANGE 5 MINUTES], [ROWS 100], [NOW] or [RANGE UNBOUNDED]",
        ),
        (
            "LMERGE(a, b) [PARTITION BY x ROWS 2] AS r",
            "unknown_column",
            42,
            'column "x" of PARTITION BY does not exist',
            "there are: k, v, ts",
        ),
        (
            "LMERGE(a, b) [NOW] AS r WHERE x > 1",
            "unknown_column",
            45,
            'column "x" does not exist in merge "r"',
            "there are: k, v, ts",
        ),
        ("LMERGE(a, b) [NOW] AS r WHERE s.k > 1", "unknown_stream", 45, '"s" is no source of this query', "there are: r"),
    ],
)
def test_what_cannot_be_merged_is_told_with_its_place(source: str, code: str, column: int, fact: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        tree(f"SELECT k FROM {source}")
    error = caught.value
    assert (error.code, error.column, error.fact, error.hint) == (code, column, fact, hint)


def test_a_name_of_with_cannot_be_merged() -> None:
    with pytest.raises(QueryError) as caught:
        tree("WITH m AS (SELECT * FROM a) SELECT k FROM LMERGE(b, M) AS r")
    assert caught.value.code == "bad_merge_input" and caught.value.fact == '"M" is a name of WITH and cannot be merged'
    assert tree("WITH r AS (SELECT * FROM rooms) SELECT k FROM LMERGE(a, b) AS r").is_stream, "the alias of a merge is its own"


def test_a_merge_has_a_bounded_number_of_inputs() -> None:
    names = ", ".join(f"s{n}" for n in range(MAX_INPUTS + 1))
    with pytest.raises(QueryError) as caught:
        parse(f"SELECT k FROM LMERGE({names}) AS r")
    assert (caught.value.code, caught.value.fact) == ("too_many_inputs", f"LMERGE has more than {MAX_INPUTS} inputs")
