"""Plays a script on the naive model alone."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference.naive import Naive
from tests.reference.script import Act, Advance, Crowd, Delete, Leave, Push, Replace, Retract, Script, Step, Submit, Tick, Upsert


class Player:
    """A model set up by a script, and the queries in it by their label; cancelled ones are not in it."""

    def __init__(self, script: Script, make_model: Callable[[], Naive] = Naive) -> None:
        self.model = make_model()
        self.now = 0
        self.model.clock = lambda: self.now
        self.numbers: dict[int, int] = {}
        for s in script.streams:
            lateness, keep = s.lateness_us, s.keep_us
            self.model.create_stream(
                s.name, time=s.time, lateness=lateness, late=s.late, timeline=s.timeline, keep=keep, key=s.key, end=s.end
            )  # fmt: skip
        for t in script.tables:
            self.model.create_table(t.name, key=t.key, retroactive=t.retroactive)

    def paused(self, label: int) -> bool:
        return self.model.queries[self.numbers[label]].kept is not None

    def do(self, step: Step) -> bool:
        """Run one step; returns False if its query is not in a state for it, as happens when a script is shrunk."""
        match step:
            case Push():
                self.model.push_many(step.batches)
            case Retract():
                self.model.retract(step.stream, step.keys, step.time)
            case Advance():
                self.model.advance(step.time, step.timeline)
            case Upsert():
                self.model.upsert(step.table, step.rows)
            case Delete():
                self.model.delete(step.table, step.keys)
            case Submit():
                self.numbers[step.label] = self.model.submit(step.spec.meaning, step.history, step.emit)
            case Replace():
                if step.label not in self.numbers or self.paused(step.label):
                    return False
                self.model.replace(self.numbers[step.label], step.spec.meaning)
            case Act():
                if step.label not in self.numbers or (
                    step.verb != "cancel" and self.paused(step.label) != (step.verb == "resume")
                ):
                    return False
                getattr(self.model, step.verb)(self.numbers[step.label])
                if step.verb == "cancel":
                    del self.numbers[step.label]
            case Tick():
                self.now = step.now
            case Crowd():
                for member in step.members:
                    self.do(member)
            case Leave():
                for label in step.labels:
                    self.do(Act("cancel", label))
        return True
