"""Probes of a join's SteMs: their order, their cost, and the partners they found.

A SteM here is an input as the others reach it: by the index of its first equality, of its first band, or row by row. The order
in which the other inputs are added to a row is the policy's where there is a choice; it learns from what each probe found.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from eddy.joins.walk import Walker
from eddy.routing.base import Ledger, Policy
from eddy.streams.source import Source
from queries.joins import Join, KeyColumn

#: Rows of probes between two entries in the ledger, where there is nothing to choose.
LEARN_ROWS = 1 << 18
#: A guess of the cost of a probe until it is measured.
PROBE_COST_NS = 50.0


class Probes:
    """The orders of probes of one join group, and their ledger."""

    def __init__(self, join: Join, sources: list[Source], walker: Walker, policy: Policy) -> None:
        self._sources = sources
        self._walker = walker
        self.policy = policy
        self.ledger = Ledger()
        for name in stem_names(join, sources):
            self.ledger.add(name, PROBE_COST_NS)
        #: by input whose rows come, the order in which the others were added last
        self._last_order = [walker.order(first) for first in range(len(sources))]
        #: by input, rows that probed it, what they found and the time it took, not yet in the ledger
        self._unlearned = [[0, 0, 0] for _ in sources]

    def order(self, first: int) -> list[int]:
        """The order in which the other inputs are added, by the policy where there is a choice."""
        if len(self._sources) == 2:
            return [1 - first]
        bound, order = {first}, []
        while len(bound) < len(self._sources):
            ready = np.array(self._walker.ready(bound), np.int32)
            order.append(int(self.policy.route(self.ledger, ready)[0]) if len(ready) > 1 else int(ready[0]))
            bound.add(order[-1])
        self._last_order[first] = order
        return order

    def visited(self, added: int, rows_in: int, rows_out: int, ns: int) -> None:
        """Record the rows and time of a probe; tell the policy at once where it has a choice."""
        seen = self._unlearned[added]
        seen[0] += rows_in
        seen[1] += rows_out
        seen[2] += ns
        if len(self._sources) > 2 or seen[0] >= LEARN_ROWS:
            self.learn()

    def learn(self) -> None:
        """Hand the probes that were noted to the ledger and the policy."""
        ledger = self.ledger
        for k, (rows_in, rows_out, ns) in enumerate(self._unlearned):
            if rows_in:
                modules, taken, returned = np.array([k]), np.array([rows_in]), np.array([rows_out])
                ledger.measure(k, rows_in, ns)
                ledger.record(modules, taken, returned, (taken - returned) * ledger.predicates[modules], sampled=False)
                self.policy.visited(ledger, modules, taken, returned)
                self._unlearned[k] = [0, 0, 0]

    def routes(self) -> dict[str, list[str]]:
        """By the stream whose rows come, the SteMs they probed last, in order; numbered where a stream is there twice."""
        labels = input_labels(self._sources)
        return {labels[first]: [self.ledger.names[k] for k in self._last_order[first]] for first in range(len(labels))}

    def virtual_sources(self) -> list[str]:
        """The combinations that these routes make on the way to whole matches."""
        labels = input_labels(self._sources)
        found = {tuple(sorted([first, *order[:n]])) for first, order in enumerate(self._last_order) for n in range(1, len(order))}
        return [" + ".join(labels[k] for k in inputs) for inputs in sorted(found)]


def stem_names(join: Join, sources: list[Source]) -> list[str]:
    """By input, the name of the SteM through which it is probed (semantics 23)."""
    names = []
    for k, source in enumerate(sources):
        columns: tuple[KeyColumn, ...] = ()
        for edge in join.equalities:
            if k in (edge.left, edge.right) and not columns:
                columns = edge.key(k)
        for band in join.bands:
            if k in (band.left, band.right) and not columns:
                columns = (band.left_column if k == band.left else band.right_column,)
        key = ",".join(column.say(source.schema.names) for column in columns)
        names.append(f"{source.stem_kind}:{source.name}.{key}" if columns else f"{source.stem_kind}:{source.name}")
    return names


def input_labels(sources: list[Source]) -> list[str]:
    """The streams of the inputs, numbered from the second input over one stream on."""
    seen: Counter[str] = Counter()
    labels = []
    for source in sources:
        seen[source.name] += 1
        labels.append(source.name if seen[source.name] == 1 else f"{source.name}#{seen[source.name]}")
    return labels
