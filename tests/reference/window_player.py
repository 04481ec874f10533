"""Plays a script of trees of operators on the model alone."""

from __future__ import annotations

from tests.reference.operators import named
from tests.reference.script import Act, Advance, Delete, Push, Upsert
from tests.reference.window_model import WindowModel
from tests.reference.window_script import Open, Retract, Rewrite, Step, WindowScript


class WindowPlayer:
    """A model set up by a script, and the queries in it by their label; cancelled ones are not in it."""

    def __init__(self, script: WindowScript) -> None:
        self.model = WindowModel()
        self.numbers: dict[int, int] = {}
        for s in script.streams:
            self.model.create_stream(s.name, lateness=s.lateness_us, late=s.late, keep=s.keep_us, key=s.key, end=s.end)
        for t in script.tables:
            self.model.create_table(t.name, key=t.key, retroactive=t.retroactive)

    def may(self, step: Step) -> bool:
        """Whether a step's query is in a state for it; it may not be when a script is shrunk."""
        match step:
            case Open():
                return named(step.tree) <= self.model.names.keys()
            case Rewrite(label) | Act(_, label):
                if label not in self.numbers or self.model.readers(self.numbers[label]):
                    return False
                paused = self.model.queries[self.numbers[label]].kept is not None
                return paused == (isinstance(step, Act) and step.verb == "resume") or (
                    isinstance(step, Act) and step.verb == "cancel"
                )
        return True

    def do(self, step: Step) -> None:
        match step:
            case Push():
                self.model.push_many(step.batches)
            case Advance():
                self.model.advance(step.time)
            case Retract():
                self.model.retract(step.stream, step.keys, step.time)
            case Upsert():
                self.model.upsert(step.table, step.rows)
            case Delete():
                self.model.delete(step.table, step.keys)
            case Open():
                self.numbers[step.label] = self.model.submit(step.tree, step.history, step.emit, step.name)
            case Rewrite():
                self.model.replace(self.numbers[step.label], step.tree)
            case Act():
                getattr(self.model, step.verb)(self.numbers[step.label])
                if step.verb == "cancel":
                    del self.numbers[step.label]
