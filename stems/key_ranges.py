"""Ranges of stored order keys that satisfy an inequality with a probing value.

    compare_ranges    stored < <= > >= probing                  ints and floats in any mix, compared exactly
    band_ranges       low <= stored - probing <= high           one type on both sides

Each probing row gets `lowest <= stored key <= highest`, empty (lowest > highest) where nothing can match: for NULL, and where
the subtraction of ints would leave int64, which is NULL. Every such condition is one range because rounding is monotone: as
`stored` grows, so does the float `stored - probing`. NaN is above all numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.memory import bits_of, float_of
from lineage.order_keys import NAN_KEY, float_cell, order_key
from lineage.schema import KEY_MAX, KEY_MIN, Type

_MIN = np.int64(KEY_MIN)
_MAX = np.int64(KEY_MAX)
#: Floats from here on are beyond int64.
_INT_LIMIT = 2.0**63
_LOWEST_FLOAT = np.int64(-0x7FF0000000000001)
_INFINITY = np.int64(0x7FF0000000000000)

#: How the order keys of the two sides are related.
_SAME = 0
_FLOAT = 1
_INT_TO_FLOAT = 3
_FLOAT_TO_INT = 4

_OPERATORS = {"<": 0, "<=": 1, ">": 2, ">=": 3}
_NO_BYTES = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Ranges:
    """The range of each probing row, bounds inside; empty where lowest > highest."""

    lowest: np.ndarray
    highest: np.ndarray

    def __len__(self) -> int:
        return len(self.lowest)


@kernel("void(int64[::1], uint8[::1], boolean, int64, int64, int64[::1], int64[::1])")
def fill_compare_ranges(
    cells: np.ndarray, nulls: np.ndarray, no_nulls: bool, kind: int, operator: int, lowest: np.ndarray, highest: np.ndarray
) -> None:
    """The ranges of `stored operator cell`."""
    for i in range(len(cells)):
        cell = cells[i]
        # the nearest stored keys not above and not below the value; equal iff some stored key has the value
        floor = cell
        ceiling = cell
        below_all = False
        above_all = False
        if kind == _FLOAT:
            floor = ceiling = order_key(cell, True)
        elif kind == _INT_TO_FLOAT:
            value = np.float64(cell)
            floor = ceiling = order_key(bits_of(value), True)
            back = _MAX if value >= _INT_LIMIT else np.int64(value)
            if value >= _INT_LIMIT or back > cell:
                floor -= 1
            elif back < cell:
                ceiling += 1
        elif kind == _FLOAT_TO_INT:
            value = float_of(cell)
            below_all = value < -_INT_LIMIT
            # NaN is above all
            above_all = not (value < _INT_LIMIT)
            if not below_all and not above_all:
                floor = np.int64(np.floor(value))
                ceiling = floor + (np.float64(floor) != value)
        low = _MIN
        high = _MAX
        empty = not no_nulls and nulls[i] != 0
        if below_all or above_all:
            empty |= below_all == (operator <= 1)
        elif operator == 0:
            empty |= ceiling == _MIN
            high = ceiling - 1
        elif operator == 1:
            high = floor
        elif operator == 2:
            empty |= floor == _MAX
            low = floor + 1
        else:
            low = ceiling
        lowest[i] = _MAX if empty else low
        highest[i] = _MIN if empty else high


@inline
def difference_key(key: Number, value: Number) -> Number:
    """The order key of the float with this key, minus a value."""
    return order_key(bits_of(float_of(float_cell(key)) - value), True)


@inline
def first_key_above(value: Number, bound: Number, guess: Number) -> Number:
    """The first float key whose difference to a value has a key >= `bound`; one above NaN's if there is none."""
    below = _LOWEST_FLOAT - 1
    above = NAN_KEY + 1
    # nearly always within a few steps of value + bound
    if _LOWEST_FLOAT + 4 < guess < NAN_KEY - 4:
        if difference_key(guess - 4, value) < bound <= difference_key(guess + 4, value):
            below = guess - 4
            above = guess + 4
    while below + 1 < above:
        # the sum of two int64 may overflow
        middle = (below >> 1) + (above >> 1) + (below & above & 1)
        if difference_key(middle, value) >= bound:
            above = middle
        else:
            below = middle
    return above


