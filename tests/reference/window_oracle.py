"""DuckDB as the second opinion on trees of operators: answers and emitted rows at every event and between them.

Given a model after a run, `check(model, opening)` asks DuckDB for one query from its opening on and compares:

    a relation   after each event; at each time 1 us before and after one, and half-way between two, it is what it was after the
                 event before: so no instant is missing in the model's list of events
    a stream     what each event emitted

It shares with the model the clock rules, the versions of tables and the list of events.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from tests.reference.binding import Opening
from tests.reference.comparison import same_bag
from tests.reference.operators import exact
from tests.reference.oracle import arrow_type, database
from tests.reference.tree_duck import NEVER, Questions
from tests.reference.values import Row, Value, canonical_row
from tests.reference.window_model import WindowModel

_STREAM = ["t_", "start_", "e_", "seq_", "position_", "until_"]
_VERSION = ["opened_", "closed_"]


class WindowOracle:
    """A DuckDB database with what a model's streams took and its tables held; `close` drops it."""

    def __init__(self, model: WindowModel, columns: Mapping[str, Mapping[str, str]]) -> None:
        self.connection = database()
        self._model = model
        self._names: list[str] = []
        for name, keyed in model.keyed.items():
            schema = self._schema(columns[name], _STREAM)
            rows = [
                {
                    **_plain(a.row),
                    "t_": a.t,
                    "start_": a.start,
                    "e_": a.event,
                    "seq_": a.seq,
                    "position_": i,
                    "until_": _time(a.until),
                }
                for i, a in enumerate(keyed.arrived)
            ]
            rows += [{**key, "e_": event} for key, event in keyed.retracted]
            self._register(f"raw_{name}", pa.Table.from_pylist(rows, schema=schema))
            # a row ends with the next row or retraction of its key
            keys = ", ".join(f'"{column}"' for column in keyed.key)
            gone = f"lead(e_, 1, {NEVER}) OVER (PARTITION BY {keys} ORDER BY e_)" if keys else NEVER
            self._create(name, f"SELECT * FROM (SELECT *, {gone} AS gone_ FROM w_raw_{name}) WHERE position_ IS NOT NULL")
        for name, table in model.tables.items():
            schema = self._schema(columns[name], _VERSION)
            rows = [{**_plain(v.row), "opened_": v.opened, "closed_": _time(v.closed)} for v in table.versions]
            self._register(f"raw_{name}", pa.Table.from_pylist(rows, schema=schema))
            self._create(name, f"SELECT *, {table.retroactive} AS retroactive_ FROM w_raw_{name}")
        events = model.events
        made = {
            "number_": [e.number for e in events],
            "time_": pa.array([_time(e.time) for e in events], pa.int64()),
            "seq_": [e.seq for e in events],
            "closes_": [e.kind == "close" for e in events],
        }
        self._register("raw_events_", pa.table(made))
        self._create("events_", "SELECT * FROM w_raw_events_")

    def _schema(self, columns: Mapping[str, str], added: Sequence[str]) -> pa.Schema:
        return pa.schema([(name, arrow_type(type)) for name, type in columns.items()] + [(name, pa.int64()) for name in added])

    def _register(self, name: str, table: pa.Table) -> None:
        self.connection.register(f"w_{name}", table)

    def _create(self, name: str, text: str) -> None:
        self.connection.execute(f'CREATE OR REPLACE TABLE "w_{name}" AS {text}')
        self._names.append(name)

    def close(self) -> None:
        for name in self._names:
            self.connection.execute(f'DROP TABLE "w_{name}"')
            self.connection.unregister(f"w_raw_{name}")

    # -- asking ------------------------------------------------------------------------------------------------------

    def check(self, opening: Opening, what: str = "") -> int:
        """Compare one opening of a query with DuckDB; returns at how many points."""
        last = len(self._model.events) - 1 if opening.closed is None else opening.closed
        if opening.tree.is_stream:
            self._check_stream(opening, last, what)
            return last - opening.event
        return self._check_relation(opening, last, what)

    def _check_stream(self, opening: Opening, last: int, what: str) -> None:
        questions = Questions(_named, '"w_events_"', last)
        name = questions.stream(opening.tree, opening)
        found: dict[int, list[Value]] = defaultdict(list)
        for event, *row in self.connection.execute(questions.text(f"SELECT * FROM {name} WHERE e_ <= {last}")).fetchall():
            found[event].append(canonical_row(row))
        expected: dict[int, list[Value]] = defaultdict(list)
        for event, value in opening.emitted:
            expected[event].append(value)
        for event in sorted(found.keys() | expected.keys()):
            self._compare(opening, f"{what}: emitted by {self._model.events[event]}", found[event], expected[event])

    def _check_relation(self, opening: Opening, last: int, what: str) -> int:
        points = self._points(opening.event, last)
        found = self.answers(opening, points)
        answers = iter([*opening.answers, (NEVER, Counter())])
        answer: Counter[Value] = Counter()
        number, following = next(answers)
        for (event, tau), got in zip(points, found, strict=True):
            while number <= event:
                answer = following
                number, following = next(answers)
            self._compare(opening, f"{what}: at {tau}, after {self._model.events[event]}", got, list(answer.elements()))
        return len(points)

    def answers(self, opening: Opening, points: Sequence[tuple[int, int]]) -> list[list[Value]]:
        """A relation's answer at points (event, time); the time lies between the event and the next."""
        numbered = [(number, event, tau, self._model.events[event].seq) for number, (event, tau) in enumerate(points)]
        columns = [pa.array(values, pa.int64()) for values in zip(*numbered, strict=True)]
        self.connection.register("w_points_", pa.table(dict(zip(["p_", "e_", "tau_", "seq_"], columns, strict=True))))
        questions = Questions(_named, '"w_events_"', max(event for event, _ in points))
        name = questions.relation(opening.tree, opening, "w_points_")
        found: list[list[Value]] = [[] for _ in points]
        for point, *row in self.connection.execute(questions.text(f"SELECT * FROM {name}")).fetchall():
            found[point].append(canonical_row(row))
        self.connection.unregister("w_points_")
        return found

    def _points(self, first: int, last: int) -> list[tuple[int, int]]:
        """(event, time): every event, and times between it and the next one."""
        points = []
        for event, following in pairwise([*range(first, last + 1), last + 1]):
            time = _time(self._model.events[event].time)
            end = time if following > last else _time(self._model.events[following].time)
            between = {time + 1, (time + end) // 2, end - 1} if time > -NEVER else set()
            points += [(event, time), *((event, tau) for tau in sorted(between) if time < tau < end)]
        return points

    def _compare(self, opening: Opening, what: str, found: list[Value], expected: list[Value]) -> None:
        same_bag(f"DuckDB's answer, against the model's, {what}", found, expected, exactly=exact(opening.tree))


def _named(name: str) -> str:
    return f'"w_{name}"'


def _time(time: float) -> int:
    return -NEVER if time == -math.inf else NEVER if time == math.inf else int(time)


def _plain(row: Row) -> Row:
    """-0.0 is 0.0, which DuckDB's groups and set operators need not know."""
    return {name: value + 0.0 if isinstance(value, float) else value for name, value in row.items()}
