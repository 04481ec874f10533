"""Text in, canonical expressions out: what each form of the language means once it is bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lineage.schema import Schema
from queries.binder import bind
from queries.bound import Readable
from queries.parser import parse
from tests.unit.queries.bindings import RISKY, SCHEMA, condition, run, value
from windows.spec import FOREVER, WindowKind, WindowSpec

CONDITIONS = [
    # precedence
    ("temp > 1 AND ok OR NOT ok", 'or(and(>("temp", int:1), "ok"), not("ok"))'),
    ("ok AND (ok OR temp < 2.5)", 'and("ok", or("ok", <("temp", float:2.5)))'),
    ("NOT temp = 1", 'not(=("temp", int:1))'),
    ("NOT ok AND ok", 'and(not("ok"), "ok")'),
    ("NOT NOT ok", 'not(not("ok"))'),
    ("temp = 1 IS NULL", 'is_null(=("temp", int:1))'),
    ("sensor + 1 * 2 = sensor - 3 - 4", '=(+("sensor", int:2), -(-("sensor", int:3), int:4))'),
    ("-sensor * 2 < -3", '<(*(neg("sensor"), int:2), int:-3)'),
    ("room || 'a' LIKE 'b' || '%'", "like(||(\"room\", string:'a'), string:'b%')"),
    ("+sensor = + 5", '=("sensor", int:5)'),
    # flat chains, whatever their parentheses
    ("ok AND (ok AND ok) AND ok", 'and("ok", "ok", "ok", "ok")'),
    ("(ok OR ok) OR ok", 'or("ok", "ok", "ok")'),
    # comparisons
    ("temp <> 1", '<>("temp", int:1)'),
    ("temp != 1", '<>("temp", int:1)'),
    ("temp == 1", '=("temp", int:1)'),
    ("sensor >= temp", '>=("sensor", "temp")'),
    ("ok = TRUE", '=("ok", bool:True)'),
    ("room = 'it''s'", '=("room", string:"it\'s")'),
    ("temp = NULL", '=("temp", null:None)'),
    ("ts > '1970-01-01T00:00:01Z'", '>("ts", timestamp:1000000)'),
    ("'1970-01-01 00:00:01' <= ts", '<=(timestamp:1000000, "ts")'),
    ("ts = TIMESTAMP '1970-01-02'", '=("ts", timestamp:86400000000)'),
    # ranges and lists
    ("temp BETWEEN 1 AND 2", 'and(>=("temp", int:1), <=("temp", int:2))'),
    ("temp BETWEEN 1 AND 2 AND ok", 'and(>=("temp", int:1), <=("temp", int:2), "ok")'),
    ("temp NOT BETWEEN 1 + 1 AND 3", 'not(and(>=("temp", int:2), <=("temp", int:3)))'),
    ("ts BETWEEN '1970-01-01' AND '1970-01-02'", 'and(>=("ts", timestamp:0), <=("ts", timestamp:86400000000))'),
    ("sensor IN (1, 2, -3)", 'in("sensor", int:1, int:2, int:-3)'),
    ("sensor NOT IN (1)", 'not(in("sensor", int:1))'),
    ("room IN ('a', NULL)", "in(\"room\", string:'a', null:None)"),
    ("ts IN ('1970-01-01')", 'in("ts", timestamp:0)'),
    ("sensor IN (1, sensor + 1)", 'or(=("sensor", int:1), =("sensor", +("sensor", int:1)))'),
    ("sensor IN (temp)", '=("sensor", "temp")'),
    # NULL, LIKE
    ("temp IS NULL", 'is_null("temp")'),
    ("temp IS NOT NULL AND ok", 'and(not(is_null("temp")), "ok")'),
    ("room LIKE 'a%'", "like(\"room\", string:'a%')"),
    ("room NOT LIKE 'a!%' ESCAPE '!' OR ok", "or(not(like(\"room\", string:'a!%', string:'!')), \"ok\")"),
    # names
    ("READINGS.TEMP > 1", '>("temp", int:1)'),
    ('"Temp" > 1', '>("temp", int:1)'),
    ("risky(temp, room, 1)", f'risky@{id(RISKY):x}("temp", "room", int:1)'),
    # constants are computed
    ("temp > 2 * 3", '>("temp", int:6)'),
    ("ts > TIMESTAMP '1970-01-01' + INTERVAL '1' SECOND", '>("ts", timestamp:1000000)'),
    ("1 = 2", "bool:False"),
    ("1 = 1", "None"),
    ("sensor = 1 / 0", '=("sensor", /(int:1, int:0))'),
]


@pytest.mark.parametrize(("text", "expected"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_a_condition_is_bound(text: str, expected: str) -> None:
    assert condition(text) == expected


VALUES = [
    ("sensor", '"sensor"', "int"),
    ("sensor + 1", '+("sensor", int:1)', "int"),
    ("sensor + 1.0", '+("sensor", float:1.0)', "float"),
    ("sensor / 2", '/("sensor", int:2)', "float"),
    ("sensor % 2", '%("sensor", int:2)', "int"),
    ("temp * 2", '*("temp", int:2)', "float"),
    ("sensor + NULL", '+("sensor", null:None)', "int"),
    (".5", "float:0.5", "float"),
    ("1e3", "float:1000.0", "float"),
    ("1_000", "int:1000", "int"),
    ("-9223372036854775808", "int:-9223372036854775808", "int"),
    ("9223372036854775807", "int:9223372036854775807", "int"),
    ("NULL", "int:None", "int"),
    ("'a' || room", "||(string:'a', \"room\")", "string"),
    ("CASE WHEN ok THEN 1 ELSE 2 END", 'case("ok", int:1, int:2)', "int"),
    ("CASE WHEN ok THEN 1 END", 'case("ok", int:1, null:None)', "int"),
    (
        "CASE sensor WHEN 1 THEN 'a' WHEN 2 THEN 'b' END",
        "case(=(\"sensor\", int:1), string:'a', =(\"sensor\", int:2), string:'b', null:None)",
        "string",
    ),
    ("CASE WHEN ok THEN sensor ELSE temp END", 'case("ok", cast:float("sensor"), "temp")', "float"),
    ("CASE WHEN ok THEN ts ELSE '1970-01-01' END", 'case("ok", "ts", timestamp:0)', "timestamp"),
    ("CAST(temp AS INTEGER)", 'cast:int("temp")', "int"),
    ("TRY_CAST(temp AS text)", 'cast:string("temp")', "string"),
    ("temp::bigint::varchar", 'cast:string(cast:int("temp"))', "string"),
    ("-temp::int", 'neg(cast:int("temp"))', "int"),
    ("room::timestamp", 'cast:timestamp("room")', "timestamp"),
    ("sensor::int", '"sensor"', "int"),
    ("temp::double precision", '"temp"', "float"),
    ("NULL::bool", "bool:None", "bool"),
    ("COALESCE(temp, sensor, 0)", 'coalesce("temp", cast:float("sensor"), float:0.0)', "float"),
    ("NULLIF(sensor, 0)", 'nullif("sensor", int:0)', "int"),
    ("GREATEST(sensor, 3)", 'greatest("sensor", int:3)', "int"),
    ("LEAST(temp, 3)", 'least("temp", float:3.0)', "float"),
    ("ABS(sensor)", 'abs("sensor")', "int"),
    ("ROUND(temp, 2)", 'round("temp", int:2)', "float"),
    ("ROUND(temp)", 'round("temp")', "float"),
    ("FLOOR(sensor)", 'floor("sensor")', "float"),
    ("CEILING(temp)", 'ceil("temp")', "float"),
    ("CEIL(temp)", 'ceil("temp")', "float"),
    ("POW(temp, 2)", 'power("temp", int:2)', "float"),
    ("POWER(temp, 2)", 'power("temp", int:2)', "float"),
    ("SQRT(temp) + EXP(temp) + LN(temp)", '+(+(sqrt("temp"), exp("temp")), ln("temp"))', "float"),
    ("LOWER(UPPER(room))", 'lower(upper("room"))', "string"),
    ("LENGTH(room)", 'length("room")', "int"),
    ("SUBSTR(room, 2)", 'substr("room", int:2)', "string"),
    ("SUBSTRING(room, 2, 3)", 'substr("room", int:2, int:3)', "string"),
    ("TRIM(room) || LTRIM(room) || RTRIM(room)", '||(||(trim("room"), ltrim("room")), rtrim("room"))', "string"),
    ("REPLACE(room, 'a', 'b')", "replace(\"room\", string:'a', string:'b')", "string"),
    ("POSITION('a' IN room)", "position(string:'a', \"room\")", "int"),
    ("POSITION('a' || 'b' IN room)", "position(string:'ab', \"room\")", "int"),
    ("SPLIT_PART(room, '-', 1)", "split_part(\"room\", string:'-', int:1)", "string"),
    ("EXTRACT(hour FROM ts)", 'extract:hour("ts")', "int"),
    ("EXTRACT('Hours' FROM ts)", 'extract:hour("ts")', "int"),
    ("EXTRACT(epoch FROM ts)", 'extract:epoch("ts")', "float"),
    ("DATE_TRUNC('Hour', ts)", 'date_trunc:hour("ts")', "timestamp"),
    ("STRFTIME(ts, '%Y-%m-%d %H:%M')", "strftime(\"ts\", string:'%Y-%m-%d %H:%M')", "string"),
    ("EPOCH_MS(ts)", 'epoch_ms("ts")', "int"),
    ("EPOCH_MS('1970-01-01T00:00:01')", "int:1000", "int"),
    ("ts + INTERVAL '5' MINUTE", '+("ts", interval:Interval(months=0, micros=300000000))', "timestamp"),
    ("ts - INTERVAL 5 MINUTES", '-("ts", interval:Interval(months=0, micros=300000000))', "timestamp"),
    ("INTERVAL '1 hour 30 minutes' + ts", '+("ts", interval:Interval(months=0, micros=5400000000))', "timestamp"),
    ("ts + -INTERVAL '1' MONTH", '+("ts", interval:Interval(months=-1, micros=0))', "timestamp"),
    ("ts - INTERVAL '-2' YEAR", '-("ts", interval:Interval(months=-24, micros=0))', "timestamp"),
    ("ts IS NULL", 'is_null("ts")', "bool"),
]


@pytest.mark.parametrize(("text", "expected", "kind"), VALUES, ids=[row[0] for row in VALUES])
def test_a_value_is_bound(text: str, expected: str, kind: str) -> None:
    assert value(text) == (expected, kind)


MINUTE = 60_000_000
WINDOWS = [
    ("", WindowSpec.none()),
    ("[NOW]", WindowSpec.now()),
    ("[ now ]", WindowSpec.now()),
    ("[RANGE UNBOUNDED]", WindowSpec.unbounded()),
    ("[RANGE 5 MINUTES]", WindowSpec.range(5 * MINUTE)),
    ("[range 5minutes]", WindowSpec.range(5 * MINUTE)),
    ("[RANGE 1 HOUR]", WindowSpec.range(60 * MINUTE)),
    ("[RANGE 90 SECONDS]", WindowSpec.range(90_000_000)),
    ("[RANGE 500 MILLISECONDS]", WindowSpec.range(500_000)),
    ("[RANGE 10 MICROSECONDS]", WindowSpec.range(10)),
    ("[RANGE 2 DAYS]", WindowSpec.range(2 * 1440 * MINUTE)),
    ("[RANGE 1 WEEK]", WindowSpec.range(7 * 1440 * MINUTE)),
    ("[RANGE 1.5 HOURS]", WindowSpec.range(90 * MINUTE)),
    ("[RANGE 1 HOUR 30 MINUTES]", WindowSpec.range(90 * MINUTE)),
    ("[RANGE INTERVAL '5' MINUTE]", WindowSpec.range(5 * MINUTE)),
    ("[RANGE INTERVAL 5 MINUTES]", WindowSpec.range(5 * MINUTE)),
    ("[RANGE INTERVAL '1 hour 30 minutes']", WindowSpec.range(90 * MINUTE)),
    ("[RANGE '5 minutes']", WindowSpec.range(5 * MINUTE)),
    ("[RANGE '5' MINUTES]", WindowSpec.range(5 * MINUTE)),
]


@pytest.mark.parametrize(("text", "window"), WINDOWS, ids=[text for text, _ in WINDOWS])
@pytest.mark.parametrize("alias", ["", " r", " AS r", ' AS "r"'])
def test_a_window_is_bound_with_any_alias_behind_it(text: str, window: WindowSpec, alias: str) -> None:
    name = "r" if alias else "readings"
    bound = run(f"SELECT {name}.temp FROM readings {text}{alias} WHERE {name}.ok")
    assert (bound.window, bound.stream, str(bound.condition)) == (window, "readings", '"ok"')


def test_a_window_may_be_a_parameter() -> None:
    sql = "SELECT temp FROM readings [RANGE :w] WHERE temp > :low"
    for width in (timedelta(minutes=5), "5 minutes", "300 s"):
        assert run(sql, {"w": width, "low": 1}).window == WindowSpec.range(5 * MINUTE)


def test_no_window_is_told_as_a_default() -> None:
    assert run("SELECT temp FROM readings").defaults == ("no window: each row counts once, as it comes",)
    assert run("SELECT temp FROM readings [NOW]").defaults == ()
    assert run("SELECT NULL AS x FROM readings [NOW]").defaults == ('column "x" is NULL of type int',)


def test_unbounded_never_ends() -> None:
    window = run("SELECT * FROM readings [RANGE UNBOUNDED]").window
    assert (window.kind, window.width_us) == (WindowKind.UNBOUNDED, FOREVER)


def test_columns_are_named_by_alias_then_schema_then_number() -> None:
    bound = run("SELECT SENSOR, temp + 1, temp * 2 AS twice, (room) FROM readings r")
    assert [column.name for column in bound.columns] == ["sensor", "expr_2", "twice", "room"]


def test_a_star_is_all_columns_in_order() -> None:
    for text in ("*", "r.*", "readings.*"):
        bound = run(f"SELECT {text}, 1 AS one FROM readings AS r;")
        assert [column.name for column in bound.columns] == ["sensor", "room", "temp", "ok", "ts", "one"]
        assert [str(column.expression) for column in bound.columns][:2] == ['"sensor"', '"room"']


def test_words_of_other_dialects_are_plain_column_names() -> None:
    names = [
        "temp",
        "first",
        "rows",
        "index",
        "date",
        "interval",
        "now",
        "key",
        "value",
        "range",
        "day",
        "type",
        "istream",
        "timestamp",
    ]
    schema = Schema.parse(dict.fromkeys(names, "int"), "s")
    bound = bind(parse(f"SELECT {', '.join(names)} FROM s WHERE first > rows AND date = interval"), {"s": Readable(schema)}.get)
    assert [column.name for column in bound.columns] == names
    assert str(bound.condition) == 'and(>("first", "rows"), =("date", "interval"))'


def test_comments_and_lines_are_space() -> None:
    sql = "SELECT -- a comment with ( and '\n temp /* and /* another */ ( */ FROM readings"
    assert [column.name for column in run(sql).columns] == ["temp"]


PARAMS = [
    (30, "int:30"),
    (30.5, "float:30.5"),
    (None, "null:None"),
]


@pytest.mark.parametrize(("given", "expected"), PARAMS)
def test_a_parameter_is_a_literal(given: object, expected: str) -> None:
    assert condition("temp > :max", {"max": given}) == f'>("temp", {expected})'


def test_parameters_of_other_types() -> None:
    moment = datetime(1970, 1, 1, 0, 0, 1)
    assert condition("room = :p", {"p": "x"}) == "=(\"room\", string:'x')"
    assert condition("ok = :p", {"p": True}) == '=("ok", bool:True)'
    assert condition("ts > :p", {"p": moment}) == '>("ts", timestamp:1000000)'
    assert condition("ts > :p", {"p": moment.replace(tzinfo=UTC)}) == '>("ts", timestamp:1000000)'
    assert condition("ts > :p", {"p": "1970-01-01T00:00:01Z"}) == '>("ts", timestamp:1000000)'
    assert condition("ts > ts - :p", {"p": timedelta(seconds=1)}).endswith("interval:Interval(months=0, micros=1000000)))")
    assert condition("sensor IN (:a, :b)", {"a": 1, "b": 2}) == 'in("sensor", int:1, int:2)'
    assert condition("temp > :limit AND sensor < :limit", {"limit": 1}) == 'and(>("temp", int:1), <("sensor", int:1))'


def test_one_parsed_query_serves_many_bindings() -> None:
    parsed = parse("SELECT temp FROM readings WHERE temp > :max")
    lookup = {"readings": Readable(SCHEMA)}.get
    bound = [str(bind(parsed, lookup, {"max": value}).condition) for value in (1, 2, 1)]
    assert bound == ['>("temp", int:1)', '>("temp", int:2)', '>("temp", int:1)']


def test_long_flat_chains_are_one_node() -> None:
    bound = run("SELECT temp FROM readings WHERE " + " OR ".join(f"sensor={n}" for n in range(490)))
    assert bound.condition is not None
    assert len(bound.condition.args) == 490  # type: ignore[union-attr]  # a conjunction
    assert condition("sensor IN (" + ",".join(map(str, range(900))) + ")").count("int:") == 900
