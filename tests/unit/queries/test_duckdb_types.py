"""Names and types of the columns of a query, against DuckDB's DESCRIBE of the same text without its windows."""

from __future__ import annotations

import re

import duckdb
import pytest

from tests.unit.queries.bindings import KNOWN, tree

_TYPES = {"int": "BIGINT", "float": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN", "timestamp": "TIMESTAMP"}
#: A sum of ints is exact in both; ours is 64 bits wide and NULL beyond. A literal has the narrowest type there.
_OURS = {"HUGEINT": "BIGINT", "INTEGER": "BIGINT"}

TEXTS = [
    "SELECT room, COUNT(*) AS n, SUM(sensor) AS si, SUM(temp) AS sf, SUM(ok) AS sb FROM readings [NOW] GROUP BY room",
    "SELECT AVG(sensor) AS a, AVG(temp) AS b, STDDEV(sensor) AS c, VARIANCE(temp) AS d, MEDIAN(sensor) AS e FROM readings [NOW]",
    "SELECT MIN(sensor) AS a, MAX(room) AS b, MIN(ok) AS c, MAX(ts) AS d, FIRST(temp) AS e, LAST(room) AS f FROM readings [NOW]",
    "SELECT COUNT(DISTINCT room) AS a, COUNT(temp) FILTER (WHERE ok) AS b, SUM(sensor) / COUNT(*) + 1 AS c FROM readings [NOW]",
    "SELECT SUM(sensor) + 1 AS a, COUNT(*) * 2.5::double AS b, MAX(temp) > 5 AS c, MAX(room) || 'x' AS d FROM readings [NOW]",
    "SELECT sensor + 1 AS k, ok, MEDIAN(temp) AS m FROM readings [NOW] GROUP BY k, 2 HAVING m > 1",
    "SELECT *, COUNT(*) AS n FROM rooms GROUP BY room, floor, size",
    "SELECT sensor, ts FROM readings [NOW] UNION ALL SELECT temp, ts FROM readings [NOW]",
    "SELECT sensor AS a, NULL AS b FROM readings [NOW] UNION SELECT 5, room FROM readings [NOW]",
    "SELECT NULL AS a FROM rooms EXCEPT SELECT floor FROM rooms INTERSECT SELECT size FROM rooms",
    "WITH a AS (SELECT room AS r, COUNT(*) AS n FROM readings [NOW] GROUP BY room) SELECT n, floor FROM a, rooms WHERE r = room",
    "SELECT x.m + 1 AS y FROM (SELECT MAX(sensor) AS m FROM readings [NOW]) AS x WHERE m > 1",
    "SELECT DISTINCT room, floor FROM rooms",
    "SELECT 1 AS one FROM readings [NOW] HAVING TRUE",
]


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, readable in KNOWN.items():
        columns = ", ".join(f'"{column.name}" {_TYPES[column.type.value]}' for column in readable.schema.columns)
        connection.execute(f"CREATE TABLE {name} ({columns})")
    return connection


@pytest.mark.parametrize("sql", TEXTS)
def test_columns_are_called_and_typed_as_in_duckdb(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    described = database.execute("DESCRIBE " + re.sub(r"\[.*?\]", "", sql)).fetchall()
    expected = [(name, _OURS.get(kind, kind)) for name, kind, *_ in described]
    assert [(column.name, _TYPES[column.type.value]) for column in tree(sql).columns] == expected


REFUSED = [
    "SELECT temp, COUNT(*) FROM readings [NOW] GROUP BY room",
    "SELECT sensor AS temp, COUNT(*) FROM readings [NOW] GROUP BY temp",
    "SELECT sensor AS k FROM readings [NOW] GROUP BY k + 1",
    "SELECT room FROM readings [NOW] GROUP BY 2",
    "SELECT SUM(COUNT(*)) FROM readings [NOW]",
    "SELECT room FROM readings [NOW] WHERE COUNT(*) > 1",
    "SELECT COUNT(*) AS n FROM readings [NOW] GROUP BY n",
    "SELECT SUM(room) FROM readings [NOW]",
    "SELECT room FROM readings [NOW] HAVING ok",
    "SELECT room, floor FROM rooms UNION SELECT room FROM rooms",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused_has_no_meaning_in_duckdb_either(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        database.execute("DESCRIBE " + re.sub(r"\[.*?\]", "", sql))
    with pytest.raises(Exception, match=r"line 1, column"):
        tree(sql)
