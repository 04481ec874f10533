"""Arrays end to end against lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lineage.ragged import Ragged


@pytest.mark.parametrize("spare", [0, 2])
@pytest.mark.parametrize("seed", range(5))
def test_inserts_and_deletes_give_what_lists_give(seed: int, spare: int) -> None:
    rng = random.Random(seed)
    ragged, lists = Ragged(np.int64, fill=-7, spare=spare), []
    for _ in range(600):
        k = rng.randrange(len(lists)) if lists else 0
        what = rng.random()
        if not lists or (what < 0.02 and len(lists) < 6):
            values = [rng.randrange(100) for _ in range(rng.randrange(12))]
            ragged.append(np.array(values, np.int64))
            lists.append(values)
        elif what < 0.65:
            at, value = rng.randint(0, len(lists[k])), rng.randrange(100)
            ragged.insert(k, at, value)
            lists[k].insert(at, value)
        elif what < 0.9 and lists[k]:
            at = rng.randrange(len(lists[k]))
            ragged.delete(k, at)
            del lists[k][at]
        elif what > 0.97:
            lists[k] = [rng.randrange(100) for _ in range(rng.randrange(40))]
            ragged.set(k, np.array(lists[k], np.int64))
        ragged.check()
        assert [ragged.view(j).tolist() for j in range(len(ragged))] == lists


def test_an_array_that_grows_alone_is_laid_out_seldom() -> None:
    ragged = Ragged(np.int32)
    ragged.append(np.zeros(0, np.int32))
    ragged.append(np.arange(5, dtype=np.int32))
    layouts = set()
    for i in range(10_000):
        ragged.insert(0, i, i)
        layouts.add(id(ragged.at))
    assert ragged.view(0).tolist() == list(range(10_000)) and ragged.view(1).tolist() == [0, 1, 2, 3, 4]
    assert len(ragged.data) < 5 * 10_000 and len(layouts) <= 16, "room doubles"
