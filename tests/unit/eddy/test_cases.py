"""The cases that `explain` lists: every operator of a running query does each of them, and no other.

One event a commit: a row, a retraction, a change of a table, or the clock. What an operator was given and gave is read off its
stage. Under `auto` aggregates over one window are shared between queries and have no operator of their own, so the word is named.
Which operators hide hand-overs: `tests/unit/windows/operators/test_operator_cases.py`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from eddy import Engine
from eddy.operators.stage import CommitStep, FeedStage, OperatorStage, Stage
from eddy.operators.stages import Builder
from queries.nodes import Node
from queries.nodes import Slide as SlideNode
from queries.tree import walk
from tests.reference.workload import to_datetime
from tests.unit.windows.came_and_went import Cases, Watched
from windows.delta import SCHEDULED, Delta
from windows.operators.set_operation import EXCEPT, EXCEPT_ALL, SetOperator
from windows.operators.slide import SlideOperator
from windows.operators.to_stream import AFTER_ALL, AnswerStream
from windows.operators.window import WindowOperator

COLUMNS = {"k": "int", "v": "int", "ts": "timestamp[us]"}
A, B, KEYED, ENDING = (
    "a [RANGE 9 MICROSECONDS]",
    "b [RANGE 6 MICROSECONDS]",
    "keyed [RANGE 9 MICROSECONDS]",
    "ending [RANGE 9 MICROSECONDS]",
)

#: Queries, in whose plans everything that is listed happens but for what is named in `BOTH`.
QUERIES = {
    "select": f"SELECT k FROM (SELECT DISTINCT k FROM {A}) AS x WHERE k > 1",
    "join": f"SELECT x.k FROM (SELECT DISTINCT k FROM {A}) AS x JOIN (SELECT DISTINCT k FROM {B}) AS y ON x.k = y.k",
    "block that joins": f"SELECT DISTINCT a.k FROM {A} JOIN {B} ON a.k = b.k",
    "block that joins rows": f"SELECT DISTINCT a.k FROM a [ROWS 2] JOIN {B} ON a.k = b.k",
    "block that joins a key": f"SELECT DISTINCT keyed.k FROM {KEYED} JOIN {B} ON keyed.k = b.k",
    "block with a live table": f"SELECT DISTINCT a.k FROM {A} JOIN live ON a.k = live.k",
    "block with a frozen table": f"SELECT DISTINCT a.k FROM {A} JOIN frozen ON a.k = frozen.k",
    "union all": f"SELECT DISTINCT k FROM (SELECT k FROM {A} UNION ALL SELECT k FROM {B}) AS x",
    "union": f"SELECT k FROM {A} UNION SELECT k FROM {B}",
    "distinct": f"SELECT DISTINCT k FROM {A}",
    "distinct over ends": f"SELECT DISTINCT k FROM {ENDING}",
    "distinct over a key": f"SELECT DISTINCT k FROM {KEYED}",
    "distinct over rows": "SELECT DISTINCT k FROM a [PARTITION BY v ROWS 1]",
    "distinct over rows in a range": "SELECT DISTINCT k FROM a [ROWS 3 RANGE 7 MICROSECONDS]",
    "distinct over all": "SELECT DISTINCT k FROM a [RANGE UNBOUNDED]",
    "except": f"SELECT k FROM {A} EXCEPT SELECT k FROM {B}",
    "except all": f"SELECT k FROM {A} EXCEPT ALL SELECT k FROM {B}",
    "intersect": f"SELECT k FROM {A} INTERSECT SELECT k FROM {B}",
    "intersect all": f"SELECT k FROM {A} INTERSECT ALL SELECT k FROM {B}",
    "group-by": f"SELECT k, COUNT(*) AS n FROM {A} GROUP BY k",
    "scalar aggregate": f"SELECT SUM(v) AS s FROM {A}",
    "having": f"SELECT k, COUNT(*) AS n FROM {A} GROUP BY k HAVING COUNT(*) <> 2",
    "istream": f"ISTREAM (SELECT k FROM {A} EXCEPT SELECT k FROM {B})",
    "dstream": f"DSTREAM (SELECT k FROM {A} EXCEPT SELECT k FROM {B})",
    "rstream": f"RSTREAM (SELECT k FROM {A})",
    "window over a stream": f"SELECT DISTINCT k FROM (ISTREAM (SELECT k FROM {A})) [RANGE 5 MICROSECONDS] AS x",
    "rows over a stream": f"SELECT DISTINCT k FROM (ISTREAM (SELECT k FROM {A})) [ROWS 2] AS x",
    "slide": "SELECT DISTINCT k FROM a [RANGE 6 MICROSECONDS SLIDE 3 MICROSECONDS]",
    "slide over a key": "SELECT DISTINCT k FROM keyed [RANGE 6 MICROSECONDS SLIDE 3 MICROSECONDS]",
    "slide over ends": "SELECT DISTINCT k FROM ending [RANGE 6 MICROSECONDS SLIDE 3 MICROSECONDS]",
}  # fmt: skip

#: Operators to which a - comes never, or never without a +, in these queries.
BOTH = {
    "distinct over rows": "distinct",
    "distinct over all": "distinct",
    "rows over a stream": "distinct",
}


@dataclass
class Seen:
    """One node of a plan and what it did."""

    stage: Stage
    watched: Watched
    cases: Cases = field(default_factory=Cases)


class Listener:
    """Notes what the stages of queries are given and give, from the making of their plans on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes: dict[Node, Seen] = {}
        #: the signs of what the event of the commit brought, for blocks
        self.signs = {1}
        make, operate, feed = Builder._make, OperatorStage._process, FeedStage._process

        def making(builder: Builder, node: Node) -> Stage:
            stage = make(builder, node)
            self.nodes[node] = Seen(stage, Watched([child.sends_ends for child in stage.children], stage.sends_ends))
            return stage

        def operating(stage: OperatorStage, step: CommitStep) -> Any:
            found = operate(stage, step)
            self._note(stage, [child.delta(step) for child in stage.children], found, step)
            return found

        def feeding(stage: FeedStage, step: CommitStep) -> Any:
            found = feed(stage, step)
            self._note(stage, [], found, step)
            return found

        monkeypatch.setattr(Builder, "_make", making)
        monkeypatch.setattr(OperatorStage, "_process", operating)
        monkeypatch.setattr(FeedStage, "_process", feeding)

    def _note(self, stage: Stage, given: list[Any], found: Any, step: CommitStep) -> None:
        for seen in self.nodes.values():
            if seen.stage is not stage:
                continue
            n_before, watched = len(seen.watched.output.events), seen.watched
            watched.read([_numbered(delta, step) for delta in given], _numbered(found, step), step.record.after)
            if is_leaf(stage):
                for event in watched.output.events[n_before:]:
                    time, rank, went, _ = event
                    # what a slide shows at a boundary came before; a scheduled end is a -, all else is what the commit brought
                    signs = self.signs if rank >= 0 else {went} if isinstance(stage, OperatorStage) else {-1}
                    seen.cases.note([(time, rank, sign, ()) for sign in signs], [event])

    def settled(self) -> None:
        """All has been read: what the operators did."""
        for seen in self.nodes.values():
            operator = seen.stage.operator if isinstance(seen.stage, OperatorStage) else None
            went = seen.watched.output.events
            came = [event for edge in seen.watched.inputs for event in edge.events]
            if isinstance(operator, WindowOperator):
                # the rows of a stream have no ends: those by the clock are the window's
                came += [event for event in went if event[1:3] == (SCHEDULED, -1)]
            if not is_leaf(seen.stage):
                seen.cases.note(came, went, by_instant=isinstance(operator, AnswerStream))


