"""Sets of values of one attribute, as unions of half-open intervals of order keys.

Every comparison of a column with a constant is such a set, so `< <= > >= = <> BETWEEN IN IS NULL`, their negations and
any AND or OR of them on one attribute are one thing:

    spans = ((lo, hi), ...)   sorted, disjoint, not touching; lo is inside, hi is not; None is open-ended
    null                      whether NULL is in the set

Order keys (see `lineage/schema.py`) are discrete: the successor of an int key is key + 1, of a string `text + "\\0"`. So
closed and half-open bounds are one kind, `x <= c` is `x < successor(c)`, and `n` constants cut an attribute into at most
`n + 1` regions plus one for NULL: no point regions are needed.

SQL's logic: a comparison with NULL is unknown, so `complement` (the values for which NOT p is true) leaves NULL out.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from lineage.schema import KEY_MAX, KEY_MIN, Type

#: An order key: an int for every type but string.
Key = Any
Span = tuple[Key | None, Key | None]

#: The order key of NaN, above that of infinity.
NAN_KEY = 0x7FF8000000000000

_pack_float = struct.Struct("<d").pack
_unpack_int = struct.Struct("<q").unpack


def float_key(value: float) -> int:
    """The order key of a float: integers that order as DuckDB orders floats.

    >>> float_key(-1.5) < float_key(-0.0) == float_key(0.0) < float_key(1e-300) < float_key(math.inf) < float_key(math.nan)
    True
    """
    if value != value:
        return NAN_KEY
    bits: int = _unpack_int(_pack_float(value + 0.0))[0]
    return bits if bits >= 0 else bits ^ KEY_MAX


def successor(key: Key) -> Key | None:
    """The next key in the order, None above the last one."""
    if isinstance(key, str):
        return key + "\0"
    return None if key >= KEY_MAX else key + 1


class Intervals(NamedTuple):
    spans: tuple[Span, ...]
    null: bool = False

    @property
    def empty(self) -> bool:
        return not self.spans and not self.null

    @property
    def everything(self) -> bool:
        return self.null and self.spans == ((None, None),)

    def points(self) -> list[Key] | None:
        """The values, when every span holds exactly one; None otherwise."""
        if self.null or not self.spans:
            return None
        found = []
        for lo, hi in self.spans:
            if lo is None or hi != successor(lo):
                return None
            found.append(lo)
        return found

    def bounds(self) -> list[Key]:
        """The keys at which membership changes, in order."""
        return [key for span in self.spans for key in span if key is not None]

    def holds(self, key: Key | None) -> bool:
        """Whether a value (None: NULL) is in the set. Slow; for traces and tests."""
        if key is None:
            return self.null
        return any((lo is None or lo <= key) and (hi is None or key < hi) for lo, hi in self.spans)

    def intersect(self, other: Intervals) -> Intervals:
        spans = []
        for lo1, hi1 in self.spans:
            for lo2, hi2 in other.spans:
                lo = lo1 if lo2 is None or (lo1 is not None and lo1 >= lo2) else lo2
                hi = hi1 if hi2 is None or (hi1 is not None and hi1 <= hi2) else hi2
                if lo is None or hi is None or lo < hi:
                    spans.append((lo, hi))
        return Intervals(_normal(spans), self.null and other.null)

    def union(self, other: Intervals) -> Intervals:
        return Intervals(_normal([*self.spans, *other.spans]), self.null or other.null)

    def __str__(self) -> str:
        parts = [f"[{'' if lo is None else repr(lo)}, {'' if hi is None else repr(hi)})" for lo, hi in self.spans]
        return " u ".join(parts + (["NULL"] if self.null else [])) or "nothing"


NOTHING = Intervals(())
NOT_NULL = Intervals(((None, None),))
ONLY_NULL = Intervals((), True)


def _normal(spans: list[Span]) -> tuple[Span, ...]:
    """Sorted, disjoint and merged where they touch."""
    ordered = sorted(spans, key=lambda span: (span[0] is not None, span[0] if span[0] is not None else 0))
    merged: list[Span] = []
    for lo, hi in ordered:
        if merged:
            last_lo, last_hi = merged[-1]
            if last_hi is None:
                break
            if lo is None or lo <= last_hi:
                merged[-1] = (last_lo, None if hi is None else max(hi, last_hi))
                continue
        merged.append((lo, hi))
    return tuple(merged)


def union_of(sets: Sequence[Intervals]) -> Intervals:
    """The values in any of some sets; a sort, however many they are."""
    return Intervals(_normal([span for one in sets for span in one.spans]), any(one.null for one in sets))


def texts_beginning(prefix: str) -> Intervals:
    """The texts that begin with one.

    >>> str(texts_beginning("ab")), str(texts_beginning(""))
    ("['ab', 'ac')", '[, )')
    """
    kept = prefix.rstrip(chr(sys.maxunicode))
    if not prefix:
        return NOT_NULL
    if not kept:
        return Intervals(((prefix, None),))
    following = ord(kept[-1]) + 1
    # no text holds a surrogate
    after = kept[:-1] + chr(0xE000 if following == 0xD800 else following)
    return Intervals(((prefix, after),))


def _below(key: Key | None) -> Intervals:
    """All values under a key (None: all values)."""
    if key is None:
        return NOT_NULL
    return NOTHING if key == KEY_MIN or key == "" else Intervals(((None, key),))


def _from(key: Key | None) -> Intervals:
    """All values from a key on (None: no value)."""
    if key is None:
        return NOTHING
    return NOT_NULL if key == KEY_MIN or key == "" else Intervals(((key, None),))


def compare(type_: Type, op: str, constant: Any) -> Intervals:
    """The values `x` of a column of that type for which `x op constant` is true.

    Ints and floats compare exactly, as numbers: `compare(Type.INT, ">", 2.5)` starts at 3.

    >>> str(compare(Type.INT, ">", 2.5)), str(compare(Type.INT, "<>", 7))
    ('[3, )', '[, 7) u [8, )')
    """
    if constant is None:
        return NOTHING
    below, not_above = _edges(type_, constant)
    match op:
        case "<":
            return _below(below)
        case "<=":
            return _below(not_above)
        case ">":
            return _from(not_above)
        case ">=":
            return _from(below)
        case "=":
            return _from(below).intersect(_below(not_above))
        case "<>":
            return _below(below).union(_from(not_above))
    raise AssertionError(f"not a comparison: {op}")


def _edges(type_: Type, constant: Any) -> tuple[Key | None, Key | None]:
    """`(a, b)`: the first key not below the constant, and the first key above it; None when there is none."""
    if type_ is Type.FLOAT:
        if type(constant) is float and constant == constant:
            key = float_key(constant)
            return key, key + 1
        nearest = _nearest_float(constant)
        key = float_key(nearest)
        if nearest == constant or nearest != nearest:
            return key, (None if key == NAN_KEY else key + 1)
        return (key, key) if nearest > constant else (key + 1, key + 1)
    if type_ is Type.STRING:
        return constant, constant + "\0"
    if isinstance(constant, float):
        if constant != constant or constant == math.inf:
            return None, None
        if constant == -math.inf:
            return KEY_MIN, KEY_MIN
        low = math.ceil(constant)
        high = math.floor(constant) + 1
    else:
        low, high = int(constant), int(constant) + 1
    return _clamp(low), _clamp(high)


def _nearest_float(constant: Any) -> float:
    try:
        return float(constant)
    except OverflowError:
        return math.inf if constant > 0 else -math.inf


def _clamp(key: int) -> Key | None:
    return KEY_MIN if key < KEY_MIN else None if key > KEY_MAX else key
