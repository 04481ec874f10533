"""Sums of numbers that never drift: fixed-point numbers with as many limbs as the values need.

A finite float is an integer times a power of two, so it has digits to the base 2**32. A sum keeps one int64 word, a **limb**, for
each digit between the smallest and the largest that any value has had:

    sum = limbs[0] * B**lowest + limbs[1] * B**(lowest + 1) + ...         B = 2**32; `lowest` may be negative

Adding a value adds its digits to at most three limbs, taking it back subtracts the same digits, and nothing is carried: a limb is
the sum of that digit over the values that are in. So sums are exact in any order, one that has lost all its values is 0 in
every limb, and a limb cannot overflow before `MOST` values are in (`carry` is for sums that only grow). Sums of sums, and their
differences, are sums and differences limb by limb. Reading carries, and rounds once, to the nearest float (`math.fsum`).

Squares are kept the same way, five digits a value: then `n * sum(x * x) - sum(x) ** 2` is an integer that `deviation` computes
exactly before it divides, and a variance has no cancellation. Integers have two digits, at limb 0.

NaN and infinities have no digits. They are counted (`NAN`, `PLUS`, `MINUS`) beside the limbs, so that they can leave again.

Values of ordinary data differ by less than 2**40, so two or three limbs hold their sum. In the worst case 67 hold a sum and
133 a sum of squares.
"""

from __future__ import annotations

import math

import numpy as np

from lineage.bits import leading_zeros, trailing_zeros
from lineage.growth import fitted_rows
from lineage.kernels import Number, called, inline, kernel
from lineage.memory import float_of

U64 = np.uint64

#: Values that may be in one sum before `carry` is due: a digit of a square has 34 bits, a limb 63.
MOST = 1 << 28

#: What is said of values by `measure`: the lowest and the highest bit that is set in any, as powers of two.
NO_BITS = (1 << 20, -(1 << 20))

_DIGIT = U64(0xFFFFFFFF)
_HALF = U64(32)
_FRACTION = np.int64((1 << 52) - 1)
_HIDDEN = np.int64(1 << 52)
_EXPONENT = np.int64(0x7FF)
_INFINITY = np.int64(0x7FF0000000000000)
_SIGN_BIT = np.int64(-(1 << 63))


@inline
def is_finite(bits: Number) -> Number:
    """Whether a float, given by its bits, is neither NaN nor infinite."""
    return ((bits >> np.int64(52)) & _EXPONENT) != _EXPONENT


@inline
def mantissa_of(bits: Number) -> Number:
    """Return the odd integer m with |x| = m * 2**power_of(x), for a finite float x; 0 for zero."""
    m = bits & _FRACTION
    if ((bits >> np.int64(52)) & _EXPONENT) != 0:
        m |= _HIDDEN
    return U64(m) >> trailing_zeros(U64(m | _HIDDEN))


@inline
def power_of(bits: Number) -> Number:
    """Return the exponent of two that belongs to `mantissa_of`."""
    exponent = (bits >> np.int64(52)) & _EXPONENT
    if exponent == 0:
        exponent = np.int64(1)
    return exponent - np.int64(1075) + np.int64(trailing_zeros(U64((bits & _FRACTION) | _HIDDEN)))


@inline
def add_float(limbs: Number, at: Number, stride: Number, lowest: Number, bits: Number, sign: Number) -> None:
    """Add a finite float to the sum whose limbs are `limbs[at]`, `limbs[at + stride]`, ..; sign -1 takes it back."""
    m = mantissa_of(bits)
    power = power_of(bits)
    place = at + ((power >> np.int64(5)) - lowest) * stride
    shift = U64(power & np.int64(31))
    low = (m & _DIGIT) << shift
    high = (m >> _HALF) << shift
    signed = -sign if bits < 0 else sign
    if m != U64(0):
        limbs[place] += signed * np.int64(low & _DIGIT)
        digit = np.int64(low >> _HALF) + np.int64(high & _DIGIT)
        # a zero digit may be one that has no limb
        if digit != 0:
            limbs[place + stride] += signed * digit
        digit = np.int64(high >> _HALF)
        if digit != 0:
            limbs[place + 2 * stride] += signed * digit


@inline
def add_square(limbs: Number, at: Number, stride: Number, lowest: Number, bits: Number, sign: Number) -> None:
    """Add the square of a finite float; see `add_float`."""
    m = mantissa_of(bits)
    if m != U64(0):
        power = 2 * power_of(bits)
        place = at + ((power >> np.int64(5)) - lowest) * stride
        shift = U64(power & np.int64(31))
        low, high = m & _DIGIT, m >> _HALF
        cross = U64(2) * low * high
        first = (low * low & _DIGIT) << shift
        second = ((low * low >> _HALF) + (cross & _DIGIT)) << shift
        third = ((cross >> _HALF) + (high * high & _DIGIT)) << shift
        fourth = (high * high >> _HALF) << shift
        limbs[place] += sign * np.int64(first & _DIGIT)
        digit = np.int64(first >> _HALF) + np.int64(second & _DIGIT)
        if digit != 0:
            limbs[place + stride] += sign * digit
        digit = np.int64(second >> _HALF) + np.int64(third & _DIGIT)
        if digit != 0:
            limbs[place + 2 * stride] += sign * digit
        digit = np.int64(third >> _HALF) + np.int64(fourth & _DIGIT)
        if digit != 0:
            limbs[place + 3 * stride] += sign * digit
        digit = np.int64(fourth >> _HALF)
        if digit != 0:
            limbs[place + 4 * stride] += sign * digit