@kernel("void(int64[::1], uint8[::1], boolean, boolean, int64, int64, boolean, int64[::1], int64[::1])")
def fill_band_ranges(
    cells: np.ndarray,
    nulls: np.ndarray,
    no_nulls: bool,
    is_float: bool,
    low: int,
    high: int,
    open_high: bool,
    lowest: np.ndarray,
    highest: np.ndarray,
) -> None:
    """The ranges of `low <= stored - cell <= high`; `low` and `high` are order keys."""
    for i in range(len(cells)):
        cell = cells[i]
        from_key = _MIN
        to_key = _MAX
        empty = not no_nulls and nulls[i] != 0
        if not is_float:
            # compared before adding: a sum of int64 that overflows has no meaning to the compiler
            over = low > 0 and cell > _MAX - low
            under = high < 0 and cell < _MIN - high
            empty |= over or under
            from_key = _MIN if (low < 0 and cell < _MIN - low) or over else cell + low
            to_key = _MAX if (high > 0 and cell > _MAX - high) or under else cell + high
        else:
            value = float_of(cell)
            if value != value:
                # NaN, above every bound
                empty |= not open_high
            elif value == -np.inf:
                # infinite for every number; NaN for -inf itself
                if not open_high:
                    empty |= high < _INFINITY
                    from_key = _LOWEST_FLOAT + 1
                    to_key = _INFINITY
            else:
                guess = order_key(bits_of(value + float_of(float_cell(low))), True)
                from_key = first_key_above(value, low, guess)
                if not open_high:
                    guess = order_key(bits_of(value + float_of(float_cell(high))), True)
                    to_key = first_key_above(value, high + 1, guess) - 1
        lowest[i] = _MAX if empty else from_key
        highest[i] = _MIN if empty else to_key


def compare_ranges(operator: str, stored: Type, probing: Type, cells: np.ndarray, nulls: np.ndarray | None) -> Ranges:
    """The ranges of `stored operator probing`, for an operator of < <= > >=."""
    if stored is probing:
        assert stored is not Type.STRING, "texts do not order by their codes"
        kind = _FLOAT if stored is Type.FLOAT else _SAME
    else:
        assert stored.numeric and probing.numeric, f"{stored} and {probing} do not compare"
        kind = _FLOAT_TO_INT if stored is Type.INT else _INT_TO_FLOAT
    ranges = Ranges(np.empty(len(cells), np.int64), np.empty(len(cells), np.int64))
    fill_compare_ranges(
        cells, _NO_BYTES if nulls is None else nulls, nulls is None, kind, _OPERATORS[operator], ranges.lowest, ranges.highest
    )
    return ranges


def band_ranges(
    type_: Type, cells: np.ndarray, nulls: np.ndarray | None, low: float | None, high: float | None
) -> Ranges:  # fmt: skip
    """The ranges of `low <= stored - probing <= high` for columns of one type; None leaves a side open."""
    is_float = type_ is Type.FLOAT
    if is_float:
        bounds = np.array([-np.inf if low is None else low, np.inf if high is None else high])
        assert not np.isnan(bounds).any(), "a bound is a number"
        keys = np.where((bounds + 0.0).view(np.int64) >= 0, (bounds + 0.0).view(np.int64), bounds.view(np.int64) ^ KEY_MAX)
        low_key, high_key = keys.tolist()
    else:
        low_key, high_key = KEY_MIN if low is None else int(low), KEY_MAX if high is None else int(high)
    ranges = Ranges(np.empty(len(cells), np.int64), np.empty(len(cells), np.int64))
    fill_band_ranges(
        cells, _NO_BYTES if nulls is None else nulls, nulls is None, is_float, low_key, high_key, high is None, ranges.lowest,
        ranges.highest,
    )  # fmt: skip
    return ranges


def shifted_ranges(keys: np.ndarray, nulls: np.ndarray | None, low: int | None, high: int | None) -> Ranges:
    """The ranges of `low <= stored key - key <= high`, exact: a sum outside 64 bits is never reached or never passed."""
    lowest, highest = np.full(len(keys), _MIN), np.full(len(keys), _MAX)
    empty = np.zeros(len(keys), np.bool_) if nulls is None else nulls != 0
    if low is not None:
        with np.errstate(over="ignore"):
            lowest = keys + np.int64(low)
        if low > 0:
            empty |= lowest < keys
        else:
            lowest[lowest > keys] = _MIN
    if high is not None:
        with np.errstate(over="ignore"):
            highest = keys + np.int64(high)
        if high < 0:
            empty |= highest > keys
        else:
            highest[highest < keys] = _MAX
    lowest[empty], highest[empty] = 1, 0
    return Ranges(lowest, highest)
