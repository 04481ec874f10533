"""The common part of operators: the local clock, due rows, and the signs of messages sent.

    clock            the largest time it has processed (U 2.3.2): nothing is ended by a clock that its inputs have not reached
    a row that comes begins at max(start, clock); one with end <= clock is over and dropped, and so is an end of an unknown row
    result that ends at its scheduled end   travels iff the operator sends ends and no flag says it already
    result that ends before it              always travels, as premature

An operator has one queue for all its inputs (N 3.2). Inputs may lag each other by their service times; a lagging row takes effect
when it is processed (semantics 2), so what is alive at the clock is exact whatever the order was.

A subclass handles rows that begin (`_begin`) and rows that end (`_end`). Due rows, however they were found, are
ended one by one in order of their ends, the operator's clock standing at each.
"""

from __future__ import annotations

import heapq
import itertools
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from experiments.papers.buffers import Element, RowBuffer
from experiments.papers.buffers.row_buffer import due_order
from experiments.papers.machine.counters import OperatorCounters
from experiments.papers.machine.messages import MessageKind, QueueMessage
from experiments.papers.machine.node import PlanNode, RuleNode
from experiments.papers.machine.strategy import Maintenance, Mode, Trigger

#: Before every time.
NEVER = -(2**62)

#: order, a number that breaks ties, port, the state it is kept in, the row
_Due = tuple[tuple[int, int, int], int, int, RowBuffer, Element]