@inline
def add_int(limbs: Number, at: Number, stride: Number, value: Number, sign: Number) -> None:
    """Add an integer to a sum of two limbs, the lower of which is limb 0."""
    limbs[at] += sign * (value & np.int64(0xFFFFFFFF))
    limbs[at + stride] += sign * (value >> np.int64(32))


@inline
def fits_int(limbs: Number, at: Number, stride: Number) -> Number:
    """Whether the integer sum fits in an int64."""
    high = limbs[at + stride] + (limbs[at] >> np.int64(32))
    return high >= -(np.int64(1) << np.int64(31)) and high < (np.int64(1) << np.int64(31))


@inline
def int_sum(limbs: Number, at: Number, stride: Number) -> Number:
    """Return the integer sum, if it fits."""
    return (limbs[at + stride] << np.int64(32)) + limbs[at]


@inline
def is_negative(limbs: Number, at: Number, stride: Number, n_limbs: Number) -> Number:
    """Whether a sum is below 0: the carry out of its last digit is."""
    carry = np.int64(0)
    for i in range(n_limbs):
        carry = (limbs[at + i * stride] + carry) >> np.int64(32)
    return carry < 0


@inline
def packed(top: Number, power: Number, negative: Number) -> Number:
    """Return the float nearest to top * 2**(power - 63); the highest bit of `top` is set, the lowest if any bit below was."""
    sign = _SIGN_BIT if negative else np.int64(0)
    if power > 1023:
        return float_of(sign | _INFINITY)
    shift = np.int64(11) if power >= -1022 else np.int64(11) - np.int64(1022) - power
    if shift > 63:
        return float_of(sign)
    m = np.int64(top >> U64(shift))
    rest = top & ((U64(1) << U64(shift)) - U64(1))
    half = U64(1) << U64(shift - 1)
    if rest > half or (rest == half and (m & 1) == 1):
        m += 1
    # the mantissa's own highest bit adds 1 to the exponent, and so does a carry out of it
    exponent = power + np.int64(1022) if power >= -1022 else np.int64(0)
    return float_of(sign | ((exponent << np.int64(52)) + m))


@called
def nearest_float(limbs: Number, at: Number, stride: Number, n_limbs: Number, lowest: Number) -> Number:
    """Return the float nearest to a sum, on ties the even one; infinite if the sum is beyond all floats."""
    negative = is_negative(limbs, at, stride, n_limbs)
    sign = np.int64(-1) if negative else np.int64(1)
    carry = np.int64(0)
    first, second, below = U64(0), U64(0), U64(0)
    power = np.int64(0)
    top, rest = U64(0), U64(0)
    # the highest digit that is not 0 with the two below it, and whether any other is not 0
    for i in range(n_limbs + 2):
        total = carry + (sign * limbs[at + i * stride] if i < n_limbs else np.int64(0))
        digit = U64(total) & _DIGIT
        carry = total >> np.int64(32)
        if digit != U64(0):
            zeros = leading_zeros(digit) - _HALF
            power = 32 * (lowest + i) + np.int64(31) - np.int64(zeros)
            top = (((digit << _HALF) | first) << zeros) | (second >> (_HALF - zeros))
            rest = ((second << zeros) & _DIGIT) | below
        below |= second
        second = first
        first = digit
    return 0.0 if top == U64(0) else packed(top | U64(rest != U64(0)), power, negative)


@called
def quotient(limbs: Number, at: Number, stride: Number, n_limbs: Number, lowest: Number, divisor: Number) -> Number:
    """A sum divided by a number: rounded twice, and finite wherever the quotient is."""
    total = nearest_float(limbs, at, stride, n_limbs, lowest)
    if math.isinf(total):
        return nearest_float(limbs, at, stride, n_limbs, lowest - 2) / divisor * 2.0**64
    return total / divisor