def is_leaf(stage: Stage) -> bool:
    """Whether what comes to it is rows of streams and tables: a block, and a slide with the rows below it."""
    return isinstance(stage, FeedStage) or (isinstance(stage, OperatorStage) and isinstance(stage.operator, SlideOperator))


def _numbered(delta: Delta, step: CommitStep) -> Delta:
    """With ranks that go on from commit to commit."""

    def on(ranks: Any) -> Any:
        return np.where((ranks >= 0) & (ranks < AFTER_ALL), ranks + 100 * step.record.seq, ranks)

    return Delta(replace(delta.plus, ranks=on(delta.plus.ranks)), replace(delta.minus, ranks=on(delta.minus.ranks)))


def make_engine(expiry: str) -> Engine:
    engine = Engine(expiry=expiry)
    for name in "ab":
        engine.create_stream(name, COLUMNS, time="ts")
    engine.create_stream("keyed", COLUMNS, time="ts", key=["v"])
    engine.create_stream("ending", {**COLUMNS, "until": "timestamp[us]"}, time="ts", end="until")
    engine.create_table("live", {"k": "int"}, key=["k"], retroactive=True)
    engine.create_table("frozen", {"k": "int"}, key=["k"])
    engine.upsert("frozen", {"k": [1, 2]})
    return engine


