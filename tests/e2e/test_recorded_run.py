"""A run of some hundred commits gives out what it did when it was recorded (`tests/reference/recorded_run.py`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.reference.recorded_run import BAG, Recording, meaning, read, record

KEPT = read()


@pytest.fixture(scope="module")
def given_out() -> Recording:
    return record()


def differing(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


@pytest.mark.long
def test_answers_and_the_changes_of_every_commit_are_the_same_bags_with_the_same_times(given_out: Recording) -> None:
    def meanings(of: Recording) -> dict[str, Any]:
        bags = {name: digest for name, digest in of.digests.items() if name.split()[1] == BAG}
        return {name: meaning(name, text) for name, text in of.texts.items()} | bags

    assert differing(meanings(KEPT), meanings(given_out)) == []


def test_the_run_has_hundreds_of_commits_and_every_query_gives_something() -> None:
    n_changes: Counter[str] = Counter()
    commits: set[int] = set()
    for name, text in KEPT.texts.items():
        way, kind, _, query, *_ = name.split()
        if (way, kind) == ("rest", "changes"):
            found, _ = meaning(name, text)
            commits.update(found)
            n_changes[query] += sum(map(Counter.total, found.values()))
    assert len(commits) > 200
    assert {query for query, n in n_changes.items() if not n} == set() and len(n_changes) > 100