@called
def square_deviation(
    sums: Number, at: Number, n_sums: Number, lowest: Number,
    squares: Number, squares_at: Number, n_squares: Number, lowest_square: Number,
    count: Number, scratch: Number,
) -> Number:  # fmt: skip
    """The limbs of count * sum(x * x) - sum(x) ** 2, from limb 2 * lowest on, to `scratch`; returns how many.

    Scratch has room for 5 * n_sums + n_squares + 16. The limbs are not carried, but small enough to be read.
    """
    negative = is_negative(sums, at, 1, n_sums)
    sign = np.int64(-1) if negative else np.int64(1)
    n_digits = n_sums + 2
    shift = lowest_square - 2 * lowest
    n_limbs = max(2 * n_digits + 1, n_squares + 3 + shift)
    for i in range(n_limbs + n_digits):
        scratch[i] = 0
    carry = np.int64(0)
    used = 0
    for i in range(n_digits):
        total = carry + (sign * sums[at + i] if i < n_sums else np.int64(0))
        carry = total >> np.int64(32)
        scratch[n_limbs + i] = total & np.int64(0xFFFFFFFF)
        if scratch[n_limbs + i] != 0:
            used = i + 1
    for i in range(used):
        for j in range(used):
            product = U64(scratch[n_limbs + i]) * U64(scratch[n_limbs + j])
            scratch[i + j] -= np.int64(product & _DIGIT)
            scratch[i + j + 1] -= np.int64(product >> _HALF)
    carry = np.int64(0)
    for i in range(n_squares + 2):
        total = carry + (squares[squares_at + i] if i < n_squares else np.int64(0))
        carry = total >> np.int64(32)
        product = U64(total & np.int64(0xFFFFFFFF)) * U64(count)
        scratch[i + shift] += np.int64(product & _DIGIT)
        scratch[i + shift + 1] += np.int64(product >> _HALF)
    return n_limbs


@called
def variance(
    sums: Number, at: Number, n_sums: Number, lowest: Number,
    squares: Number, squares_at: Number, n_squares: Number, lowest_square: Number,
    count: Number, scratch: Number,
) -> Number:  # fmt: skip
    """The sample variance of `count` > 1 finite values; see `square_deviation`."""
    n_limbs = square_deviation(
        sums, at, n_sums, lowest, squares, squares_at, n_squares, lowest_square, count, scratch
    )  # fmt: skip
    return quotient(scratch, 0, 1, n_limbs, 2 * lowest, np.float64(count) * np.float64(count - 1))


@kernel("void(int64[::1], int64[::1])")
def measure(values: np.ndarray, bits: np.ndarray) -> None:
    """Widen bits[0] .. bits[1] to the lowest and the highest bit of the finite floats whose bits are given."""
    low, high = bits[0], bits[1]
    for i in range(len(values)):
        word = values[i]
        m = mantissa_of(word)
        if m != U64(0) and is_finite(word):
            power = power_of(word)
            low = min(low, power)
            high = max(high, power + np.int64(63) - np.int64(leading_zeros(m)))
    bits[0], bits[1] = low, high


@kernel("void(int64[:,::1], int64)")
def carry(limbs: np.ndarray, n_limbs: int) -> None:
    """Carry every sum, so that each limb but the last is a digit."""
    for cell in range(len(limbs)):
        over = np.int64(0)
        for i in range(n_limbs - 1):
            total = limbs[cell, i] + over
            limbs[cell, i] = total & np.int64(0xFFFFFFFF)
            over = total >> np.int64(32)
        limbs[cell, n_limbs - 1] += over


class Limbs:
    """The range of limbs that the sums of a column need, for all values so far.

    >>> limbs = Limbs(); limbs.cover(-52, 3), limbs.lowest, limbs.n
    (True, -2, 3)
    >>> limbs.cover(-60, 10)
    False
    """

    __slots__ = ("lowest", "n", "_power")

    def __init__(self, power: int = 1) -> None:
        #: 1 for sums of the values, 2 for sums of their squares
        self._power = power
        self.clear()

    def clear(self) -> None:
        """Forget all values."""
        self.lowest = 0
        self.n = 1

    def cover(self, low: int, high: int) -> bool:
        """Make the range cover values with these bits (see `measure`); returns whether it grew."""
        if low > high:
            return False
        first = min(self.lowest, self._power * low >> 5)
        last = max(self.lowest + self.n - 1, (self._power * (high + 1) - 1) >> 5)
        grew = (first, last - first + 1) != (self.lowest, self.n)
        self.lowest, self.n = first, last - first + 1
        return grew


class ExactSums:
    """One sum per cell, the limbs of each side by side: `words[cell, limb]`."""

    __slots__ = ("words", "limbs")

    def __init__(self, power: int = 1) -> None:
        self.limbs = Limbs(power)
        self.words = np.zeros((0, 1), np.int64)

    def hold(self, capacity: int) -> None:
        """Set the number of cells; cells that are cut off are 0."""
        self.words = fitted_rows(self.words, capacity)

    def cover(self, low: int, high: int) -> None:
        """Make room for values with these bits."""
        before = self.limbs.lowest
        if self.limbs.cover(low, high):
            words = np.zeros((len(self.words), self.limbs.n), np.int64)
            at = before - self.limbs.lowest
            words[:, at : at + self.words.shape[1]] = self.words
            self.words = words

    def clear(self, capacity: int) -> None:
        """Set every sum to 0."""
        self.limbs.clear()
        self.words = np.zeros((capacity, 1), np.int64)

    @property
    def bytes(self) -> int:
        return self.words.nbytes
