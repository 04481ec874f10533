"""Eight integers at a time, in kernels.

A run is `LANES` int64 that lie side by side in an array. These steps work on a whole run with vector
instructions; as loops they would cost more in checks for overlapping arrays than in work. Arrays are given with the place of the
run's first integer; nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir

from lineage.kernels import Number, inline, intrinsic

#: Integers of a run.
LANES = 8

_I64 = ir.IntType(64)
_RUN = ir.VectorType(_I64, LANES)
_FOUR = ir.VectorType(_I64, 4)
_FLOATS = ir.VectorType(ir.DoubleType(), LANES)


def _all(value: int) -> Any:
    return ir.Constant(_RUN, [ir.Constant(_I64, value)] * LANES)


class _Builder:
    """Runs of arrays as values of the generated code."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self._context, self._signature, self._args = context, signature, args
        self.builder = builder

    def _pointer(self, k: int, kind: Any) -> Any:
        """Argument k is an array, argument k + 1 a place in it."""
        array = self._context.make_array(self._signature.args[k])(self._context, self.builder, self._args[k])
        return self.builder.bitcast(self.builder.gep(array.data, [self._args[k + 1]]), kind.as_pointer())

    def load(self, k: int, kind: Any = _RUN) -> Any:
        return self.builder.load(self._pointer(k, kind), align=8)

    def store(self, k: int, run: Any, kind: Any = _RUN) -> None:
        self.builder.store(run, self._pointer(k, kind), align=8)

    def spread(self, number: Any, kind: Any) -> Any:
        """One number in every lane."""
        first = self.builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [ir.Constant(ir.IntType(32), 0)] * LANES)
        return self.builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)

    def mask(self, truths: Any) -> Any:
        """A bit for each lane."""
        return self.builder.zext(self.builder.bitcast(truths, ir.IntType(LANES)), _I64)


def _step(signature: Any, body: Callable[[_Builder, Any], Any]) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = body(_Builder(context, builder, signature, args), args)
        return context.get_dummy_value() if found is None else found

    return signature, generate


@intrinsic
def add_lanes(typing: Any, to: Any, i: Any, source: Any, j: Any) -> Any:
    return _step(numba.void(to, i, source, j), lambda b, _: b.store(0, b.builder.add(b.load(0), b.load(2))))


@intrinsic
def add_four(typing: Any, to: Any, i: Any, source: Any, j: Any) -> Any:
    """Four integers, not a run."""
    return _step(numba.void(to, i, source, j), lambda b, _: b.store(0, b.builder.add(b.load(0, _FOUR), b.load(2, _FOUR)), _FOUR))


@intrinsic
def subtract_lanes(typing: Any, to: Any, i: Any, source: Any, j: Any, less: Any, k: Any) -> Any:
    """to = source - less"""
    return _step(numba.void(to, i, source, j, less, k), lambda b, _: b.store(0, b.builder.sub(b.load(2), b.load(4))))


@intrinsic
def copy_lanes(typing: Any, to: Any, i: Any, source: Any, j: Any) -> Any:
    return _step(numba.void(to, i, source, j), lambda b, _: b.store(0, b.load(2)))


@intrinsic
def differing_lanes(typing: Any, one: Any, i: Any, other: Any, j: Any) -> Any:
    """A bit for each lane that is not the same."""
    return _step(numba.int64(one, i, other, j), lambda b, _: b.mask(b.builder.icmp_signed("!=", b.load(0), b.load(2))))


@intrinsic
def _sum_ints(typing: Any, to: Any, i: Any, high_to: Any, j: Any, low: Any, k: Any, high: Any, l: Any) -> Any:
    def body(b: _Builder, args: Any) -> None:
        build = b.builder
        low_run, high_run = b.load(4), b.load(6)
        carried = build.add(high_run, build.ashr(low_run, _all(32)))
        b.store(0, build.add(build.shl(high_run, _all(32)), low_run))
        b.store(2, build.ashr(carried, _all(32)))

    return _step(numba.void(to, i, high_to, j, low, k, high, l), body)


@intrinsic
def _round(
    typing: Any, to: Any, i: Any, low: Any, j: Any, second: Any, k: Any, third: Any, l: Any, unit: Any, half: Any
) -> Any:  # fmt: skip
    def body(b: _Builder, args: Any) -> Any:
        build = b.builder
        low_run, top = b.load(2), b.load(6)
        carried = build.ashr(build.add(low_run, _all(1 << 31)), _all(32))
        digit = build.sub(low_run, build.shl(carried, _all(32)))
        rest = build.add(build.add(build.shl(top, _all(32)), b.load(4)), carried)
        # beyond these a part would not be a float without rounding
        wide = build.or_(
            build.ashr(build.add(rest, _all(1 << 53)), _all(54)), build.ashr(build.add(top, _all(1 << 29)), _all(30))
        )
        high = build.fmul(build.sitofp(rest, _FLOATS), b.spread(args[8], _FLOATS))
        low_part = build.fmul(build.sitofp(digit, _FLOATS), b.spread(args[9], _FLOATS))
        b.store(0, build.bitcast(build.fadd(high, low_part), _RUN))
        return b.mask(build.icmp_signed("!=", wide, _all(0)))

    return _step(numba.int64(to, i, low, j, second, k, third, l, unit, half), body)


@intrinsic
def least_lanes(typing: Any, to: Any, i: Any, source: Any, j: Any) -> Any:
    """to = the smaller of to and source"""

    def body(b: _Builder, args: Any) -> None:
        one, other = b.load(0), b.load(2)
        b.store(0, b.builder.select(b.builder.icmp_signed("<", other, one), other, one))

    return _step(numba.void(to, i, source, j), body)


@intrinsic
def keep_lanes(typing: Any, to: Any, i: Any, counts: Any, j: Any) -> Any:
    """to = 0 where counts are 0"""

    def body(b: _Builder, args: Any) -> None:
        b.store(0, b.builder.select(b.builder.icmp_signed("!=", b.load(2), _all(0)), b.load(0), _all(0)))

    return _step(numba.void(to, i, counts, j), body)


@intrinsic
def count_lanes(typing: Any, to: Any, i: Any, first: Any) -> Any:
    """to = first, first + 1, .."""

    def body(b: _Builder, args: Any) -> None:
        ascending = ir.Constant(_RUN, [ir.Constant(_I64, lane) for lane in range(LANES)])
        b.store(0, b.builder.add(b.spread(args[2], _RUN), ascending))

    return _step(numba.void(to, i, first), body)


@inline
def sum_lanes(to: Number, i: Number, j: Number, limbs: Number, k: Number) -> None:
    """Sums of ints from their two limbs, which follow each other: the lower 64 bits to place i, the higher to place j."""
    _sum_ints(to, i, to, j, limbs, k, limbs, k + LANES)


@inline
def round_lanes(
    to: Number, i: Number, limbs: Number, first: Number, second: Number, third: Number, unit: Number, half: Number
) -> Number:  # fmt: skip
    """The floats nearest to sums of three limbs, of units 2**-32 * `unit`, `unit`, 2**32 * `unit`; `half` = 2**-32 * `unit`.

    Returns a bit for each lane whose sum is too large for this way.
    """
    return _round(to, i, limbs, first, limbs, second, limbs, third, unit, half)
