"""The engine's operators against the papers' own, corrected, on the same signed rows: equal answers after every event.

Rows begin with an end or without, end by the clock or before, and come again. Under every word the engine's operators find ends
as that word says, in commits cut anywhere, and the pipeline works as that word says, message by message.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from eddy.base.compile import ensure
from experiments.papers import EXPIRY
from experiments.papers.buffers import Element
from tests.unit.windows.twin_plans import Spec, bags_at, fed, instants, kernel_bags, random_events, settled

ensure()


def keys(edge: int) -> Spec:
    return ("project", (0,), edge)


#: name -> plan over edges 0, 1, 2
ALONE: dict[str, Spec] = {
    "select": ("select", (1,), 0),
    "project": ("project", (1, 0), 0),
    "union all": ("union all", 0, 1),
    "union": ("union", keys(0), keys(1)),
    "join": ("join", 0, 1),
    "distinct": ("distinct", keys(0)),
    "except": ("except", keys(0), keys(1)),
    "except all": ("except all", keys(0), keys(1)),
    "intersect": ("intersect", keys(0), keys(1)),
    "intersect all": ("intersect all", keys(0), keys(1)),
    "group-by": ("group-by", (0,), 0),
    "scalar aggregates": ("group-by", (), 0),
    "first and last": ("ordered", (0,), 0),
    "filtered aggregates": ("filtered", (0,), ("flagged", 0)),
    "having": ("select", (1,), ("project", (1, 0), ("group-by", (0,), 0))),
    "overwriting aggregate": ("overwriting", (0,), 0),
    "overwriting scalar": ("overwriting", (), 0),
}
STACKED: dict[str, Spec] = {
    "distinct over join over except all": ("distinct", ("project", (0,), ("join", ("except all", 0, 1), 2))),
    "except all over join over distinct": (
        "except all", ("project", (0,), ("join", ("distinct", keys(0)), ("distinct", keys(1)))), keys(2),
    ),
    "group-by over distinct over union all": ("group-by", (0,), ("distinct", ("union all", 0, 1))),
    "intersect over except over select": ("intersect all", ("except", ("select", (0,), keys(0)), keys(1)), keys(2)),
    "except over except over except": ("except", ("except", ("except", keys(0), keys(1)), keys(2)), keys(3)),
    "join over group-by over except all": ("join", ("project", (0, 1), ("group-by", (0,), ("except all", 0, 1))), 2),
    "group-by over join over intersect all": ("group-by", (0,), ("join", ("intersect all", keys(0), keys(1)), keys(2))),
    "union over intersect over distinct": ("union", ("intersect", ("distinct", keys(0)), keys(1)), keys(2)),
}  # fmt: skip
#: what needs ends that are known
KNOWN: dict[str, Spec] = {
    "delta-star": ("delta-star", keys(0)),
    "intersect-star": ("intersect-star", keys(0), keys(1)),
    "intersect-star over join and distinct": (
        "intersect-star", ("project", (0,), ("join", 0, 1)), ("delta-star", keys(2)),
    ),
    "except over intersect-star": ("except all", ("intersect-star", keys(0), keys(1)), keys(2)),
    "join over delta-stars": ("join", ("delta-star", keys(0)), ("delta-star", keys(1))),
    "except all over join over delta-star": (
        "except all", ("project", (0,), ("join", ("delta-star", keys(0)), 1)), keys(2),
    ),
    "delta-star over union all over join": ("delta-star", ("union all", ("project", (0,), ("join", 0, 1)), keys(2))),
}  # fmt: skip


def n_edges(spec: Spec) -> int:
    found = [part for part in spec[1:] if isinstance(part, int)]
    inner = [n_edges(part) for part in spec[1:] if isinstance(part, tuple) and part and isinstance(part[0], str)]
    return max([edge + 1 for edge in found] + inner)


def compare(spec: Spec, word: str, seed: int, *, premature: bool = True, in_order: bool = False) -> int:
    """Both on one history; returns how often the answer changed."""
    history = random_events(seed, n_edges(spec), premature=premature, in_order=in_order)
    times = instants(history)
    twins = list(settled(fed(spec, history, word, premature), times))
    fifo = in_order and not premature
    kernels = bags_at(kernel_bags(spec, history, word, [None, seed][seed % 2], fifo=fifo), times)
    for time, of_twin, of_kernel in zip(times, twins, kernels, strict=True):
        assert of_kernel == of_twin, f"at {time}, {word}, seed {seed}"
    return sum(before != after for before, after in pairwise(twins))


@pytest.mark.parametrize("word", EXPIRY)
@pytest.mark.parametrize("name", [*ALONE, *(pytest.param(name, marks=pytest.mark.slow) for name in STACKED)])
def test_an_operator_and_its_twin_agree_after_every_event(name: str, word: str) -> None:
    spec = {**ALONE, **STACKED}[name]
    assert sum(compare(spec, word, seed) for seed in range(4 if name in STACKED else 2)) > 4


@pytest.mark.parametrize("word", EXPIRY)
@pytest.mark.parametrize("name", {**ALONE, **KNOWN})
@pytest.mark.slow
def test_where_ends_are_known_they_agree_in_order_and_out_of_it(name: str, word: str) -> None:
    spec = {**ALONE, **KNOWN}[name]
    assert sum(compare(spec, word, seed, premature=False, in_order=seed % 2 == 0) for seed in range(2)) > 4


@pytest.mark.parametrize("grouped", [(0,), ()])
def test_the_temporal_aggregate_says_afterwards_what_group_by_said_at_the_time(grouped: tuple[int, ...]) -> None:
    """G, model 1: results with both ends of their life, when it is over. Of no rows at all it says nothing."""
    for seed in range(4):
        history = random_events(seed, 1, premature=False, in_order=False)
        pipeline = fed(("temporal", grouped, 0), history, "update-pattern", premature=False)
        said: list[Element] = []
        pipeline.recipient.history = said
        last = history.arrivals[-1][0]
        pipeline.run(last)
        pipeline.settle()
        spec = ("group-by", grouped, 0)
        output = kernel_bags(spec, history, "update-pattern", seed)
        times = range(history.arrivals[0][0], last)
        for time, bag in zip(times, bags_at(output, times), strict=True):
            shown = Counter({row: n for row, n in bag.items() if row[len(grouped)] > 0})
            assert Counter(row.values for row in said if row.start <= time < row.end) == shown, f"at {time}, seed {seed}"
