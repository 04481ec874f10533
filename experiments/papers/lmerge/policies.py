"""When an event goes out (L V-A, location 2): words for the insert policies, and what each asks of the inputs.

Every event goes out at the latest when the merge's stable point passes its start, if the deciding input has it. A policy says
which earlier insert gives it out:

    first         any
    leader        one of the input that last moved the stable point
    highest       one of an input whose largest start no joined input exceeds
    unfrozen      one of an input with as many events not below its own stable point as any joined input
    half-frozen   none, but the stable of a joined input that has the event passes its start
    fraction:f    the one after which at least f of the joined inputs have it
    stable        none: nothing that went out is ever taken back

and of the adjust policies (location 1) which change of an event that is out goes out before it must: none (`lazy`), `every` one,
or those of the `leader`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from lineage.errors import EddyError

INSERT_WORDS = ("first", "leader", "highest", "unfrozen", "half-frozen", "fraction", "stable")
ADJUST_WORDS = ("lazy", "every", "leader")
MISSING_WORDS = ("leader", "any")


class SlowPolicy(NamedTuple):
    """The words of a merge's policy, taken apart."""

    insert: str = "first"
    #: Of `fraction:f`.
    fraction: Fraction = Fraction(1)
    adjust: str = "lazy"
    missing: str = "leader"


def policy_of(insert: str, adjust: str, missing: str) -> SlowPolicy:
    """The policy that some words mean."""
    word, _, part = insert.partition(":")
    for name, given, words in (
        ("insert", word, INSERT_WORDS),
        ("adjust", adjust, ADJUST_WORDS),
        ("missing", missing, MISSING_WORDS),
    ):
        if given not in words:
            raise EddyError(f'unknown word "{given}" for {name}', code="bad_policy", hint=f"One of {', '.join(words)}.")
    return SlowPolicy(word, Fraction(part) if part else Fraction(1), adjust, missing)
