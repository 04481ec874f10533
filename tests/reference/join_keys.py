"""Keys by which rows of two inputs are found equal: one int64 a row, equal exactly when `a = b` is TRUE.

    join_keys(a, b.type) == join_keys(b, b.type)     on the rows that have a key, of one row of a and one of b

A SteM over a column holds the keys of the column's own type; a row that probes it gives its key *in that type*. It may have
none, and then joins with nothing: a NULL, a float with a fraction among ints, an int that no float equals.

    int, timestamp, bool    the value
    float                   the order key: NaN is one value, -0.0 is 0.0
    int among floats        the order key of the float that equals it, if one does
    float among ints        the int that equals it, if one does

Numbers are compared as real numbers, like `filters/values/comparisons.py` does. Strings are codes of two dictionaries, which
whoever joins them has to translate; they are not taken here. O(rows).
"""

from __future__ import annotations

import numpy as np

from filters.values.comparisons import float_keys, int_against_float
from filters.values.vector import Array, Mask, Vector
from lineage.schema import Type


def join_keys(vector: Vector, among: Type) -> tuple[Array, Mask]:
    """The keys of the rows among those of a column of type `among`, and which rows have one; other keys are arbitrary."""
    assert Type.STRING not in (vector.type, among), "strings are joined by their codes"
    joins = ~vector.null_mask()
    values = vector.values
    if vector.type is not Type.FLOAT and among is not Type.FLOAT:
        return values.astype(np.int64), joins
    if vector.type is Type.FLOAT and among is Type.FLOAT:
        return float_keys(values), joins
    if among is Type.FLOAT:
        floats = values.astype(np.float64)
        return float_keys(floats), joins & (int_against_float(values, floats) == 0)
    with np.errstate(invalid="ignore"):
        # Not NaN, not beyond 64 bits; 2.0**63 itself is one too many.
        inside = (values >= -(2.0**63)) & (values < 2.0**63)
    ints = np.where(inside, values, 0.0).astype(np.int64)
    return ints, joins & inside & (int_against_float(ints, values) == 0)
