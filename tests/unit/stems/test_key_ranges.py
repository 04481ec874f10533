"""Ranges of stored keys against the condition itself, in Python's unbounded ints."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lineage.schema import KEY_MAX, KEY_MIN
from stems.key_ranges import shifted_ranges

KEYS = st.one_of(st.integers(KEY_MIN, KEY_MAX), st.integers(-3, 3), st.sampled_from([KEY_MAX, KEY_MAX - 1, KEY_MIN, KEY_MIN + 1]))
#: a bound and its negative fit into 64 bits
BOUNDS = st.one_of(st.none(), KEYS.filter(lambda key: key > KEY_MIN))


@given(stored=KEYS, key=KEYS, low=BOUNDS, high=BOUNDS)
def test_a_band_is_exact_also_where_a_sum_leaves_64_bits(stored: int, key: int, low: int | None, high: int | None) -> None:
    ranges = shifted_ranges(np.array([key]), None, low, high)
    difference = stored - key
    expected = (low is None or low <= difference) and (high is None or difference <= high)
    assert bool(ranges.lowest[0] <= stored <= ranges.highest[0]) is expected


def test_null_matches_nothing() -> None:
    ranges = shifted_ranges(np.array([5, 5]), np.array([0, 1], np.uint8), None, 3)
    assert (ranges.lowest <= ranges.highest).tolist() == [True, False] and len(ranges) == 2
