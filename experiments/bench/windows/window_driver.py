"""The engine under one expiry word: pushes, and what its operators hold and looked at."""

from __future__ import annotations

from typing import Any

from eddy import Engine
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.stage import OperatorStage
from eddy.operators.template import Member, Template
from eddy.operators.tree_query import TreeQuery
from experiments.bench.windows.window_workload import COLUMNS, STREAM, RotatingRows, WindowSetting
from windows.state.buffer import Buffer


class WindowDriver:
    """An engine that runs the queries of a setting, its windows full."""

    def __init__(self, setting: WindowSetting, expiry: str) -> None:
        self.engine = Engine(seed=0)
        self.engine.create_stream(STREAM, COLUMNS, time="ts")
        self.queries = [self.engine.submit(text, expiry=expiry) for text in setting.texts()]
        self._rows = RotatingRows(setting)
        #: rows delivered, of either sign
        self.n_results = 0
        self.n_pushed = 0
        self.engine.on_commit(self._take)
        for _ in range(-(-setting.n_window // setting.n_rows) + 1):
            self.push(0)

    def _take(self, part: Any) -> None:
        self.n_results += len(part.time)

    def push(self, number: int) -> None:
        """The next batch, whatever the number."""
        batch = self._rows.next()
        self.n_pushed += len(batch["k"])
        self.engine.push(STREAM, batch)

    def state_bytes(self) -> int:
        """What all operators and answers hold."""
        groups = {query.operation.group for query in self._trees() if isinstance(query.operation, SharedOperation)}
        return sum(template.bytes for template in self._templates()) + sum(group.bytes for group in groups)

    def n_looked_at(self) -> int:
        """Rows that state buffers looked at in search of those due, so far."""
        return sum(buffer.looked_at for template in self._templates() for buffer in _buffers(template))

    def _templates(self) -> set[Template]:
        """The templates of the queries; of aggregates that are shared the rows leave with the row store."""
        return {query.operation.template for query in self._trees() if isinstance(query.operation, Member)}

    def _trees(self) -> list[TreeQuery]:
        return [query for query in self.queries if isinstance(query, TreeQuery)]


def _buffers(template: Template) -> list[Buffer]:
    operators = [stage.operator for stage in template.root.stages() if isinstance(stage, OperatorStage)]
    found: dict[int, Buffer] = {}
    for owner in (*operators, template.recipient):
        _collect(owner, found, set())
    return list(found.values())


def _collect(thing: object, found: dict[int, Buffer], seen: set[int]) -> None:
    """All buffers that an object of `windows/` leads to."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, Buffer):
        found[id(thing)] = thing
    elif isinstance(thing, list | tuple):
        for item in thing:
            _collect(item, found, seen)
    elif type(thing).__module__.startswith("windows."):
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        for name in [*getattr(thing, "__dict__", ()), *slots]:
            _collect(getattr(thing, name, None), found, seen)
