"""Order keys in kernels: the integers by which cells of one column compare (see `lineage/schema.py`)."""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline

#: The order key of NaN, above every other float's.
NAN_KEY = np.int64(0x7FF8000000000000)

_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITY = np.int64(0x7FF0000000000000)
_NEGATIVE_ZERO = np.int64(-0x8000000000000000)


@inline
def order_key(cell: Number, is_float: bool) -> Number:
    """The order key of a cell; equal to `filters.values.intervals.float_key` for floats. Without branches, for speed."""
    if not is_float:
        return cell
    folded = (cell ^ ((cell >> np.int64(63)) & _SIGN)) + np.int64(cell == _NEGATIVE_ZERO)
    return NAN_KEY if (cell & _SIGN) > _INFINITY else folded
