"""A naive model of a merged stream, by semantics 36: every event in a dict, everything looked at with every call.

Times are microseconds. What a call makes of the stream is told as steps in the order in which they take effect:

    Enter(time, row, number)      a row enters at an effective time, with its number
    End(time, number)             the row of that number ends: at once, or at a time that may be to come
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

BEGINNING = -(2**62)
FOREVER = 2**62


class Enter(NamedTuple):
    time: int
    row: dict[str, Any]
    number: int


class End(NamedTuple):
    #: None: at once
    time: int | None
    number: int


@dataclass(eq=False)
class Input:
    name: str
    number: int
    since: int
    joined: bool
    said: int = BEGINNING
    point: int = BEGINNING
    largest: int = BEGINNING
    #: the largest time that it gave, and the newest
    top: int = BEGINNING
    last: int = BEGINNING
    contradictions: int = 0


@dataclass(eq=False)
class Event:
    time: int
    row: dict[str, Any]
    receipt: int
    order: int
    told: dict[Input, int] = field(default_factory=dict)
    out: int | None = None
    number: int | None = None


@dataclass(frozen=True)
class Options:
    inputs: tuple[str, ...]
    #: column names; None is a bag
    unique: tuple[str, ...] | None
    time: str = "ts"
    end: str | None = None
    missing: str = "leader"
    policy: str = "stable"
    order: str | None = None
    lateness: int = 0
    lag: int = 0


def _value(value: Any) -> str:
    """Equal for equal values."""
    return "0" if value == 0 else repr(value)


class MergeModel:
    """Case R3: events that can be told apart, in any order, with adjusts."""

    counts_contradictions = True

    def __init__(self, options: Options) -> None:
        self.options = options
        self.inputs: dict[str, Input] = {}
        self.events: dict[Any, Event] = {}
        self.stable = BEGINNING
        self.leader: Input | None = None
        self.front = BEGINNING
        self.n_receipts = self.n_events = self.n_rows = 0
        self.largest = BEGINNING
        self.gaps: list[tuple[int, int]] = []
        self._new: list[tuple[Event, int]] = []
        self._ends: list[End] = []
        for name in options.inputs:
            self.attach(name, BEGINNING)

    # ---- inputs

    def attach(self, name: str, since: int | None) -> None:
        since = self.largest if since is None else since
        taken = {one.number for one in self.inputs.values()}
        number = next(k for k in range(len(taken) + 1) if k not in taken)
        any_joined = any(one.joined for one in self.inputs.values())
        if not any_joined and BEGINNING < self.stable < since:
            self.gaps.append((self.stable, since))
        self.inputs[name] = Input(name, number, since, since <= self.stable or not any_joined)

    def detach(self, name: str) -> None:
        of = self.inputs.pop(name)
        for event in self.events.values():
            event.told.pop(of, None)
        self.events = {key: event for key, event in self.events.items() if event.told or event.out is not None}
        if self.leader is of:
            self.leader = None

    def _has_most(self, of: Input, key: Any) -> bool:
        """Whether no joined input has more."""
        return all(key(of) >= key(one) for one in self.inputs.values() if one.joined)

    # ---- calls

    def refused(self, name: str, rows: list[dict[str, Any]]) -> int | None:
        """The first row that is below what the input said or against its order."""
        of, order = self.inputs[name], self.options.order
        below = [i for i, row in enumerate(rows) if row[self.options.time] < of.said]
        if below:
            return below[0]
        last = of.last
        for i, row in enumerate(rows):
            time = row[self.options.time]
            if (order == "strict" and time <= last) or (order == "ordered" and time < last):
                return i
            last = time
        return None

    def push(self, name: str, rows: list[dict[str, Any]]) -> tuple[list[Enter | End], Counter[str]]:
        of, options = self.inputs[name], self.options
        counts: Counter[str] = Counter()
        for row in rows:
            time = row[options.time]
            of.largest = max(of.largest, time)
            self.largest = max(self.largest, time)
            of.last = time
            counts[self._insert(of, row)] += 1
            self.n_receipts += 1
        if rows:
            implied = {"strict": of.largest + 1, "ordered": of.largest, None: of.largest - options.lateness}.get(options.order)
            if implied is not None and implied > of.point:
                self._move(of, implied)
        return self._steps(), counts

    def say(self, name: str, time: int) -> list[Enter | End]:
        of = self.inputs[name]
        of.said = max(of.said, time)
        self._move(of, time)
        return self._steps()

    def advance(self, time: int) -> list[Enter | End]:
        found: list[Enter | End] = []
        for of in [one for one in self.inputs.values() if one.joined]:
            found += self.say(of.name, time)
        return found

    def can_adjust(self, name: str, identity: dict[str, Any], time: int, old: int | None) -> bool:
        """Whether the input has the event, or nobody can say any more."""
        event = self.events.get((time, self.key(identity)))
        return time < self.stable if event is None else self.inputs[name] in event.told

    def adjust(self, name: str, identity: dict[str, Any], time: int, old: int | None, end: int) -> tuple[list[Enter | End], str]:
        of = self.inputs[name]
        event = self.events.get((time, self.key(identity)))
        if event is None:
            assert time < self.stable, "adjusts of nothing are refused"
            return [], "settled"
        event.told[of] = end
        if end == time:
            del event.told[of]
            if not event.told and event.out is None:
                del self.events[(time, self.key(event.row))]
        return self._steps(), "changed"

    # ---- events

    def key(self, row: dict[str, Any]) -> Any:
        options = self.options
        apart = (options.time, options.end, f"old_{options.end}")
        names = [name for name in row if name not in apart] if options.unique is None else options.unique
        return tuple((name, _value(row[name])) for name in sorted(names))

    def _insert(self, of: Input, row: dict[str, Any]) -> str:
        time = row[self.options.time]
        end = time + 1
        if self.options.end is not None:
            end = FOREVER if row[self.options.end] is None else row[self.options.end]
        key = (time, self.key(row))
        event = self.events.get(key)
        outcome = "known"
        of.top = max(of.top, time)
        if event is None and time < self.stable:
            return "settled"
        if event is None:
            self.n_events += 1
            event = self.events[key] = Event(time, row, self.n_receipts, self.n_events)
            outcome = "new"
        elif of in event.told:
            outcome = "repeated"
        if outcome != "new":
            others = [name for name in row if name not in (self.options.time, self.options.end)]
            of.contradictions += any(_value(row[name]) != _value(event.row[name]) for name in others)
        if outcome != "repeated":
            event.told[of] = end
            if event.out is None and self._goes_out(of, event):
                self._enter(event, end)
        return outcome

    def _goes_out(self, of: Input, event: Event) -> bool:
        policy = self.options.policy
        if policy == "first":
            return True
        if not of.joined or policy == "stable":
            return False
        if policy == "leader":
            return of is self.leader
        if policy == "highest":
            return self._has_most(of, lambda one: one.top)
        if policy == "unfrozen":
            return self._has_most(of, lambda one: sum(one in e.told and e.time >= one.point for e in self.events.values()))
        if policy == "half-frozen":
            return False
        joined = [one for one in self.inputs.values() if one.joined]
        return Fraction(sum(one in event.told for one in joined), len(joined)) >= Fraction(policy.removeprefix("fraction:"))

    def _move(self, of: Input, time: int) -> None:
        """A stable point of an input."""
        of.point = max(of.point, time)
        if not of.joined:
            return
        target = max(time - self.options.lag, self.stable)
        if target > self.stable:
            for event in self._in_order():
                if event.time < target:
                    self._decide(of, event, target)
        if self.options.policy == "half-frozen" and self.options.lag:
            for event in self._in_order():
                if event.out is None and of in event.told and target <= event.time < time:
                    self._enter(event, event.told[of])
        if target == self.stable:
            return
        self.stable, self.leader = target, of
        for one in self.inputs.values():
            one.joined = one.joined or one.since <= target

    def _in_order(self) -> list[Event]:
        return sorted(self.events.values(), key=lambda event: (event.time, event.order))

    def _decide(self, of: Input, event: Event, target: int) -> None:
        end = event.told.get(of)
        if end is None and self.options.missing == "any":
            joined = [one for one in event.told if one.joined]
            if joined:
                end = event.told[max(joined, key=lambda one: (one.point, event.told[one]))]
        if event.time < self.stable:
            if end is None or end < self.stable:
                end = event.out
        elif end is None:
            end = event.time
        assert end is not None
        if event.out is None:
            if end > event.time:
                self._enter(event, end)
        elif end != event.out and (end < target or event.out < target):
            self._change(event, end)
        if end < target:
            del self.events[(event.time, self.key(event.row))]

    # ---- the stream

    def _enter(self, event: Event, end: int) -> None:
        event.out = end
        self._new.append((event, end))

    def _change(self, event: Event, end: int) -> None:
        """Another end for a row in the stream."""
        assert event.number is not None and event.out is not None
        if end == event.time:
            self._ends.append(End(None, event.number))
            event.out = None
            return
        if end < event.out:
            self._ends.append(End(end, event.number))
        else:
            self._ends.append(End(None, event.number))
            self._new.append((event, end))
        event.out = end

    def _steps(self) -> list[Enter | End]:
        """What a call has made of the stream; numbers are given now."""
        found: list[Enter | End] = [*self._ends]
        timed = sorted(self._new, key=lambda pair: (max(pair[0].time, self.front), pair[0].receipt))
        for event, end in timed:
            time = max(event.time, self.front)
            row = dict(event.row)
            if self.options.end is not None:
                row[self.options.end] = None if end == FOREVER else end
            event.number = self.n_rows
            found.append(Enter(time, row, self.n_rows))
            self.n_rows += 1
        self.front = max([self.front, *(max(event.time, self.front) for event, _ in timed)])
        self._new, self._ends = [], []
        return found
