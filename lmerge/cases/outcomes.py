"""Outcomes: what became of an element that an input pushed into a merge.

insert    NEW       no input had given the event before, or in a bag so many copies of it
          KNOWN     another input gave it already
          REPEATED  this input gave it already (where payload and start are a key)
adjust    CHANGED   the end that this input gives the event is another one now
          UNKNOWN   this input has no such event
both      SETTLED   it lies before the merge's stable point, and nothing of it is left to change
stable    MOVED     the merge's stable point is a later one now
any       IGNORED   a stable that moves nothing; in R0 to R2 anything of an input that has not joined yet
"""

from __future__ import annotations

NEW, KNOWN, REPEATED, SETTLED, CHANGED, UNKNOWN, MOVED, IGNORED = range(8)

#: The names of the outcomes, by code.
OUTCOMES = ("new", "known", "repeated", "settled", "changed", "unknown", "moved", "ignored")
