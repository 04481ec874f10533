"""How many seeds, examples and kills a test takes.

| run | seeds of one test |
|---|---|
| `./check --quick` | the first `QUICK_SEEDS`, of tests that are not slow (`tests/conftest.py` marks the others `slow`) |
| `./check` | the first few, as many as the test says |
| `./check --long` | all of them |

Seeds that failed once are kept in `tests/*/seeds.txt` and run always: their parameter is called `kept`, not `seed`.
A test with the mark `long` is for `./check --long` alone: mutants, which show what other tests notice, and the longest runs.
"""

from __future__ import annotations

import os
from pathlib import Path

#: Whether this is a long run; `./check --long` sets the variable, and so may whoever calls pytest.
LONG = bool(os.environ.get("CHECK_LONG"))
#: Seeds of one test that a quick run takes.
QUICK_SEEDS = 1


def seeds(every: range, few: int) -> range:
    """The seeds of this run: the first few, or every one in a long run."""
    return every if LONG else every[:few]


def amount(few: int, *, long: int) -> int:
    """How many examples, steps or kills this run takes."""
    return long if LONG else few


def kept_seeds(folder: str, *kind: str) -> list[tuple[int, int]]:
    """Seeds and steps in `tests/<folder>/seeds.txt` that (this kind of) trial failed once; a small one if there is none."""
    text = (Path(__file__).parents[1] / folder / "seeds.txt").read_text()
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    return [(int(words[-2]), int(words[-1])) for words in lines if words and words[:-2] == list(kind)] or [(0, 1)]
