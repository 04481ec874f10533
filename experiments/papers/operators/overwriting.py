"""Aggregates in which the latest result of a group stands for it (G 3.2, model 2, Figure 3b; N Algorithm 3 as printed).

A new result overrides the one before: nothing is taken back until the group ends, which N's NULL result says and here an end
does. Whoever reads it must know the grouping, so only the recipient may stand above, with an array of groups.
"""

from __future__ import annotations

from experiments.papers.buffers import Element
from experiments.papers.operators.group_by import QueuedGroupBy


class OverwritingAggregate(QueuedGroupBy):
    """Group-by whose results override each other."""

    kind = "overwriting aggregate"

    def _take_back(self, old: Element, *, last: bool) -> None:
        if last and self.columns:
            self._emit_end(old)
