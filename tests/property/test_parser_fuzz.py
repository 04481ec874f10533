"""Any text at all: `parse` and `bind` give a query or a `QueryError` with a place, within a bound on their work."""

from __future__ import annotations

import sys
from types import FrameType

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filters.expressions.expression import Literal
from lineage.errors import QueryError
from lineage.schema import Schema
from queries.binder import bind
from queries.bound import QueryProperties, Readable
from queries.parser import parse
from tests.reference.seeds import amount

SCHEMA = Schema.parse({"sensor": "int", "room": "string", "temp": "float", "ok": "bool", "ts": "timestamp"}, "readings")
ORDERS = Schema.parse({"id": "int", "sensor": "int", "price": "float", "at": "timestamp"}, "orders")
ROOMS = Schema.parse({"room": "string", "floor": "int"}, "rooms")
KNOWN = {
    "readings": Readable(SCHEMA, time=4),
    "orders": Readable(ORDERS),
    "rooms": Readable(ROOMS, is_table=True, key=(0,)),
    "hot": Readable(SCHEMA, query=QueryProperties(False, "weak", True)),
    "fresh": Readable(SCHEMA, query=QueryProperties(True, "monotonic", True)),
}
PARAMS = {"p": 1}

#: Python calls: 6,000 random texts took at most 4.4 a character, with 100 characters' worth for hints and folding.
WORK = 2_000
WORK_PER_CHARACTER = 15

WORDS = (
    "SELECT FROM WHERE AND OR NOT IN IS NULL LIKE BETWEEN ESCAPE CASE WHEN THEN ELSE END AS TRUE FALSE INTERVAL RANGE NOW "
    "UNBOUNDED MINUTES DAY ROWS SLIDE PARTITION BY GROUP ORDER LIMIT DISTINCT JOIN ON UNION WITH EXISTS CAST EXTRACT POSITION "
    "TRIM COALESCE NULLIF GREATEST DATE_TRUNC STRFTIME EPOCH_MS COUNT OVER CURRENT_TIMESTAMP TIMESTAMP INT VARCHAR ISTREAM "
    'HAVING EXCEPT INTERSECT ALL FILTER SUM MEDIAN LAST DSTREAM RSTREAM TUMBLE HOP hot fresh GROUP "GROUP BY" 5 MINUTES '
    "TABLESAMPLE DATE ANY INNER LEFT CROSS USING orders rooms a b a.sensor b.sensor b.at a.ts "
    "readings sensor room temp ok ts x 1 0 2.5 .5 1e3 1e999 9223372036854775808 'a' '1970-01-01' '%' '' :p :q \"temp\" \"a b\" "
    "( ) ( ) , , . + - * / % || = <> < <= > >= :: : [ ] ; // -> ? $1 { } ' \" -- /* */ /*+ ! ~ @ # \\ \u00e9 \U0001f600 \n \t"
).split(" ")

VALID = [
    "SELECT sensor, temp AS t FROM readings [RANGE 5 MINUTES] AS r WHERE r.temp > :p AND room LIKE 'a%' ESCAPE '!' OR NOT ok",
    "SELECT * FROM readings [NOW] WHERE temp BETWEEN 1 AND 2 AND sensor NOT IN (1, -2, :p) AND room IS NOT NULL",
    "SELECT CASE sensor WHEN 1 THEN 'a' ELSE room || 'b' END AS c, CAST(temp AS int) + sensor::float * -2 AS d FROM readings",
    "SELECT EXTRACT(hour FROM ts) AS h, DATE_TRUNC('day', ts) AS d, STRFTIME(ts, '%Y') FROM readings WHERE ts > '1970-01-01'",
    "SELECT ts - INTERVAL '1 hour 30 minutes' AS a, COALESCE(temp, sensor, 0) AS b, POSITION('a' IN room) AS p FROM readings",
    "SELECT a.temp, b.* FROM readings [RANGE 5 MINUTES] a JOIN orders [ROWS :p] AS b ON a.sensor = b.sensor AND a.ts < b.at",
    "SELECT * FROM readings [PARTITION BY room, sensor ROWS 5 RANGE 1 DAY] a, orders [NOW] b, rooms WHERE a.room = rooms.room",
    "SELECT 1 AS one FROM readings a INNER JOIN rooms ON a.room = rooms.room AND floor BETWEEN a.sensor - 5 AND a.sensor + 5",
    "SELECT a.ok FROM readings [NOW] a JOIN readings [NOW] b ON b.ts BETWEEN a.ts - INTERVAL '5' MINUTE AND a.ts WHERE b.ok",
    "SELECT room, COUNT(*) AS n, SUM(temp) FILTER (WHERE ok) / 2 AS s FROM readings [NOW] GROUP BY room HAVING n > 1",
    "SELECT DISTINCT sensor + 1 AS s, COUNT(DISTINCT room) AS c FROM readings [ROWS 5] GROUP BY 1 , ok",
    "SELECT sensor FROM hot UNION ALL (SELECT temp FROM hot EXCEPT SELECT floor FROM rooms) INTERSECT SELECT NULL FROM rooms",
    "WITH a AS (SELECT LAST(temp) AS t FROM hot GROUP BY room), b AS (SELECT t FROM a) SELECT b.* FROM a JOIN b ON a.t = b.t",
    "SELECT x.n FROM (ISTREAM (SELECT COUNT(*) AS n FROM readings [RANGE 5 MINUTES SLIDE 1 DAY])) [ROWS :p] AS x WHERE n > :p",
    "DSTREAM (SELECT MEDIAN(temp) AS m, window_end FROM HOP(readings, ts, 1 DAY, INTERVAL '5' DAY) AS h GROUP BY window_end)",
    "SELECT t.temp FROM TUMBLE(fresh, 5 MINUTES) t, orders [NOW] o, rooms r WHERE t.sensor = o.id AND r.floor < o.sensor",
    "SELECT ((sensor)) AS s FROM readings [RANGE INTERVAL '5' MINUTE] WHERE ((ok AND (temp / 2 % 3 > 1 OR ok)))",
]

