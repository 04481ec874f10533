"""What queries with operators hold: it is counted, bounded by what is alive, and part of the engine's cap."""

from __future__ import annotations

import pytest

from eddy import Engine
from eddy.operators.stage import OperatorStage
from eddy.operators.template import Member
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query
from tests.unit.eddy.commit.test_state_cap import MIB, make_engine, push_until_refused, rows
from windows.operators.recipient import Recipient
from windows.state.values import ValueCodes

TREES = [
    "SELECT DISTINCT price FROM ticks [RANGE 1 DAY]",
    "SELECT symbol, price, COUNT(*) AS n, MEDIAN(price) AS m FROM ticks [RANGE 1 DAY] GROUP BY symbol, price",
    "SELECT price FROM ticks [RANGE 1 DAY] EXCEPT ALL SELECT price FROM ticks [RANGE 1 HOUR]",
    "SELECT price FROM ticks [RANGE 1 DAY SLIDE 1 SECOND]",
    "SELECT a.price FROM (SELECT price FROM ticks [RANGE 1 DAY] WHERE symbol < 2) AS a,"
    " (SELECT DISTINCT price FROM ticks [RANGE 1 DAY]) AS b WHERE a.price = b.price",
]


def own(engine: Engine) -> int:
    return sum(entry["own_bytes"] for entry in engine.stats()["queries"].values())


@pytest.mark.parametrize("sql", TREES)
def test_the_state_of_operators_counts_against_the_cap(sql: str) -> None:
    plain, tree = make_engine(4 * MIB), make_engine(4 * MIB)
    plain.submit("SELECT price FROM ticks [RANGE 1 DAY]")
    tree.submit(sql)
    most, _ = push_until_refused(plain)
    taken, error = push_until_refused(tree)
    assert error.code == "state_full"
    assert 0 < taken < most, "there is room for fewer rows"
    assert tree.stats()["bytes"] < 1.1 * 4 * MIB
    tree.check()


@pytest.mark.parametrize("sql", TREES)
def test_rows_are_taken_again_when_those_of_operators_have_ended(sql: str) -> None:
    engine = make_engine(4 * MIB)
    query = engine.submit(sql)
    empty = own(engine)
    taken, _ = push_until_refused(engine)
    assert own(engine) > empty
    end_ms = taken * 1000 + 90_000_000
    engine.advance(end_ms)
    assert len(query.answer()) == 0
    engine.push("ticks", rows(end_ms, 1000))
    engine.check()


def test_what_a_query_held_goes_with_it() -> None:
    engine = make_engine(4 * MIB)
    for sql in TREES:
        query = engine.submit(sql)
        before = engine.stats()["queries"][query.name]
        engine.push("ticks", rows(0, 1000))
        assert engine.stats()["queries"][query.name]["own_bytes"] > before["own_bytes"]
        query.cancel()
    assert own(engine) == 0


def test_operators_that_are_gone_are_charged_no_more() -> None:
    used, fresh = make_engine(4 * MIB), make_engine(4 * MIB)
    for sql in TREES:
        used.submit(sql).cancel()
    for engine in (used, fresh):
        engine.submit("SELECT price FROM ticks [RANGE 1 DAY]")
    assert push_until_refused(used)[0] == push_until_refused(fresh)[0]


def stores_of_values(query: Query) -> set[ValueCodes]:
    """The value stores of a query's operators and its recipient, each once."""
    assert isinstance(query, TreeQuery) and isinstance(query.operation, Member)
    template = query.operation.template
    kept = [stage.operator.values for stage in template.root.stages() if isinstance(stage, OperatorStage)]
    recipient = template.recipient
    assert isinstance(recipient, Recipient)
    return {values for values in (*kept, recipient._rows.values) if values is not None}


@pytest.mark.parametrize("expiry", ["input", "negative", "update-pattern"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT price FROM ticks [RANGE 1 HOUR]",
        "SELECT DISTINCT price FROM ticks [RANGE 1 HOUR] EXCEPT SELECT price FROM ticks [RANGE 2 MILLISECONDS]",
        "SELECT price FROM ticks [RANGE 1 HOUR] UNION SELECT price FROM ticks [RANGE 2 HOURS]",
    ],
)
def test_operators_above_each_other_keep_one_copy_of_each_value(sql: str, expiry: str) -> None:
    engine = Engine()
    engine.create_stream("ticks", {"symbol": "int", "price": "float", "ts": "timestamp"}, time="ts")
    query = engine.submit(sql, expiry=expiry)
    engine.push("ticks", rows(0, 1000))
    (values,) = stores_of_values(query)
    assert len(values) == 1000, "not one for each operator that has it"
    engine.check()
    engine.advance(3 * 3_600_000)
    assert len(values) == 0 and len(query.answer()) == 0
    engine.check()


def test_values_that_a_select_changes_are_kept_again() -> None:
    engine = make_engine(64 * MIB)
    query = engine.submit("SELECT price + 1 AS p FROM (SELECT DISTINCT price FROM ticks [RANGE 1 HOUR]) AS r")
    assert len(stores_of_values(query)) == 2
