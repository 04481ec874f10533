"""Chance as a function: SQL expressions of Spark that draw from a seed, a purpose and keys, and from nothing else.

Two expressions with the same seed, purpose and keys are equal wherever and in whatever order they are computed, so a row
that is made of them is the same under any number of partitions. Different purposes are independent of each other.

`tests/reference/drawing.py` is the twin in plain Python.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

#: 2 ** -53: a 53-bit number times this is a double in [0, 1), exactly.
_ULP = "1.1102230246251565E-16D"
#: Mean and standard deviation of the sum of four 16-bit numbers.
NOISE_MEAN = 131070.0
NOISE_DEVIATION = 37837.22771145843


@dataclass(frozen=True, slots=True)
class Chance:
    """The draws of one seed."""

    seed: int

    def bits(self, purpose: str, *keys: str) -> str:
        """64 bits, as a BIGINT; keys are BIGINT expressions.

        >>> Chance(7).bits("lost", "sensor", "epoch")
        'xxhash64(7L, 1078297770L, sensor, epoch)'
        """
        return f"xxhash64({', '.join([f'{self.seed}L', f'{zlib.crc32(purpose.encode())}L', *keys])})"

    def uniform(self, purpose: str, *keys: str) -> str:
        """A double in [0, 1)."""
        return f"(shiftrightunsigned({self.bits(purpose, *keys)}, 11) * {_ULP})"

    def noise(self, purpose: str, *keys: str) -> str:
        """A double with mean 0 and deviation 1, bell-shaped and never beyond 3.5: the sum of four draws."""
        bits = self.bits(purpose, *keys)
        lanes = " + ".join(f"(shiftrightunsigned({bits}, {shift}) & 65535L)" for shift in (0, 16, 32, 48))
        return f"(({lanes} - {NOISE_MEAN}D) / {NOISE_DEVIATION}D)"


def rounded(value: str, steps: int) -> str:
    """The nearest of `steps` values a unit, as an instrument would show it.

    Plain arithmetic: it hides the last bits, in which the sines of two machines may differ.
    """
    return f"(floor(({value}) * {steps}.0D + 0.5D) / {steps}.0D)"
