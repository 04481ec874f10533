"""Which plan a query with operators gets, what it is told of it, and that the chosen one does less work."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddy import Engine
from eddy.operators.replanning import Replanner, ReplanPace
from eddy.operators.stage import OperatorStage
from eddy.operators.template import Member
from eddy.operators.tree_query import TreeQuery
from eddy.planning.flows import Flow, Flows
from eddy.planning.plan_choice import Choice, choice_ns, chosen, strategies_for
from eddy.planning.strategies import Strategies
from lineage.identity import ById
from lineage.schema import Schema
from queries.binder import bind
from queries.bound import Readable
from queries.forms import Forms, forms_of
from queries.nodes import Block
from queries.parser import parse
from windows.measured_costs import kept_ns
from windows.operators.distinct import DeltaStar
from windows.operators.intersect import IntersectStar
from windows.state.due import Calendar, Fifo, Scan, Unscheduled

START = dt.datetime(2024, 1, 1)
READABLE = Readable(Schema.parse({"i": "int", "j": "int"}, "r"))
MINUS = "(SELECT i FROM r [RANGE 1 DAY] EXCEPT ALL SELECT j FROM r [RANGE 1 DAY]) AS m"
JOIN = f"SELECT m.i, c.j FROM {MINUS}, r [RANGE 1 HOUR] AS c WHERE m.i = c.i"


def forms(sql: str) -> Forms:
    return forms_of(bind(parse(sql), {"r": READABLE}.get))


def seen(found: Forms, rates: list[float]) -> Flows:
    """What flows through the nodes of the first form, in order: join, minus, its two blocks, the third; alive ten commits."""
    form, flows = found.forms[0], Flows()
    flows.see(form, ById((node, Flow(rate, 0.0, 10 * rate)) for node, rate in zip(form.nodes, rates, strict=True)))
    return flows


MARGIN = ReplanPace().margin
FEW, MANY = [20.0, 20_000.0, 20_000.0, 20_000.0, 20.0], [60_000.0, 2_000.0, 20_000.0, 20_000.0, 20_000.0]


def test_a_selective_join_is_put_below_the_negation_and_one_with_many_results_above() -> None:
    found = forms(JOIN)
    assert [form.name for form in found.forms] == ["as written", "negation pulled up"]
    few, many = seen(found, FEW), seen(found, MANY)
    assert chosen(found.forms, few, None, MARGIN).form.name == "negation pulled up"
    assert chosen(found.forms, many, None, MARGIN).form.name == "as written"


def test_how_often_results_end_prematurely_decides_between_two_plans() -> None:
    """Rates and sizes are the same: what the negation takes back goes through the join that stands above it."""
    found = forms(JOIN)
    names = {}
    for share in (0.0, 1.0):
        form, flows = found.forms[0], Flows()
        seen_flows = zip(form.nodes, [1_000.0, 18_000.0, 20_000.0, 20_000.0, 2_000.0], [share, share, 0.0, 0.0, 0.0], strict=True)
        flows.see(form, ById((node, Flow(rate, early * rate, 10 * rate)) for node, rate, early in seen_flows))
        names[share] = chosen(found.forms, flows, None, MARGIN).form.name
    assert names == {0.0: "as written", 1.0: "negation pulled up"}


def test_before_anything_is_seen_a_query_runs_as_it_was_written() -> None:
    found = forms(JOIN)
    assert chosen(found.forms, Flows(), None, MARGIN).form is found.forms[0]


def test_what_runs_is_kept_unless_another_plan_is_better_by_the_margin() -> None:
    found = forms(JOIN)
    few = seen(found, FEW)
    first = Choice(found.forms[0], strategies_for(found.forms[0], few))
    best = chosen(found.forms, few, first, 1.0)
    ratio = choice_ns(first, few) / choice_ns(best, few)
    assert best.form is not first.form and ratio > MARGIN
    assert chosen(found.forms, few, first, ratio * 1.01) is first
    assert chosen(found.forms, few, best, MARGIN) is best, "and it does not go back"


def test_few_rows_are_scanned_and_many_wait_in_a_calendar() -> None:
    inside = "(SELECT DISTINCT i, j FROM r [RANGE 1 DAY]) AS a"
    found = forms(f"SELECT DISTINCT a.i FROM {inside}, r [RANGE 1 DAY] AS b WHERE a.j = b.j")
    form = found.forms[0]
    inner = next(node for node in form.nodes if type(node).__name__ == "Distinct" and isinstance(node.child, Block))
    for size, structure in ((500.0, "list"), (1e6, "calendar")):
        flows = Flows()
        flows.see(form, ById([(inner, Flow(1000.0, 0.0, size))]))
        assert strategies_for(form, flows).structure(inner) == structure


def test_rows_that_nobody_has_seen_are_not_scanned_on_a_guess() -> None:
    form = forms("SELECT a.i FROM (SELECT DISTINCT i, j FROM r [RANGE 1 DAY]) AS a, r [RANGE 1 DAY] AS b WHERE a.j = b.j").forms[
        0
    ]
    flows = Flows()
    guess = flows.flow(form, form.root)
    costs = [kept_ns(kind, guess.rate, guess.size, by_id=False) for kind in ("list", "calendar")]
    assert costs[0] < costs[1], "the guess is for the list"
    assert strategies_for(form, flows).structure(form.root) == "calendar"
    flows.see(form, ById([(form.root, guess)]))
    assert strategies_for(form, flows).structure(form.root) == "list"


#: word -> what the rows of a window are kept in, what those of a join of windows are, and how their ends are told
WORDS = {
    "input": ("list", "list", "direct"),
    "direct": ("list", "list", "direct"),
    "negative": ("hash", "hash", "negative"),
    "negative+message": ("calendar", "calendar", "message"),
    "piggyback": ("calendar", "calendar", "message"),
    "update-pattern": ("fifo", "calendar", "direct"),
}
BUFFERS = {"list": Scan, "hash": Unscheduled, "calendar": Calendar, "fifo": Fifo}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_forces_what_the_blocks_rows_are_kept_in(word: str) -> None:
    form = forms(JOIN).forms[0]
    strategies = Strategies(word, form.facts)
    blocks = [node for node in form.nodes if isinstance(node, Block)]
    assert {strategies.structure(block) for block in blocks} == {WORDS[word][0]}


def test_queries_of_every_word_run_beside_each_other_each_in_its_own_way() -> None:
    """One shared eddy: the same rows, the same answers and changes, and premature ends for all of them."""
    engine = Engine()
    engine.create_stream("r", {"ts": "timestamp", "i": "int", "j": "int"}, time="ts", key=["j"])
    for name in "ab":
        engine.create_stream(name, {"ts": "timestamp", "i": "int", "j": "int"}, time="ts")
    texts = {
        "window": "SELECT DISTINCT i FROM a [RANGE 30 MILLISECONDS]",
        "join": "SELECT DISTINCT a.i FROM a [RANGE 30 MILLISECONDS] AS a, b [RANGE 20 MILLISECONDS] AS b WHERE a.i = b.i",
        "keyed": "SELECT i FROM a [RANGE 30 MILLISECONDS] EXCEPT ALL SELECT i FROM r [RANGE 25 MILLISECONDS]",
    }
    queries = {(word, kind): engine.submit(text, expiry=word) for word in WORDS for kind, text in texts.items()}
    for at in range(60):
        time = START + dt.timedelta(milliseconds=3 * at)
        for name in "abr":
            engine.push(name, [{"ts": time, "i": ((7 if name == "a" else 5) * at + k) % 97, "j": (at + k) % 3} for k in range(3)])
        if at % 5 == 0:
            engine.retract("r", [at % 3], time)
    engine.check()
    for kind in texts:
        answers = {word: sorted(map(str, engine.answer(queries[word, kind]).to_pylist())) for word in WORDS}
        changes = {
            word: sorted((c.seq, c.sign, *c.row.values()) for c in engine.changes(queries[word, kind], since=0)) for word in WORDS
        }
        assert all(answers[word] == answers["input"] and changes[word] == changes["input"] for word in WORDS), kind
        assert len(changes["input"]) > 20
    for word, (of_window, of_join, strategy) in WORDS.items():
        for kind, structure in (("window", of_window), ("join", of_join)):
            query = queries[word, kind]
            (edge,) = [edge for edge in engine.explain(query)["edges"] if edge["from"].startswith("block")]
            assert edge["strategy"] == strategy, f"{kind} under {word}"
            replanner = replanner_of(query)
            kept = [type(live.buffer) for live in replanner.built.live.values()]
            # delta-star keeps two ends a value, and no row
            assert BUFFERS[structure] in kept or word == "update-pattern", f"{kind} under {word}: {kept}"
        early = [edge for edge in engine.explain(queries[word, "keyed"])["edges"] if edge["update_pattern"] == "strict"]
        assert early and {edge["strategy"] for edge in early} == {"negative"}, "premature ends travel under every word"


def test_below_a_negation_is_direct_and_above_it_negative() -> None:
    form = forms(JOIN).forms[0]
    strategies = strategies_for(form, Flows())
    minus = next(node for node in form.nodes if type(node).__name__ == "SetOperation")
    assert strategies.sends(minus) and strategies.structure(minus) == "hash"
    assert not any(strategies.sends(child) for child in minus.children)


# -- in an engine


DISTINCTS = {
    "SELECT DISTINCT i FROM a [RANGE 1 SECOND]": True,
    "SELECT DISTINCT i FROM a [ROWS 5]": False,
    "SELECT i FROM a [RANGE 1 SECOND] INTERSECT SELECT i FROM b [RANGE 2 SECONDS]": True,
    "SELECT i FROM a [RANGE 1 SECOND] INTERSECT ALL SELECT i FROM b [RANGE 2 SECONDS]": False,
    "SELECT i FROM a [RANGE 1 SECOND] INTERSECT SELECT i FROM b [ROWS 3]": False,
    "SELECT FIRST(i) AS f FROM (SELECT DISTINCT i, j FROM a [RANGE 1 SECOND]) AS d": False,
    "SELECT DISTINCT i FROM sent": False,
    "SELECT i FROM sent INTERSECT SELECT i FROM b [RANGE 2 SECONDS]": False,
}


@pytest.mark.parametrize("text", DISTINCTS)
def test_explain_lists_hand_overs_where_the_operator_that_runs_hands_values_over(text: str) -> None:
    engine = Engine()
    for name in "ab":
        engine.create_stream(name, {"ts": "timestamp", "i": "int", "j": "int"}, time="ts")
    engine.submit("SELECT DISTINCT i FROM a [RANGE 1 SECOND]", name="sent", expiry="negative")
    # single events, for what is shown once a commit may be shared
    query = engine.submit(text, emit="event")
    assert isinstance(query, TreeQuery)
    built = replanner_of(query).built
    for node, shown in zip(built.choice.form.nodes, engine.explain(query)["operators"], strict=True):
        if shown["name"].split()[0] in ("distinct", "intersect"):
            stage = built.stages[node]
            assert isinstance(stage, OperatorStage)
            stars = isinstance(stage.operator, DeltaStar | IntersectStar)
            assert stars == DISTINCTS[text] == shown["as"].endswith("-star") == ("-->+" in shown["cases"])


def engine_with(pace: ReplanPace) -> tuple[Engine, TreeQuery]:
    engine = Engine()
    engine._lives.pace = pace
    for name in "abc":
        engine.create_stream(name, {"ts": "timestamp", "i": "int", "j": "int"}, time="ts")
    minus = "(SELECT i, j FROM a [RANGE 1 SECOND] EXCEPT ALL SELECT i, j FROM b [RANGE 1 SECOND]) AS m"
    query = engine.submit(f"SELECT m.i, c.j FROM {minus}, c [RANGE 1 SECOND] AS c WHERE m.i = c.i")
    assert isinstance(query, TreeQuery)
    return engine, query


def replanner_of(query: TreeQuery) -> Replanner:
    assert isinstance(query.operation, Member)
    return query.operation.template.replanner


def feed(engine: Engine, commits: int, n_rows: int, first: int = 0) -> None:
    """Many rows on both sides of the minus, of which hardly one has a partner in c."""
    for k in range(first, first + commits):
        at, numbers = START + dt.timedelta(milliseconds=100 * k), range(k * n_rows, (k + 1) * n_rows)
        left = pa.table({"ts": [at] * n_rows, "i": numbers, "j": range(n_rows)})
        right = pa.table({"ts": [at] * n_rows, "i": [-number for number in numbers], "j": range(n_rows)})
        engine.push_many({"a": left, "b": right, "c": [{"ts": at, "i": k * n_rows, "j": k}]})


def rows_carried(query: TreeQuery) -> float:
    """Rows and ends that went from one operator to another."""
    replanner = replanner_of(query)
    form = replanner.built.choice.form
    nodes = [node for node in form.nodes if not isinstance(node, Block)]
    return sum(replanner.built.stages[node].counts.plus + replanner.built.stages[node].counts.minus for node in nodes)


def test_a_plan_is_changed_by_counts_alone_and_shows_no_change() -> None:
    told: list[Any] = []
    for _ in range(2):
        engine, query = engine_with(ReplanPace(every=8, margin=1.05))
        feed(engine, 20, 3_000)
        answer = sorted(map(str, engine.answer(query).to_pylist()))
        changes = [(change.seq, change.sign, tuple(change.row.values())) for change in engine.changes(query, since=0)]
        told.append((replanner_of(query).built.choice.form.name, replanner_of(query).n_changes, answer, changes))
    assert told[0] == told[1], "the same calls lead to the same choices"
    form, n_changes, answer, changes = told[0]
    assert form == "negation pulled up" and n_changes >= 1
    engine, query = engine_with(ReplanPace(every=10**9))
    feed(engine, 20, 3_000)
    assert replanner_of(query).n_changes == 0
    assert sorted(map(str, engine.answer(query).to_pylist())) == answer
    assert [(change.seq, change.sign, tuple(change.row.values())) for change in engine.changes(query, since=0)] == changes


def feed_taken(engine: Engine, commits: range, taken: bool) -> None:
    """Rows whose values the right side of the minus has a commit later, or never; a few have a partner in c."""
    n_rows, n_partners = 4_000, 350
    for k in commits:
        at, numbers = START + dt.timedelta(milliseconds=100 * k), np.arange(k * n_rows, (k + 1) * n_rows)
        values = {"a": numbers, "b": numbers - n_rows if taken else -1 - numbers, "c": numbers[:n_partners]}
        engine.push_many({name: pa.table({"ts": [at] * len(i), "i": i, "j": i % 8}) for name, i in values.items()})


def test_a_running_query_is_planned_again_when_fewer_results_end_prematurely() -> None:
    """The streams go on as they did; the planner sees that hardly a result of the minus is taken back any more."""
    engine, query = engine_with(ReplanPace(every=8))
    feed_taken(engine, range(30), True)
    early = {edge["from"]: edge["rows"] for edge in engine.explain(query)["edges"]}["except all 2"]
    assert early["ended_early"] > 0.9 * early["begun"] and early["begun"] == 4_000
    assert replanner_of(query).built.choice.form.name == "as written" and replanner_of(query).n_changes == 0
    feed_taken(engine, range(30, 60), False)
    assert replanner_of(query).built.choice.form.name == "negation pulled up" and replanner_of(query).n_changes == 1


def test_what_runs_below_a_negation_is_direct_and_what_stands_on_it_negative() -> None:
    """Chosen by the planner from what it saw, in both forms of the tree."""
    engine, query = engine_with(ReplanPace(every=8))
    for commits, taken, form in ((range(30), True, "as written"), (range(30, 60), False, "negation pulled up")):
        feed_taken(engine, commits, taken)
        told = engine.explain(query)
        assert told["plan"]["form"] == form
        inputs = {operator["name"]: operator["inputs"] for operator in told["operators"]}
        (minus,) = [name for name in inputs if name.startswith("except all")]
        below = {minus}
        for _ in inputs:
            below |= {child for name in below for child in inputs[name]}
        strategies = {edge["from"]: edge["strategy"] for edge in told["edges"] if edge["seen"]}
        assert {strategies[name] for name in below - {minus}} == {"direct"} and len(below) > 2
        (stands_on_it,) = [name for name, children in inputs.items() if minus in children]
        assert strategies[minus] == strategies[stands_on_it] == "negative"


def test_the_chosen_plan_does_less_work_than_the_other() -> None:
    engine, written = engine_with(ReplanPace(every=10**9))
    feed(engine, 20, 3_000)
    other, pulled = engine_with(ReplanPace(every=2, margin=1.05))
    feed(other, 20, 3_000)
    form = replanner_of(pulled).built.choice.form
    assert form.name == "negation pulled up"
    before, after = (replanner.built.stages for replanner in (replanner_of(written), replanner_of(pulled)))
    for stages in (before, after):
        for stage in stages.values():
            stage.counts.plus = stage.counts.minus = 0.0
    replanner_of(pulled)._until = 10**9
    feed(engine, 20, 3_000, first=20)
    feed(other, 20, 3_000, first=20)
    assert 10 * rows_carried(pulled) < rows_carried(written)


def test_explain_tells_forms_rewrites_strategies_and_what_was_seen() -> None:
    engine, query = engine_with(ReplanPace(every=8, margin=1.05))
    plan = engine.explain(query)["plan"]
    assert plan["form"] == "as written" and set(plan["cost_ns"]) == {"as written", "negation pulled up"}
    assert plan["rewrites"] == [{"rewrite": "negation pulled up", "at": "join", "refused": None}]
    assert plan["decided"] == "every 8 commits" and plan["changes"] == 0
    feed(engine, 8, 3_000)
    told = engine.explain(query)
    assert told["plan"]["form"] == "negation pulled up" and told["plan"]["changes"] == 1
    feed(engine, 3, 3_000, first=8)
    told = engine.explain(query)
    below = [edge for edge in told["edges"] if edge["from"].startswith("block") and edge["to"].startswith("join")]
    assert {edge["strategy"] for edge in below} == {"direct"} and all(edge["seen"] for edge in below)
    assert max(edge["rows"]["begun"] for edge in below) == 3_000
    assert all(operator["cost_ns"] > 0 for operator in told["operators"] if operator["inputs"])


def test_premature_ends_are_counted_where_they_happen() -> None:
    """Half of the rows of the difference meet an equal row of b before their window ends; the other half end with it."""
    engine, query = engine_with(ReplanPace(every=10**9))
    for k in range(60):
        at = START + dt.timedelta(milliseconds=100 * k)
        right = [] if k == 0 else [{"ts": at, "i": 2 * k - 2, "j": 0}]
        engine.push_many({"a": [{"ts": at, "i": 2 * k + by, "j": 0} for by in (0, 1)], "b": right})
    edges = {edge["from"].split()[0]: edge["rows"] for edge in engine.explain(query)["edges"]}
    assert edges["except"]["begun"] == pytest.approx(2.0)
    assert edges["except"]["ended_early"] == pytest.approx(59 / 60, abs=0.01)
    assert edges["block"]["ended_early"] == 0


def test_explain_tells_why_a_plan_is_never_changed() -> None:
    engine = Engine()
    engine.create_stream("a", {"ts": "timestamp", "i": "int"}, time="ts")
    told = engine.explain("ISTREAM (SELECT DISTINCT i FROM a [RANGE 1 SECOND])")["plan"]
    assert told["decided"] == "never: a stream has no past to build from"
    query = engine.submit("SELECT DISTINCT i FROM a [RANGE 1 SECOND]", expiry="direct")
    told = engine.explain(query)
    assert told["plan"]["decided"] == 'never: expiry is "direct"'
    assert told["edges"][0]["ends"] == "by scanning a list"
