"""Contestants of a join: each takes the pushes of its workload by itself, a turn is one push to every stream."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol, TypeVar

from experiments.bench.base.timing import Rounds, take_turns
from experiments.bench.joins.join_workload import JoinWorkload


class Contestant(Protocol):
    @property
    def workload(self) -> JoinWorkload: ...

    def push(self) -> object: ...


C = TypeVar("C", bound=Contestant)


def filled(contestant: C) -> C:
    """The contestant after so many pushes that every window is full and rows leave."""
    for _ in range(contestant.workload.n_filling):
        contestant.push()
    return contestant


def take_turn(contestant: Contestant, number: int) -> None:
    """A push to every stream; contents rotate by themselves, whatever the number."""
    for _ in range(contestant.workload.n_streams):
        contestant.push()


def rows_of_turn(workload: JoinWorkload) -> int:
    return workload.n_streams * workload.n_rows


def race(contestants: Mapping[str, Contestant], seconds: float) -> Rounds:
    """Take turns: CPU seconds a turn."""
    turns = {name: partial(take_turn, contestant) for name, contestant in contestants.items()}
    n_contents = min(len(contestant.workload.contents[0]) for contestant in contestants.values())
    return take_turns(turns, n_contents, seconds)
