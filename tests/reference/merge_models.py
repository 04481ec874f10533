"""The naive model of each case of a merged stream: inputs in order (R0 to R2), and bags (R4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.reference.merge_model import BEGINNING, FOREVER, End, Enter, Event, Input, MergeModel, Options


def model_of(options: Options, case: str) -> MergeModel:
    """The model of a case."""
    if case == "R3":
        return MergeModel(options)
    return BagModel(options) if case == "R4" else OrderedModel(options, case)


class OrderedModel(MergeModel):
    """Cases R0, R1 and R2: nothing is kept of rows before the newest time; what was given before the point passed stays."""

    counts_contradictions = False

    def __init__(self, options: Options, case: str) -> None:
        super().__init__(options)
        self.case = case
        self.newest = BEGINNING
        #: rows of the newest time: those given out, and those of each input
        self.out: Counter[Any] = Counter()
        self.of: dict[Input, Counter[Any]] = {}
        self.waiting: list[Event] = []

    def detach(self, name: str) -> None:
        self.of.pop(self.inputs[name], None)
        super().detach(name)

    def _insert(self, of: Input, row: dict[str, Any]) -> str:
        time = row[self.options.time]
        if not of.joined:
            return "ignored"
        if time < self.stable:
            return "settled"
        if time < self.newest:
            return "known"
        if time > self.newest:
            self.newest, self.out, self.of = time, Counter(), {}
        key = self.key(row) if self.case == "R2" else None
        mine = self.of.setdefault(of, Counter())
        mine[key] += 1
        bag = self.case == "R1" or (self.case == "R2" and self.options.unique is None)
        if self.out[key] and not (bag and mine[key] > self.out[key]):
            return "known"
        self.out[key] += 1
        event = Event(time, row, self.n_receipts, self.n_events)
        if self.options.policy == "first":
            self._enter(event, time + 1)
        else:
            self.waiting.append(event)
        return "new"

    def _move(self, of: Input, time: int) -> None:
        of.point = max(of.point, time)
        target = time - self.options.lag
        if not of.joined or target <= self.stable:
            return
        self.stable, self.leader = target, of
        for one in self.inputs.values():
            one.joined = one.joined or one.since <= target
        for event in self.waiting:
            if event.time < target:
                self._enter(event, event.time + 1)
        self.waiting = [event for event in self.waiting if event.time >= target]


@dataclass(eq=False)
class BagEvent:
    """Equal rows of one time."""

    time: int
    key: Any
    order: int
    #: one for each copy that came first, in order of receipt
    copies: list[Event] = field(default_factory=list)
    told: dict[Input, list[int]] = field(default_factory=dict)

    def shown(self) -> list[int]:
        return sorted(copy.out for copy in self.copies if copy.out is not None)


class BagModel(MergeModel):
    """Case R4: as many copies as the deciding input has."""

    counts_contradictions = False

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.bags: dict[Any, BagEvent] = {}

    def detach(self, name: str) -> None:
        of = self.inputs[name]
        for bag in self.bags.values():
            bag.told.pop(of, None)
        self._let_go()
        super().detach(name)

    def _let_go(self) -> None:
        self.bags = {key: bag for key, bag in self.bags.items() if any(bag.told.values()) or bag.shown()}

    def can_adjust(self, name: str, identity: dict[str, Any], time: int, old: int | None) -> bool:
        bag = self.bags.get((time, self.key(identity)))
        return time < self.stable if bag is None else (FOREVER if old is None else old) in bag.told.get(self.inputs[name], [])

    def adjust(self, name: str, identity: dict[str, Any], time: int, old: int | None, end: int) -> tuple[list[Enter | End], str]:
        bag = self.bags.get((time, self.key(identity)))
        if bag is None:
            return [], "settled"
        ends = bag.told[self.inputs[name]]
        ends.remove(FOREVER if old is None else old)
        if end > time:
            ends.append(end)
        self._let_go()
        return self._steps(), "changed"

    def _insert(self, of: Input, row: dict[str, Any]) -> str:
        time = row[self.options.time]
        end = time + 1
        if self.options.end is not None:
            end = FOREVER if row[self.options.end] is None else row[self.options.end]
        key = (time, self.key(row))
        if key not in self.bags:
            if time < self.stable:
                return "settled"
            self.n_events += 1
            self.bags[key] = BagEvent(time, key, self.n_events)
        bag = self.bags[key]
        ends = bag.told.setdefault(of, [])
        ends.append(end)
        others = [len(told) for one, told in bag.told.items() if one is not of]
        if time >= self.stable and len(ends) > max([0, *others]):
            bag.copies.append(Event(time, row, self.n_receipts, bag.order))
            return "new"
        return "known"

    def _move(self, of: Input, time: int) -> None:
        of.point = max(of.point, time)
        target = time - self.options.lag
        if not of.joined or target <= self.stable:
            return
        for bag in sorted(self.bags.values(), key=lambda bag: (bag.time, bag.order)):
            if bag.time < target:
                self._decide_bag(of, bag, target)
        self.stable, self.leader = target, of
        for one in self.inputs.values():
            one.joined = one.joined or one.since <= target

    def _decide_bag(self, of: Input, bag: BagEvent, target: int) -> None:
        told = sorted(bag.told.get(of, []))
        if bag.time >= self.stable:
            for copy, end in zip(bag.copies, told, strict=False):
                self._enter(copy, end)
        else:
            low = self.stable
            shown = Counter(end for end in bag.shown() if end >= low)
            wanted = Counter(end for end in told if end >= low)
            lacking, extra = sorted((wanted - shown).elements()), sorted((shown - wanted).elements())
            for end, old in zip(lacking, extra, strict=False):
                if end < target or old < target:
                    self._change(next(copy for copy in bag.copies if copy.out == old), end)
        if not any(end >= target for end in bag.shown()):
            del self.bags[bag.key]
