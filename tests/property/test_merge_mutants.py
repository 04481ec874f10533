"""Would the trials of merges notice a broken one? Each mutant changes one text of one module, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from experiments.papers.lmerge import batch_of, insert, stable
from lineage.elements import FOREVER
from tests.reference import merge_trials, merging
from tests.reference.merge_trials import draw_trial, run_beside_twin, run_cut_anew
from tests.reference.plain_merge import plain_modules
from tests.reference.presentations import Attach, Push
from tests.unit.lmerge import test_merge_work

pytestmark = pytest.mark.slow

N_SEEDS = 40


def beside_twin(case: str, n_seeds: int = N_SEEDS, **words: Any) -> Callable[[], None]:
    """Trials beside the twin: under these words, or under drawn ones if there are none."""

    def run() -> None:
        for seed in range(n_seeds):
            run_beside_twin(draw_trial(seed, case, words=words or None, size=20))

    return run


def cut_anew() -> None:
    for seed in range(N_SEEDS):
        run_cut_anew(draw_trial(seed, "R3", words={"insert": "stable"}, size=200), seed)


def many_events() -> None:
    """So many events that state grows within a push, pass and end; state is checked, and empty at the end."""
    merge = merging.make_merge("R3")
    one, two = merge.attach(), merge.attach()
    for k in range(6):
        elements = [insert(n**3, 100 * k, 100 * k + 50 + n) for n in range(300)]
        for number in (one, two):
            merge.push(number, batch_of([*elements, stable(100 * k + 60)]))
            merge.check()
    assert merge.counters.settled == 6 * 10, "those that are over when the second input gives them"
    merged = merge.push(one, batch_of([stable(FOREVER)]))
    merge.check()
    assert merge.n_live == 0 and len(np.unique(merged.freed)) == len(merged.freed)


def little_work() -> None:
    test_merge_work.test_work_for_an_element_does_not_grow_with_what_is_alive_or_half_frozen("R3", {})


def late_in_r1() -> None:
    """An input comes late, in the middle of a start."""
    first, second = [stable(5), insert(1, 5, 9), insert(2, 5, 9)], [insert(2, 5, 9), insert(3, 5, 9), insert(4, 5, 9)]
    merging.Pair("R1").play([Attach(0, None), Push(0, first), Attach(1, 5), Push(1, second)])


def broken_promise() -> None:
    """An input gives an event before its own point; under a lag the merge's point has not passed it."""
    pair = merging.Pair("R3", insert="half-frozen", lag=10)
    pair.play([Attach(0, None), Push(0, [stable(20), insert(1, 15, 30), stable(21)])])
    assert pair.kernel.counters.inserts_out == 1


R3, R4, R3_WORDS, R4_WORDS = (
    beside_twin("R3", insert="first"),
    beside_twin("R4", insert="first"),
    beside_twin("R3"),
    beside_twin("R4"),
)


class MergeMutant(NamedTuple):
    """Where a text is changed, what it says, what it says instead, and what has to notice."""

    module: str
    old: str
    new: str
    run: Callable[[], None]