soup = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)
framed = st.tuples(soup, soup).map(lambda parts: f"SELECT {parts[0]} FROM readings WHERE {parts[1]}")
grouped = st.tuples(soup, soup).map(lambda parts: f"SELECT {parts[0]} FROM hot GROUP BY {parts[1]}")
nested = st.tuples(soup, soup).map(lambda parts: f"WITH a AS (SELECT sensor {parts[0]}) SELECT room FROM a UNION {parts[1]}")
joined = st.tuples(soup, soup).map(
    lambda parts: f"SELECT a.ok FROM readings [NOW] a JOIN orders [NOW] b ON {parts[0]}, {parts[1]}"
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid query with a few pieces cut out, doubled, swapped or replaced."""
    pieces = draw(st.sampled_from(VALID)).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    for _ in range(draw(st.integers(1, 4))):
        at, other = draw(st.integers(0, len(pieces) - 1)), draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(["cut", "double", "swap", "replace", "split"])):
            case "cut":
                pieces[at] = ""
            case "double":
                pieces.insert(at, pieces[other])
            case "swap":
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case "replace":
                pieces[at] = draw(st.sampled_from(WORDS))
            case "split":
                pieces[at] = pieces[at][: len(pieces[at]) // 2]
    return " ".join(pieces)


def attempt(sql: str) -> int:
    """Parse and bind; the number of Python calls it took."""
    n_calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal n_calls
        n_calls += event == "call"

    sys.setprofile(count)
    try:
        bind(parse(sql), lambda name: KNOWN.get(name.lower()), PARAMS if ":p" in sql else None)
    except QueryError as error:
        sys.setprofile(None)
        assert error.line is not None and error.line >= 1
        assert error.column is not None and 1 <= error.column <= len(sql) + 1
        assert error.fact and str(error)
    finally:
        sys.setprofile(None)
    return n_calls


@pytest.mark.parametrize("sql", VALID)
def test_the_seeds_are_valid(sql: str) -> None:
    assert bind(parse(sql), KNOWN.get, PARAMS if ":p" in sql else None).columns


@settings(max_examples=amount(150, long=400), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(soup, framed, joined, grouped, nested, mutated(), st.text(max_size=80)))
def test_any_text_gives_a_query_or_a_query_error(sql: str) -> None:
    assert attempt(sql) < WORK + WORK_PER_CHARACTER * len(sql)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(100, 3000))
def test_repeated_pieces_stay_within_the_work_bound(pieces: list[str], times: int) -> None:
    sql = "SELECT temp FROM readings WHERE " + (" ".join(pieces) + " ") * times
    assert attempt(sql) < WORK + WORK_PER_CHARACTER * len(sql)


NUMBERS = st.sampled_from(["1", "2", "3", "0.5", "(2 - 5)", "NULL"])
OPERATORS = st.sampled_from(
    "+ - * / % = <> < <= > >= AND OR".split() + ["AND NOT", "IS NULL AND", "BETWEEN 1 AND", "NOT BETWEEN 2 AND"]
)


@settings(max_examples=amount(120, long=300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.booleans(), NUMBERS, st.lists(st.tuples(OPERATORS, st.sampled_from(["", "-"]), NUMBERS), min_size=1, max_size=6))
def test_operators_bind_as_in_duckdb(negated: bool, first: str, rest: list[tuple[str, str, str]]) -> None:
    """A row of operators without parentheses, computed while binding, against DuckDB's reading of the same text."""
    text = ("NOT " if negated else "") + first + "".join(f" {operator} {sign}{number}" for operator, sign, number in rest)
    try:
        bound = bind(parse(f"SELECT {text} AS x FROM readings"), {"readings": Readable(SCHEMA)}.get)
    except QueryError:
        return
    expression = bound.columns[0].expression
    if isinstance(expression, Literal):
        ((expected,),) = duckdb.execute(f"SELECT {text.replace('0.5', '0.5::double')} AS x").fetchall()
        assert expression.value == expected or expression.value == pytest.approx(expected)