class QueuedOperator(RuleNode):
    """One operator of one running plan."""

    mode: Mode
    maintenance: Maintenance
    #: whether it must know of every end before the next row, however seldom others look
    looks_always: ClassVar[bool] = False

    def __init__(self, *inputs: PlanNode) -> None:
        super().__init__(*inputs)
        self.counters = OperatorCounters()
        #: all buffers it owns
        self.states: Sequence[RowBuffer] = ()
        #: the rows it has sent and not ended, where it keeps them: a consumer may read them here
        self.output_state: RowBuffer | None = None
        self.clock = NEVER
        self._out: list[QueueMessage] = []
        self._flagged = False
        #: when what is processed now was due outside, and whether it is a row that begins or one that ends
        self._due_us = NEVER
        self._sign = "+"
        self._number = 0
        #: the end of the join message that is processed now, and the one for which a join message has been sent
        self._message_taken: int | None = None
        self._message_sent: int | None = None
        #: due rows being ended up to a time; None between
        self._pending: list[_Due] | None = None
        self._ties = itertools.count()
        self._upto = NEVER
        self._looked = self._cleaned = NEVER

    def open(self, mode: Mode, maintenance: Maintenance) -> None:
        """Make the states, once the plan has set the switches."""
        self.mode = mode
        self.maintenance = maintenance
        self._open_states()

    def start(self, time: int) -> list[QueueMessage]:
        """Return the messages sent before any input."""
        return []

    @property
    def touched(self) -> int:
        """Rows looked at to maintain its states."""
        return sum(state.touched for state in self.states)

    @property
    def n_rows(self) -> int:
        """Rows it keeps, over all its states."""
        return sum(len(state) for state in self.states)

    def receive(self, message: QueueMessage, port: int) -> list[QueueMessage]:
        """Process one message; return the messages sent, in order of time."""
        self._out = []
        self._flagged = message.flag
        self._message_taken = self._message_sent = None
        time = max(self.clock, message.time)
        if message.flag or (self.mode.trigger is not Trigger.MESSAGE and self._is_time_to_look(message, time)):
            self._looked = time
            self._end_due(time)
        self.clock = time
        self._due_us = message.due
        self._dispatch(message, port)
        if message.flag and (not self._out or self._out[-1].time < time):
            self._send(QueueMessage(MessageKind.NULL, time, message.due))
        return self._out

    def _is_time_to_look(self, message: QueueMessage, time: int) -> bool:
        """Whether due rows are looked for now; a message of nothing but the time asks for it, and a row that comes again."""
        if time - self._looked >= self.maintenance.eager_interval_us or self.looks_always or message.kind is MessageKind.NULL:
            return True
        element = message.element
        return element is not None and any(state.holds(element.id) for _, state in self._eager())

    def _dispatch(self, message: QueueMessage, port: int) -> None:
        if message.kind is MessageKind.POSITIVE:
            assert message.element is not None
            self._sign = "+"
            if message.element.end <= self.clock:
                self.counters.dropped += 1
            else:
                self._begin(message.element.starting(self.clock), port)
        elif message.kind is MessageKind.JOIN_MESSAGE:
            self._sign = "-"
            self._message_taken = message.end
            self._end_all(message.end, port)
        elif message.kind is not MessageKind.NULL:
            assert message.element is not None
            self._sign = "-"
            self._end_named(message.element, port)

    # what a subclass is made of

    def _open_states(self) -> None:
        """Make the states; stateless operators have none."""

    @abstractmethod
    def _begin(self, element: Element, port: int) -> None:
        """A row has begun, at the clock."""

    @abstractmethod
    def _end(self, element: Element, port: int) -> None:
        """A row has ended, at the clock; it has left its state."""

    def _state(self, port: int) -> RowBuffer:
        """Where a told end finds its row."""
        return self.states[port]

    def _eager(self) -> Sequence[tuple[int, RowBuffer]]:
        """The states that must react to ends at once, with their ports."""
        return list(enumerate(self.states))

    def _lazy(self) -> Sequence[tuple[int, RowBuffer]]:
        """The states whose due rows may stay for a while, unseen, with their ports."""
        return ()

    def _discard(self, element: Element, port: int) -> None:
        """A row has left a lazy state; nothing follows from it."""

    # ends

    def _end_named(self, element: Element, port: int) -> None:
        """An end that names its row."""
        stored = self._state(port).remove(element)
        if stored is None:
            self.counters.dropped += 1
        else:
            self._end(stored, port)

    def _end_all(self, end: int, port: int) -> None:
        """A join message: all rows of that input with that end."""
        state = self._state(port)
        for element in state.take_ending(end):
            state.forget(element)
            self._end(element, port)

    def _end_due(self, upto: int) -> None:
        """End the due rows, each at its own time, including rows that begin because another one ends."""
        self._sign = "-"
        self._upto = upto
        self._pending = []
        for port, state in self._eager():
            for element in state.take_due(upto):
                self._push_due(element, port, state)
        while self._pending:
            *_, port, state, element = heapq.heappop(self._pending)
            self.clock = max(self.clock, element.end)
            self._due_us = element.end
            state.forget(element)
            self._end(element, port)
        self._pending = None
        self._clean(upto)

    def _clean(self, upto: int) -> None:
        """Let go of the due rows of lazy states, if it is time to; a flag will not come again for them."""
        if self.mode.trigger is Trigger.MESSAGE or upto - self._cleaned >= self.maintenance.lazy_interval_us:
            self._cleaned = upto
            for port, state in self._lazy():
                for element in state.take_due(upto):
                    state.forget(element)
                    self._discard(element, port)

    def _push_due(self, element: Element, port: int, state: RowBuffer) -> None:
        assert self._pending is not None
        heapq.heappush(self._pending, (due_order(element), next(self._ties), port, state, element))

    def _keep(self, state: RowBuffer, element: Element, port: int) -> None:
        """Keep a row in an eager state, also when its end is due in the present look for due rows."""
        if self._pending is not None and element.end <= self._upto:
            state.admit_due(element)
            self._push_due(element, port, state)
        else:
            state.insert(element)

    # what goes out

    def _send(self, message: QueueMessage) -> None:
        message.flag = self._flagged
        self.counters.emitted[message.kind] += 1
        if self._sign == "-" and message.kind is not MessageKind.NULL:
            self.counters.emitted_of_ends += 1
        self._out.append(message)

    def _emit(self, element: Element) -> Element:
        """A result begins; gives it with its number."""
        assert element.start < element.end, element
        self._number += 1
        numbered = element._replace(number=self._number)
        self.counters.cases[f"{self._sign}->+"] += 1
        self._send(QueueMessage(MessageKind.POSITIVE, element.start, self._due_us, numbered))
        return numbered

    def _emit_end(self, element: Element) -> None:
        """A result ends, at the clock."""
        self.counters.cases[f"{self._sign}->-"] += 1
        if element.end > self.clock:
            self._send(QueueMessage(MessageKind.PREMATURE, self.clock, self._due_us, element))
        elif self.mode.sends_ends and not self._flagged:
            if self._message_taken == element.end:
                self._emit_message(element.end)
            else:
                self._send(QueueMessage(MessageKind.NEGATIVE, self.clock, self._due_us, element))

    def _emit_message(self, end: int) -> None:
        """All results with this end are over: once for everything that is processed now."""
        if self.mode.sends_ends and not self._flagged and self._message_sent != end:
            self._message_sent = end
            self._send(QueueMessage(MessageKind.JOIN_MESSAGE, self.clock, self._due_us, end=end))

    def _count_probe(self, n_rows: int) -> None:
        looked_at = max(1, n_rows)
        self.counters.probes += looked_at
        if self._sign == "-":
            self.counters.probes_of_ends += looked_at


class StatelessOperator(QueuedOperator):
    """An operator that sends each end on as it sent the row."""

    def _end_named(self, element: Element, port: int) -> None:
        self._end(element, port)

    def _end_all(self, end: int, port: int) -> None:
        # also where a row of another input has this end: it is due as well
        self._emit_message(end)
