"""Expiry strategies as two switches: who finds a scheduled end, and whether it travels.

    word               who finds it                 what travels                  rows kept in
    input              the next message             nothing                       list
    negative           the source                   a negative for each row       hash
    negative+message   the source                   join messages                 calendar
    piggyback          the source                   messages, flags in their place calendar
    direct             the operator's clock         nothing                       list
    update-pattern     the operator's clock         nothing                       fifo, calendar or hash, by pattern

Premature ends travel under every word. The switches are set operator by operator: under `update-pattern` with frequent
premature ends everything above a negation gets all ends as negatives, and what is below works by the clock (U 5.4.3).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from experiments.papers.buffers import CalendarBuffer, FifoBuffer, HashBuffer, Key, ListBuffer, RowBuffer
from lineage.errors import EddyError, did_you_mean
from windows import patterns

EXPIRY = ("input", "negative", "negative+message", "piggyback", "direct", "update-pattern")


class Trigger(enum.Enum):
    """The event that makes an operator look for due rows."""

    #: every message that reaches it
    INPUT = "input"
    #: only a message that names the row, or a flag
    MESSAGE = "message"
    #: every message, and its clock when none has come for a while
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Maintenance:
    """How states are kept (U 5.4.2, 6.1). Times are in microseconds of virtual time."""

    #: an operator without messages for so long ends its due rows by its own clock: the largest delay under `direct`
    idle_interval_us: int = 1_000_000
    #: states that must react to ends look for them this often while messages come; 0: with every message
    eager_interval_us: int = 0
    #: states that need not react to ends are cleaned this often; 0: with every message
    lazy_interval_us: int = 0
    #: partitions of a calendar, at least
    partitions: int = 10
    #: whether their number follows the number of rows
    adapts: bool = True
    #: whether most results of a negation end prematurely
    frequent_premature: bool = False
    #: whether a join reads the output state of its input where there is one
    shares: bool = True

    def __post_init__(self) -> None:
        if self.idle_interval_us < 1 or min(self.eager_interval_us, self.lazy_interval_us) < 0 or self.partitions < 1:
            raise EddyError(
                "maintenance parameters are out of range", code="bad_option", hint="intervals and partitions are positive"
            )


@dataclass(frozen=True, slots=True)
class Mode:
    """The switches of one operator."""

    trigger: Trigger
    #: whether the scheduled ends of its results travel
    sends_ends: bool
    #: whether those of a join travel as join messages
    messages: bool
    #: makes the buffer for rows of a pattern, found by a key; `lazy`: cleaned now and then
    make_buffer: Callable[[str, Key, bool], RowBuffer]
    #: whether structures are chosen by what the input is like
    by_pattern: bool = False


def check_word(expiry: str) -> None:
    if expiry not in EXPIRY:
        raise EddyError(f'there is no expiry strategy "{expiry}"', code="bad_option", hint=did_you_mean(expiry, list(EXPIRY)))


def mode_of(expiry: str, maintenance: Maintenance) -> Mode:
    """The switches that a word sets for all operators of a plan alike."""
    if expiry == "update-pattern":
        return clock_mode(maintenance, sends_ends=False)
    if expiry in ("input", "direct"):
        trigger = Trigger.INPUT if expiry == "input" else Trigger.CLOCK
        return Mode(trigger, False, False, lambda pattern, key, lazy: ListBuffer(key))
    if expiry == "negative":
        return negative_mode()
    return Mode(Trigger.MESSAGE, True, True, lambda pattern, key, lazy: _calendar(key, maintenance, lazy))


def negative_mode() -> Mode:
    """All ends come and go as negatives."""
    return Mode(Trigger.MESSAGE, True, False, lambda pattern, key, lazy: HashBuffer(key))


def clock_mode(maintenance: Maintenance, *, sends_ends: bool) -> Mode:
    """The operator's clock over a structure for the pattern of its input."""

    def make(pattern: str, key: Key, lazy: bool) -> RowBuffer:
        if pattern in (patterns.MONOTONIC, patterns.WEAKEST):
            return FifoBuffer(key)
        return _calendar(key, maintenance, lazy)

    return Mode(Trigger.CLOCK, sends_ends, False, make, by_pattern=True)


def _calendar(key: Key, maintenance: Maintenance, lazy: bool) -> RowBuffer:
    return CalendarBuffer(key, partitions=maintenance.partitions, adapts=maintenance.adapts, by_end=not lazy)
