"""Cores: the blocks of a query with operators, as hidden queries of the shared eddy. A feed of its template reads them all.

A core holds legs on its streams as a join does (`Source.hold`): its rows are matched and kept with everybody's, but listed for
nobody. It is read after every commit, so functions of its conditions never wait for a partner (`eddy/streams/deferral.py`).
"""

from __future__ import annotations

from eddy.base.plans import QueryRun
from eddy.history.recall import recall
from eddy.joins.join_query import JoinQuery
from eddy.joins.joiner import Joiner
from eddy.query import Query
from eddy.reading.join_feed import JoinFeed
from eddy.reading.stream_feed import Feed, StreamFeed
from eddy.streams.source import Source
from windows.operators.seats import Seats


class StreamCore:
    """A block over one stream whose rows end by the clock, or never."""

    def __init__(self, query: Query, source: Source) -> None:
        self.query = query
        self.sources = [source]
        self._source = source

    def feed(self, sends_ends: bool, seats: Seats | None) -> Feed:
        """A feed of such blocks, of none yet."""
        return StreamFeed(self.query, self._source, sends_ends, seats)

    def start(self, seq: int, births: tuple[int, ...]) -> None:
        """Run from the next commit on; `births` are the first positions that count, by input."""
        source, plan = self._source, self.query.plan
        leg = source.placement.hold(plan.window, plan.condition, self.query.name)
        recall(source, leg, births[0])
        self.query.begin(leg, QueryRun(seq, None, births[0], source.modules.numbers_of(plan.condition)), 0)
        source.deferral.n_readers += 1

    def stop(self, seq: int) -> None:
        """Stop running, after commit `seq`."""
        source, leg = self._source, self.query.leg
        assert leg is not None, "a core that runs"
        source.stored.settle(seq)
        self.query.end(seq, 0)
        source.placement.let_go(leg)
        source.deferral.n_readers -= 1


class JoinCore:
    """A block over several inputs, or over one whose rows end unscheduled."""

    def __init__(self, query: JoinQuery, joiner: Joiner) -> None:
        self.query = query
        self.sources = query.sources
        self._joiner = joiner

    def feed(self, sends_ends: bool, seats: Seats | None) -> Feed:
        """A feed of such blocks, of none yet."""
        return JoinFeed(self.query, sends_ends, seats)

    def start(self, seq: int, births: tuple[int, ...]) -> None:
        """Run from the next commit on; `births` are the first positions that count, by input."""
        self.query.start(seq, births, listed=False)
        for source in self.query.sources:
            source.deferral.n_readers += 1

    def stop(self, seq: int) -> None:
        """Stop running, after commit `seq`."""
        for source in self.query.sources:
            source.deferral.n_readers -= 1
            source.stored.settle(seq)
        self.query.stop(seq, listed=False)
        self.query.release()
        self._joiner.release(self.query.group)


Core = StreamCore | JoinCore
