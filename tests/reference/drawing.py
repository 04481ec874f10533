"""The draws of `pipeline/hashing.py` in plain Python: XXH64 of eight-byte words, each hashed with the hash before as its seed."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

_MASK = 2**64 - 1
_PRIME_1, _PRIME_2, _PRIME_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_PRIME_4, _PRIME_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
#: The seed of Spark's xxhash64.
_SEED = 42


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def xxhash64(*words: int) -> int:
    """Spark's `xxhash64` of BIGINTs, as 64 bits without a sign."""
    found = _SEED
    for word in words:
        found = (found + _PRIME_5 + 8) & _MASK
        found ^= _rotated((word & _MASK) * _PRIME_2 & _MASK, 31) * _PRIME_1 & _MASK
        found = (_rotated(found, 27) * _PRIME_1 + _PRIME_4) & _MASK
        found = (found ^ found >> 33) * _PRIME_2 & _MASK
        found = (found ^ found >> 29) * _PRIME_3 & _MASK
        found ^= found >> 32
    return found


@dataclass(frozen=True)
class Draws:
    """The draws of one seed."""

    seed: int

    def bits(self, purpose: str, *keys: int) -> int:
        return xxhash64(self.seed, zlib.crc32(purpose.encode()), *keys)

    def uniform(self, purpose: str, *keys: int) -> float:
        return (self.bits(purpose, *keys) >> 11) * 2.0**-53

    def noise(self, purpose: str, *keys: int) -> float:
        bits = self.bits(purpose, *keys)
        return (sum(bits >> shift & 65535 for shift in (0, 16, 32, 48)) - 4 * 65535 / 2) / math.sqrt(4 * (65536**2 - 1) / 12)


def rounded(value: float, steps: int) -> float:
    return math.floor(value * steps + 0.5) / steps