def play(engine: Engine, listener: Listener, seed: int, n_events: int) -> None:
    """Single events, a few microseconds apart; then all windows pass."""
    rng = random.Random(seed)
    clock = 1000
    there: set[int] = set()
    for _ in range(n_events):
        clock += rng.choice([0, 1, 1, 2, 3])
        what = rng.choice(["a", "a", "b", "b", "keyed", "keyed", "ending", "retract", "upsert", "delete"])
        row = {"k": [rng.choice([1, 2, 3])], "v": [rng.choice([1, 2])], "ts": [clock]}
        listener.signs = {-1} if what in ("retract", "delete") else {1}
        match what:
            case "retract":
                engine.retract("keyed", row["v"], to_datetime(clock))
            case "upsert":
                # a row of a table that is there is changed by a - and a +
                listener.signs = {1, -1} if row["k"][0] in there else {1}
                there.update(row["k"])
                engine.upsert("live", {"k": row["k"]})
            case "delete":
                there.difference_update(row["k"])
                engine.delete("live", row["k"])
            case "ending":
                engine.push("ending", {**row, "until": [clock + rng.randrange(1, 15)]})
            case _:
                engine.push(what, row)
    for _ in range(30):
        clock += 1
        listener.signs = {-1}
        engine.advance(to_datetime(clock))
    engine.check()


def hides(stage: Stage) -> bool:
    operator = stage.operator if isinstance(stage, OperatorStage) else None
    return isinstance(operator, SetOperator) and operator._kind not in (EXCEPT, EXCEPT_ALL)


def readers(root: Node, node: Node) -> list[Node]:
    return [above for above in walk(root) if node in above.children] or [root]


@pytest.mark.parametrize("expiry", ["update-pattern", "input", "negative"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.slow
def test_operators_do_what_explain_lists_and_nothing_else(query: str, expiry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    for seed in range(3):
        with monkeypatch.context() as patched, make_engine(expiry) as engine:
            listener = Listener(patched)
            handle = engine.submit(QUERIES[query])
            play(engine, listener, seed, 120)
            listener.settled()
            operators = engine.explain(handle)["operators"]
            for operator, node in zip(operators, dict.fromkeys(walk(handle.tree_plan.root)), strict=True):
                found = listener.nodes.get(node)
                if found is None or all(isinstance(part, SlideNode) for part in readers(handle.tree_plan.root, node)):
                    continue
                listed[operator["name"]] = set(operator["cases"]) - ({"-->+"} if hides(found.stage) else set())
                assert found.cases.unlisted(operator["cases"]) == [], operator
                seen.setdefault(operator["name"], set()).update(found.cases.certain)
    alone = [name for name in listed if not name.startswith(BOTH.get(query, "none"))]
    assert alone and {name: seen[name] for name in alone} == {name: listed[name] for name in alone}
