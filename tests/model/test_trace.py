"""`trace` against the model: a row is matched exactly when the model lets it into a leaf of the query.

Random scripts of queries of every form (`tests/reference/window_steps.py`), and after every few steps rows that came and rows
that never will (`tests/reference/leaf_model.py` says what is expected). A trace leaves the engine as it was.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from api.base.limits import Limits
from eddy import Engine, NotFoundError
from eddy.operators.tree_query import TreeQuery
from eddy.state.dump import dump_state
from queries.nodes import Block, GroupBy, Slide
from tests.reference.comparison import Mismatch, compared, near
from tests.reference.frozen_steps import make_frozen_script
from tests.reference.in_process import InProcess, in_process
from tests.reference.leaf_model import LeafModel, reads
from tests.reference.payload import encode
from tests.reference.seeds import seeds
from tests.reference.tree_sql import as_sql
from tests.reference.values import Row, canonical_row
from tests.reference.window_harness import MakeEngine, WindowHarness
from tests.reference.window_script import Step, StreamPlan, WindowScript
from tests.reference.window_steps import make_window_script, random_row
from tests.reference.workload import MS


class TraceHarness(WindowHarness):
    """An engine beside the model, whose traces are compared."""

    def __init__(self, script: WindowScript, seed: int, make_engine: MakeEngine = Engine) -> None:
        super().__init__(script, make_engine)
        self.leaves = LeafModel()
        for s in script.streams:
            self.leaves.create_stream(s.name, lateness=s.lateness_us, late=s.late, keep=s.keep_us, key=s.key, end=s.end)
        for t in script.tables:
            self.leaves.create_table(t.name, key=t.key, retroactive=t.retroactive)
        self.player.model = self.model = self.leaves
        self.rng = random.Random(seed)
        self.n_verdicts = {True: 0, False: 0}
        self.n_groups = 0

    def compare(self, seq: int, before: float) -> None:
        """Answers are compared by other tests."""

    def step(self, step: Step) -> None:
        self.do(step)
        self.leaves.look()

    def check(self, n_stored: int, n_given: int) -> None:
        """Compare the verdicts on some rows; the engine's state is the same after as before."""
        before = [bytes(part) for part in dump_state(self.engine)]
        self.check_stored(n_stored)
        self.check_given(n_given)
        if [bytes(part) for part in dump_state(self.engine)] != before:
            raise Mismatch("a trace changed the engine")

    def trace(self, stream: str, row: int | dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.engine.trace(stream, row)
        return found

    def check_stored(self, n_rows: int) -> None:
        """Rows that came, by their number."""
        for plan in self.script.streams:
            numbered = self.leaves.numbered.get(plan.name, {})
            for number in self.rng.sample(sorted(numbered), min(n_rows, len(numbered))):
                arrived = self.leaves.arrived(plan.name, numbered[number])
                try:
                    found = self.trace(plan.name, number)
                except NotFoundError:
                    # it waits, or is held no more: there is no verdict
                    continue
                assert arrived is not None, "a row that waits is not found"
                self._compare_verdicts(self.leaves, plan.name, arrived, found)

    def check_given(self, n_rows: int) -> None:
        """Rows that are never pushed."""
        for plan in self.script.streams:
            for _ in range(n_rows):
                now = 0 if self.leaves.now == float("-inf") else int(self.leaves.now)
                row = self._row(plan, now + self.rng.choice([-3 * MS, -MS, -1, 0, 0, 0, 1, MS, 2 * MS, 5 * MS]))
                found = self.trace(plan.name, self._written(row, plan.columns))
                model = copy.deepcopy(self.leaves)
                self._compare_verdicts(model, plan.name, model.take_now(plan.name, row), found)

    def _row(self, plan: StreamPlan, time: int) -> Row:
        return random_row(self.rng, plan, time)

    def _written(self, row: Row, columns: Any) -> dict[str, Any]:
        (written,) = encode([row], columns, "dicts")
        return dict(written)

    def _compare_verdicts(self, model: LeafModel, stream: str, arrived: Any, found: dict[str, Any]) -> None:
        expected = {
            query.handle.name: False if arrived is None else model.takes(self.player.numbers[label], arrived)
            for label, query in self.followed.items()
            if stream in reads(model, self.player.numbers[label])
        }
        sql = {query.handle.name: as_sql(query.tree) for query in self.followed.values()}
        if {*found["matched"], *found["refused"], *found["waiting"]} != expected.keys():
            raise Mismatch(f"verdicts of {sorted(expected)} are due, and {found} has others")
        for name, takes in expected.items():
            matched = name in found["matched"]
            compared()
            if takes is not None and matched != takes:
                raise Mismatch(f"{sql[name]}\n  {found['row']}\n  {arrived}\n  expected {takes}\n  {found}")
            if (name in found["refused"]) + (name in found["waiting"]) + matched != 1:
                raise Mismatch(f"{name} has not one verdict in {found}")
            self.n_verdicts[matched] += 1
            self._compare_groups(name, found["above"].get(name, []))

    def _compare_groups(self, name: str, above: list[dict[str, Any]]) -> None:
        """Where a group is the whole query, what is told of it is in the answer."""
        query = self.engine.queries[name]
        root = query.tree_plan.written if isinstance(query, TreeQuery) else None
        for leaf in above if isinstance(root, GroupBy) and isinstance(root.child, Block | Slide) else []:
            last = leaf["facts"][-1] if leaf["facts"] else {}
            if "row" in last:
                answer = self.engine.answer(name)
                rows = [canonical_row(row) for row in zip(*(column.to_pylist() for column in answer.columns))]
                key = canonical_row(last["group"].values())
                got = [] if last["row"] is None else [canonical_row(last["row"].values())]
                compared()
                if not near(got, [row for row in rows if row[: len(key)] == key]):
                    raise Mismatch(f"{query.sql}\n  told: {last}\n  answer: {rows}")
                self.n_groups += 1


def run(script: WindowScript, seed: int, make: Callable[[WindowScript, int], TraceHarness] = TraceHarness) -> TraceHarness:
    harness = make(script, seed)
    try:
        for number, step in enumerate(script.steps):
            try:
                harness.step(step)
                if number % 3 == 0 or number > len(script.steps) - 3:
                    harness.check(4, 2 if number % 2 else 0)
            except Exception as error:
                error.add_note(f"at step {number} of seed {seed}: {type(step).__name__}")
                raise
    finally:
        harness.close()
    return harness


@pytest.mark.parametrize("seed", seeds(range(40), 10))
def test_a_row_is_matched_exactly_when_the_model_lets_it_into_a_leaf(seed: int) -> None:
    assert min(run(make_window_script(seed, 30), seed).n_verdicts.values()) > 0


@pytest.mark.parametrize("seed", seeds(range(500, 516), 6))
def test_the_same_holds_without_keys_and_ends(seed: int) -> None:
    assert min(run(make_window_script(seed, 30, plain=True), seed).n_verdicts.values()) > 0


@pytest.mark.parametrize("seed", seeds(range(600, 616), 6))
def test_the_same_holds_beside_tables_that_change(seed: int) -> None:
    assert min(run(make_frozen_script(seed, 25, plain=seed % 2 == 0), seed).n_verdicts.values()) > 0


class ServiceHarness(TraceHarness):
    """The engine of a service, whose traces are asked for by REST; it is fed as it is without one."""

    def __init__(self, service: InProcess, script: WindowScript, seed: int) -> None:
        super().__init__(script, seed, lambda **_: service.service.core.engine)
        self.service = service

    def trace(self, stream: str, row: int | dict[str, Any]) -> dict[str, Any]:
        if not isinstance(row, int):
            row = {**row} | {name: value.isoformat() for name, value in row.items() if isinstance(value, datetime)}
        answer = self.service.post("/v1/trace", json={"stream": stream, "row": row})
        if answer.status_code == 404:
            raise NotFoundError(answer.json()["title"])
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def _row(self, plan: StreamPlan, time: int) -> Row:
        """Numbers in JSON are finite."""
        row = super()._row(plan, time)
        return {**row, "x": 0.5 if row["x"] is not None and not math.isfinite(row["x"]) else row["x"]}

    def _compare_groups(self, name: str, above: list[dict[str, Any]]) -> None:
        """What JSON says of numbers and times is compared elsewhere."""


@pytest.mark.parametrize("seed", range(700, 704))
def test_the_same_holds_by_rest(seed: int) -> None:
    with in_process(Limits(max_ahead_seconds=10**10)) as service:
        harness = run(make_window_script(seed, 25), seed, partial(ServiceHarness, service))
        assert min(harness.n_verdicts.values()) > 0
