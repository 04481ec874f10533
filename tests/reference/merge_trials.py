"""Random trials of merges: tables, presentations and words drawn from a seed, for the tests, the mutants and the soak."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple, cast

from experiments.papers.lmerge import SlowMerge
from lineage.elements import FOREVER
from lmerge.merge import make_merge
from lmerge.streams.elements import ADJUST, INSERT, STABLE
from tests.reference.comparison import Mismatch, same
from tests.reference.merge_play import MergePlay
from tests.reference.merging import OneByOne, Pair, play_kernel
from tests.reference.presentations import (
    COMPLETE,
    SLOPPY,
    Manner,
    Push,
    Step,
    TableEvent,
    distinct_starts,
    present,
    present_in_order,
    random_table,
    shuffle,
    shuffle_joins,
)

INSERTS = ("first", "leader", "highest", "unfrozen", "half-frozen", "fraction:0.5", "fraction:1", "stable")
ADJUSTS = ("lazy", "every", "leader")
#: What never changes and comes in any order, as readings do.
STEADY = Manner(revised=0.0, wavering=0.0, spurious=0.0)


class Trial(NamedTuple):
    """A table and how it is presented to a merge of a case."""

    case: str
    words: dict[str, Any]
    table: list[TableEvent]
    steps: list[Step]
    #: whether every input presents the whole table, from where it begins
    complete: bool

    @property
    def key(self) -> bool:
        return self.case != "R4" and not self.words.get("bag")


def draw_trial(seed: int, case: str, *, words: dict[str, Any] | None = None, size: int = 60) -> Trial:
    """Draw a trial of a case; without words those of R3 and R4 are drawn too."""
    rng = Random(seed)
    if case in ("R3", "R4"):
        return _any_order(rng, case, _draw_words(rng, case) if words is None else words, size)
    words = words or {}
    table = random_table(rng, rng.choice((1, 3, 8, size)), key=not words.get("bag"), span=rng.choice((6, 12, 40)))
    table = distinct_starts(table) if case == "R0" else table
    missing = rng.choice((0, 0, 0.12)) if case != "R1" else 0
    streams = [present_in_order(rng, table, case=case, missing=missing) for _ in range(rng.randrange(1, 11))]
    steps = shuffle(rng, streams, cut=rng.choice((1, 4, 30)), kill=rng.choice((0, 0.05)))
    return Trial(case, words, table, steps, not missing)


def _draw_words(rng: Random, case: str) -> dict[str, Any]:
    missing = rng.choice(("leader", "any")) if case == "R3" else "leader"
    return {"insert": rng.choice(INSERTS), "adjust": rng.choice(ADJUSTS), "missing": missing, "lag": rng.choice((0, 3))}


def _any_order(rng: Random, case: str, words: dict[str, Any], size: int) -> Trial:
    key = case == "R3"
    table = random_table(rng, rng.choice((1, 3, 8, 20, size)), key=key, span=rng.choice((6, 12, 40)))
    manner: Manner = rng.choice((COMPLETE, COMPLETE, SLOPPY, STEADY))
    n, cut = rng.randrange(1, 11), rng.choice((1, 4, 30))
    if rng.random() < 0.4:
        steps = shuffle_joins(rng, table, n, manner, key=key, cut=cut, lag=words.get("lag", 0))
    else:
        streams = [present(rng, table, manner, key=key) for _ in range(n)]
        steps = shuffle(rng, streams, cut=cut, kill=rng.choice((0, 0.03, 0.2)))
    return Trial(case, words, table, steps, manner != SLOPPY)


def run_beside_twin(trial: Trial) -> None:
    """Kernel and twin agree element by element."""
    Pair(trial.case, **trial.words).play(trial.steps)


def run_compatible(trial: Trial) -> None:
    """After every element the output is valid and follows its inputs; at the end it is the table, with no more talk."""
    merge = OneByOne(make_merge(trial.case, **trial.words))
    play = MergePlay(cast(SlowMerge, merge), key=trial.key)
    follows = trial.complete and trial.words.get("missing") != "any" and not trial.words.get("bag")
    play.run(trial.steps, MergePlay.compatible if follows else lambda play: None)
    if not trial.complete:
        return
    if trial.words.get("missing") != "any":
        same("table at the end", play.output.events(), sorted(tuple(event) for event in trial.table))
        same("point at the end", merge.stable, FOREVER)
    if trial.words.get("adjust", "lazy") == "lazy" and all_ended(trial.steps):
        given = play.given[INSERT] + play.given[ADJUST]
        if given > play.taken[INSERT] + play.taken[ADJUST] or play.given[STABLE] > play.taken[STABLE]:
            raise Mismatch(f"gave {dict(play.given)} for {dict(play.taken)}")


def all_ended(steps: Iterable[Step]) -> bool:
    """Whether every input said all it has to say: one that was cut short may not have taken back what it gave too much."""
    last = {step.stream: step.elements[-1] if isinstance(step, Push) else None for step in steps}
    return all(element is not None and element.kind == STABLE and element.end == FOREVER for element in last.values())


def run_cut_anew(trial: Trial, seed: int) -> None:
    """The output is the same, in the same order, however elements are cut into pushes."""
    whole = play_kernel(make_merge(trial.case, **trial.words), trial.steps)
    rng = Random(seed)
    same("outputs under another cut", play_kernel(make_merge(trial.case, **trial.words), _cut(rng, trial.steps)), whole)


def _cut(rng: Random, steps: Iterable[Step]) -> list[Step]:
    cut: list[Step] = []
    for step in steps:
        if isinstance(step, Push):
            at = 0
            while at < len(step.elements):
                n = rng.randrange(1, 8)
                cut.append(Push(step.stream, step.elements[at : at + n]))
                at += n
        else:
            cut.append(step)
    return cut