MUTANTS: dict[str, MergeMutant] = {
    # the errata of the paper
    "L3: a removal adds a copy": MergeMutant(
        "r4", "    if end > start:\n        add_copy(", "    if end >= start:\n        add_copy(", R4
    ),
    "L5: who has no entry removes what is half frozen": MergeMutant(
        "r3",
        "            end = nodes[node, SHOWN]\n    elif end == ABSENT:",
        "            end = nodes[node, START]\n    elif end == ABSENT:",
        R3,
    ),
    "L5: an end below the point counts": MergeMutant(
        "r3", "        if end < header[POINT_OUT]:\n            end", "        if end == ABSENT:\n            end", R3
    ),
    "L6: the ordered cases take what is settled": MergeMutant(
        "ordered", "elif start < header[POINT_OUT]:", "elif False:", beside_twin("R2", bag=False)
    ),
    "L7: a joiner counts from the start it comes at": MergeMutant(
        "r1", "if since is not None and self.counts:", "if False:", late_in_r1
    ),
    "L8: stables of those who wait move the point": MergeMutant(
        "points",
        "    if inputs[number, STATE] == JOINED:\n        header[TARGET]",
        "    if True:\n        header[TARGET]",
        R3,
    ),
    "L9: an input that left leaves its entries": MergeMutant(
        "node_merge", "self._nodes[:, FIELDS + number] = self.absent", "pass", R3
    ),
    "L9: a bag of an input that left stays": MergeMutant("r4", "        clear_copies(number, self._bags)", "        pass", R4),
    # boundaries
    "a start at the point is settled": MergeMutant(
        "events", "if node < 0 and start >= point:", "if node < 0 and start > point:", R3
    ),
    "an end at the point is frozen": MergeMutant(
        "r3", "    if end < header[TARGET]:\n        uncount", "    if end <= header[TARGET]:\n        uncount", R3
    ),
    "an end at the point is frozen, to be told": MergeMutant(
        "r3",
        "changes = end != shown and (end < point or shown < point)",
        "changes = end != shown and (end <= point or shown <= point)",
        R3,
    ),
    "what is due at the point is due": MergeMutant(
        "points", "                if due >= point:\n", "                if due > point:\n", R3
    ),
    "a pair at the point is told": MergeMutant(
        "r4", "changes = min(old, end) < header[TARGET]", "changes = min(old, end) <= header[TARGET]", R4
    ),
    "a joiner joins one too soon": MergeMutant(
        "inputs", "inputs[number, SINCE] <= stable:", "inputs[number, SINCE] <= stable + 1:", R3
    ),
    "a joiner joins one too late": MergeMutant(
        "inputs", "inputs[number, SINCE] <= stable:", "inputs[number, SINCE] < stable:", beside_twin("R3", 300, insert="first")
    ),
    "a joiner has its say at once": MergeMutant("inputs", "WAITING if late and self.n_joined else JOINED", "JOINED", R3),
    "a point that stays moves": MergeMutant(
        "points",
        "if header[TARGET] > header[POINT_OUT]:\n            header[PHASE] = FREEZING",
        "if header[TARGET] >= header[POINT_OUT]:\n            header[PHASE] = FREEZING",
        R3,
    ),
    # nodes and numbers
    "a node is kept when it is over": MergeMutant(
        "r3", "    if end < header[TARGET]:\n        uncount", "    if end < header[POINT_OUT]:\n        uncount", R3
    ),
    "a bag is dropped with copies left": MergeMutant(
        "r4",
        "due = first_end(nodes[node, SHOWN], entries, header[TARGET], BEGINNING)",
        "due = first_end(nodes[node, FIELDS + 0], entries, header[TARGET], BEGINNING)",
        R4,
    ),
    "a number is used again at once": MergeMutant(
        "nodes",
        "    free[len(free) - header[N_FREED]] = node\n",
        "    free[len(free) - header[N_FREED]] = node\n    free[state[4][1]] = node\n    state[4][1] += 1\n",
        many_events,
    ),
    "nodes let go of before the kernel stopped are lost": MergeMutant(
        "node_merge",
        "        self._freed.append(self._take_freed())\n",
        "        self._freed.append(self._take_freed()[:0])\n",
        R3_WORDS,
    ),
    "the entry behind a deleted one is lost": MergeMutant(
        "nodes", "    delete_entry(table, at, shift)\n", "    table[at] = 0\n", many_events
    ),
    "a detached input's nodes stay": MergeMutant(
        "node_merge", "        let_go_of_all(self._state, self._header, self.absent)", "        pass", R3_WORDS
    ),
    "the leader who left leads": MergeMutant(
        "case_merge", "        if self.leader == number:\n            self._header[LEAD] = -1\n", "", R3
    ),
    # due times
    "an earlier end is not due earlier": MergeMutant(
        "events",
        "if start < point <= end < nodes[node, DUE] and (outcome == KNOWN or outcome == CHANGED):",
        "if False:",
        R3_WORDS,
    ),
    "only the output's end is due": MergeMutant(
        "r3",
        "            if header[TARGET] <= nodes[node, field] < due:\n                due = nodes[node, field]\n",
        "            pass\n",
        R3,
    ),
    "a node put back keeps no neighbour": MergeMutant(
        "due", "            links[head, at + 2] = node\n", "            pass\n", R3_WORDS
    ),
    "every stable scans all nodes": MergeMutant(
        "points", "    if n_buckets > high:\n        n_looked", "    if True:\n        n_looked", little_work
    ),
    # what inputs say
    "an insert given twice changes the end": MergeMutant(
        "r3",
        "takes = (has == kind) & ((told != ABSENT) | (kind == ADJUST))\n    nodes",
        "takes = (told != ABSENT) | (kind == ADJUST)\n    nodes",
        R3_WORDS,
    ),
    "an insert given twice changes the end, skimmed": MergeMutant(
        "r3", "            takes = (has == kind) & ((told", "            takes = ((told", R3
    ),
    "an adjust of nothing makes an entry": MergeMutant(
        "r3", "START] else ABSENT\n    takes = (has == kind) &", "START] else ABSENT\n    takes = (has >= 0) &", R3_WORDS
    ),
    "missing events of the leader stay": MergeMutant(
        "r3",
        "    elif end == ABSENT:\n        end = nodes[node, START]",
        "    elif end == ABSENT:\n        end = max(nodes[node, SHOWN], nodes[node, START])",
        R3,
    ),
    "the union asks those who wait": MergeMutant(
        "r3", "if inputs[other, STATE] == JOINED and told != ABSENT:", "if told != ABSENT:", beside_twin("R3", 300, missing="any")
    ),
    "the union takes the least end": MergeMutant(
        "r3",
        "inputs[other, POINT] == best and told > end",
        "inputs[other, POINT] == best and told < end",
        beside_twin("R3", missing="any"),
    ),
    "too many copies are kept": MergeMutant(
        "r4", "if start >= header[POINT_OUT] and lacking != extra:", "if start >= header[POINT_OUT] and lacking > extra:", R4
    ),
    "R1 counts positions over starts": MergeMutant(
        "r1", "                    inputs[number, POSITION] = 0\n", "                    pass\n", beside_twin("R1", bag=False)
    ),
    "R2 knows payloads of the start before": MergeMutant(
        "r2",
        "                if rows[at, _OF_ROUND] != header[ROUND]:",
        "                if rows[at, _OF_ROUND] == 0:",
        beside_twin("R2", bag=False),
    ),
    "a bag of R2 is a set": MergeMutant(
        "r2",
        "                    if rows[at, _FIELDS + number] > rows[at, _COPIES]:",
        "                    if rows[at, _COPIES] == 0:",
        beside_twin("R2", bag=True),
    ),
    # policies
    "the count of unfrozen events forgets nodes that go": MergeMutant(
        "r3", "        uncount_node(header, inputs, nodes, node, ABSENT)\n", "", beside_twin("R3", insert="unfrozen")
    ),
    "events that wait are not looked at again": MergeMutant(
        "r3",
        "                    inputs[number, ENTERED] = min(inputs[number, ENTERED], start)",
        "                    pass",
        broken_promise,
    ),
    "a lag of the last stable": MergeMutant(
        "points", "time - header[LAG] if time < FOREVER else time", "time - header[LAG]", beside_twin("R3", lag=3)
    ),
    "nodes go out as they are kept": MergeMutant(
        "points",
        "    header[DECIDED] += n_decided\n    header[PENDING] = sort_pending(nodes, header[PENDING])",
        "    header[DECIDED] += n_decided",
        cut_anew,
    ),
}


def run_plain(mutant: MergeMutant | None, run: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run trials on merges in plain Python, broken by a mutant or as they are."""
    words = (f"lmerge.cases.{mutant.module}", mutant.old, mutant.new) if mutant else ("", "", "")
    with plain_modules(*words) as plain:
        for user in (merging, merge_trials, test_merge_work):
            monkeypatch.setattr(user, "make_merge", plain.make_merge)
        run()


@pytest.mark.parametrize("what", MUTANTS)
def test_a_broken_merge_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[what]
    with pytest.raises((AssertionError, KeyError)):
        run_plain(mutant, mutant.run, monkeypatch)


@pytest.mark.parametrize("what", ["R3", "R4", "R3 words", "R4 words", "cut", "many", "late", "promise"])
def test_merges_in_plain_python_do_what_they_do_compiled(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {
        "R3": R3,
        "R4": R4,
        "R3 words": R3_WORDS,
        "R4 words": R4_WORDS,
        "cut": cut_anew,
        "many": many_events,
        "late": late_in_r1,
        "promise": broken_promise,
    }
    run_plain(None, runs[what], monkeypatch)
