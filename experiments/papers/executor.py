"""The second executor: a plan whose operators have queues, local clocks and service times, in virtual time.

    now          virtual time; sources deliver a row at its time and, where ends travel, its end at its end
    a turn       an operator takes up to `packet` messages, is busy for their service times, and then sends what they gave
    processors   how many operators may be busy at once, in turn; None: each has its own
    patience     how often an operator is passed over whose queue holds only ends that a later flag could speak for

Answers between turns may be late or wrong, as the papers describe; `settle` works off everything at the present time and makes
the answer exact. With service times of zero every event is worked off at its own instant. Nothing here depends on wall clocks
or chance: the same feed and options give the same run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.papers.buffers import Values
from experiments.papers.compression import compress
from experiments.papers.machine.counters import Delays, Occupancy
from experiments.papers.machine.messages import MessageKind, QueueMessage
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator
from experiments.papers.machine.queue import Queue
from experiments.papers.machine.strategy import Maintenance, Trigger, check_word
from experiments.papers.machine.timed_source import Retraction, TimedRow, TimedSource
from experiments.papers.operators.recipient import QueuedRecipient
from experiments.papers.plan import check_plan, name_nodes
from experiments.papers.switches import set_switches
from lineage.errors import EddyError


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """How long a message keeps an operator busy, in microseconds of virtual time."""

    message_us: int = 0
    #: for each row of another state that is looked at for a match
    probe_us: int = 0
    #: for each message sent
    sent_us: int = 0


@dataclass(slots=True)
class _Turn:
    """An operator at work."""

    ends_us: int
    sent: list[QueueMessage]
    effects: list[int]


class Pipeline:
    """A running plan under one expiry strategy."""

    def __init__(
        self,
        root: PlanNode,
        expiry: str = "negative",
        *,
        service: ServiceTimes | Mapping[str, ServiceTimes] | None = None,
        maintenance: Maintenance | None = None,
        packet: int = 1,
        processors: int | None = None,
        patience: int = 1000,
        compresses: bool = False,
        start_us: int = 0,
    ) -> None:
        check_word(expiry)
        if packet < 1 or patience < 0 or (processors is not None and processors < 1):
            raise EddyError("packet and processors are at least 1, patience at least 0", code="bad_option")
        self.now_us = start_us
        self.recipient = root if isinstance(root, QueuedRecipient) else QueuedRecipient(root)
        self.maintenance = maintenance or Maintenance()
        self.delays = Delays()
        self.occupancy = Occupancy()
        nodes = list(self.recipient.walk())
        name_nodes(nodes)
        check_plan(self.recipient, expiry, compresses)
        set_switches(self.recipient, expiry, self.maintenance)
        self.sources = [node for node in nodes if isinstance(node, TimedSource)]
        self._operators = [node for node in nodes if isinstance(node, QueuedOperator)]
        self._queues = {op.name: Queue(piggybacks=expiry == "piggyback") for op in self._operators}
        self._services = _services(self._operators, service)
        self._readers = _readers(self._operators)
        self._turns: dict[str, _Turn] = {}
        #: when an operator was last at work
        self._worked_us = {op.name: start_us for op in self._operators}
        self._packet = packet
        self._processors = len(self._operators) if processors is None else processors
        self._next = 0
        self._patience = patience
        #: turns of others since an operator had something to do
        self._passed_over = {op.name: 0 for op in self._operators}
        self._compresses = compresses
        for op in self._operators:
            self._deliver(op, op.start(start_us))

    # feeding and reading

    def feed(self, source: TimedSource, rows: Iterable[TimedRow | Retraction]) -> None:
        """Rows that a source will deliver, in order of time, none before now."""
        rows = list(rows)
        if rows and rows[0].time_us < self.now_us:
            raise EddyError("a row is older than the pipeline's time", code="bad_rows", hint=f"the time is {self.now_us}")
        source.feed(rows)

    def run(self, until_us: int) -> None:
        """Let virtual time pass up to then: everything that begins by then is done or under way."""
        while (at := self._next_time()) is not None and at <= until_us:
            self.now_us = max(self.now_us, at)
            self._from_sources()
            self._finish_turns()
            self._tick()
            self._begin_turns()
        self.now_us = max(self.now_us, until_us)

    def settle(self) -> None:
        """Work off all that waits, and every end up to now, at once: the answer is exact at the present time."""
        self._finish_turns(all_of_them=True)
        for op in self._operators:
            sent: list[QueueMessage] = []
            queue = self._queues[op.name]
            while len(queue):
                sent += op.receive(*self._take(op))
            if op.mode.trigger is not Trigger.MESSAGE:
                sent += op.receive(QueueMessage(MessageKind.NULL, self.now_us, self.now_us), 0)
            self._deliver(op, sent)
        self.recipient.effects.clear()

    @property
    def answer(self) -> list[Values]:
        """The recipient's rows at this moment, as a bag."""
        return self.recipient.answer

    @property
    def operators(self) -> dict[str, QueuedOperator]:
        """Every operator by its name, inputs first; its `counters` count its work."""
        return {op.name: op for op in self._operators}

    def waiting(self, operator: str) -> int:
        """Messages in an operator's queue."""
        return len(self._queues[operator])

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nobody is at work."""
        return not self._turns and not any(len(queue) for queue in self._queues.values())

    def check(self) -> None:
        """All that must hold between turns."""
        for op in self._operators:
            for state in op.states:
                state.check()
        assert self.occupancy.waiting == sum(len(queue) for queue in self._queues.values())

    # virtual time

    def _next_time(self) -> int | None:
        times = [time for source in self.sources if (time := source.next_time()) is not None]
        times += [turn.ends_us for turn in self._turns.values()]
        if self._free_operator() is not None:
            times.append(self.now_us)
        times += [self._tick_time(op) for op in self._operators if self._may_tick(op)]
        return min(times, default=None)

    def _from_sources(self) -> None:
        """Scheduled ends of the instant first, then arrivals, sources in the order of the plan."""
        for source in self.sources:
            self._deliver(source, source.end_due(self.now_us))
        for source in self.sources:
            self._deliver(source, source.take(self.now_us))

    def _begin_turns(self) -> None:
        while (place := self._free_operator()) is not None:
            self._next = (place + 1) % len(self._operators)
            op = self._operators[place]
            for other in self._operators:
                self._passed_over[other.name] += self._is_ready(other.name)
            self._passed_over[op.name] = 0
            sent: list[QueueMessage] = []
            service_us = 0
            for _ in range(min(self._packet, len(self._queues[op.name]))):
                given, took_us = self._serve(op)
                sent += given
                service_us += took_us
            op.counters.busy_us += service_us
            effects = list(self.recipient.effects) if op is self.recipient else []
            self.recipient.effects.clear()
            if self._compresses and not op.mode.sends_ends:
                sent = compress(sent)
            self._turns[op.name] = _Turn(self.now_us + service_us, sent, effects)

    def _serve(self, op: QueuedOperator) -> tuple[list[QueueMessage], int]:
        """Process one message of an operator; return the messages it sends and the service time."""
        probes = op.counters.probes
        sent = op.receive(*self._take(op))
        service = self._services[op.name]
        took_us = service.message_us + service.probe_us * (op.counters.probes - probes) + service.sent_us * len(sent)
        return sent, took_us

    def _free_operator(self) -> int | None:
        """The next operator, in turn, that has something to do and a processor to do it on.

        One whose queue could wait for a flag lets the others go first, but only so often: ends are worked off when there
        is a lack of rows (N 7), and at the latest then.
        """
        if len(self._turns) >= self._processors:
            return None
        n_operators = len(self._operators)
        places = [(self._next + step) % n_operators for step in range(n_operators)]
        ready = [place for place in places if self._is_ready(self._operators[place].name)]
        pressing = [place for place in ready if self._is_pressing(self._operators[place].name)]
        return next(iter(pressing or ready), None)

    def _is_ready(self, name: str) -> bool:
        return bool(len(self._queues[name])) and name not in self._turns

    def _is_pressing(self, name: str) -> bool:
        return not self._queues[name].can_wait or self._passed_over[name] >= self._patience

    def _finish_turns(self, all_of_them: bool = False) -> None:
        for op in self._operators:
            turn = self._turns.get(op.name)
            if turn is None or (turn.ends_us > self.now_us and not all_of_them):
                continue
            del self._turns[op.name]
            self._worked_us[op.name] = self.now_us
            for due_us in turn.effects:
                self.delays.add(turn.ends_us - due_us)
            self._deliver(op, turn.sent)

    # queues

    def _deliver(self, sender: PlanNode, sent: Iterable[QueueMessage]) -> None:
        readers = self._readers.get(id(sender), [])
        for message in sent:
            for k, (reader, port) in enumerate(readers):
                queue = self._queues[reader.name]
                before = len(queue)
                # a reader's flag is its own
                queue.put(message if k == 0 else _copied(message), port)
                self.occupancy.change(len(queue) - before, self.now_us)
                reader.counters.purged = queue.purged
                reader.counters.largest_queue = max(reader.counters.largest_queue, len(queue))

    def _take(self, op: QueuedOperator) -> tuple[QueueMessage, int]:
        message, port = self._queues[op.name].take()
        self.occupancy.change(-1, self.now_us)
        op.counters.received[message.kind] += 1
        return message, port

    # clocks of idle operators

    def _may_tick(self, op: QueuedOperator) -> bool:
        return (
            op.mode.trigger is Trigger.CLOCK
            and bool(op.n_rows)
            and op.name not in self._turns
            and not len(self._queues[op.name])
            and op.clock < self._tick_time(op)
        )

    def _tick_time(self, op: QueuedOperator) -> int:
        return self._worked_us[op.name] + self.maintenance.idle_interval_us

    def _tick(self) -> None:
        """Let operators without work for a while end their due rows, up to the clocks of their inputs (U 2.3.2)."""
        for op in self._operators:
            if self._may_tick(op) and self._tick_time(op) <= self.now_us:
                self._worked_us[op.name] = self.now_us
                op.counters.ticks += 1
                time = self._horizon(op)
                if time > op.clock:
                    self._queues[op.name].put(QueueMessage(MessageKind.NULL, time, time), 0)
                    self.occupancy.change(1, self.now_us)

    def _horizon(self, op: QueuedOperator) -> int:
        """Nothing older than this will still reach the operator."""
        time = self.now_us
        for node in op.walk():
            if isinstance(node, QueuedOperator):
                waiting = self._queues[node.name].first_time
                turn = self._turns.get(node.name)
                under_way = [message.time for message in turn.sent] if turn is not None else []
                time = min([time, *under_way, *([] if waiting is None else [waiting])])
        return time


def _copied(message: QueueMessage) -> QueueMessage:
    return QueueMessage(message.kind, message.time, message.due, message.element, message.end, message.flag)


def _services(
    operators: list[QueuedOperator], service: ServiceTimes | Mapping[str, ServiceTimes] | None
) -> dict[str, ServiceTimes]:
    if service is None or isinstance(service, ServiceTimes):
        return {op.name: service or ServiceTimes() for op in operators}
    unknown = sorted(set(service) - {op.name for op in operators})
    if unknown:
        known = ", ".join(op.name for op in operators)
        raise EddyError(f'there is no operator "{unknown[0]}" in the plan', code="bad_option", hint=f"there are: {known}")
    return {op.name: service.get(op.name, ServiceTimes()) for op in operators}


def _readers(operators: list[QueuedOperator]) -> dict[int, list[tuple[QueuedOperator, int]]]:
    readers: dict[int, list[tuple[QueuedOperator, int]]] = {}
    for op in operators:
        for port, node in enumerate(op.inputs):
            readers.setdefault(id(node), []).append((op, port))
    return readers
