"""The queue before an operator: first in, first out, for all its inputs.

Under `piggyback` a message that comes in drops the ends that still wait before it and carries the flag instead (N 7):

    no message in the queue is followed by another one while a flag could speak for it

Only scheduled ends that are due by the message's own time are dropped; a premature end stays (semantics 32).
"""

from __future__ import annotations

from collections import deque

from experiments.papers.machine.messages import COVERED_BY_FLAG, QueueMessage


class Queue:
    """Messages with the input they came by."""

    def __init__(self, *, piggybacks: bool) -> None:
        self._piggybacks = piggybacks
        self._waiting: deque[tuple[QueueMessage, int]] = deque()
        #: how many of them a flag could speak for
        self._covered = 0
        self.purged = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def can_wait(self) -> bool:
        """Whether the flag of the next message would cover all waiting messages."""
        return self._piggybacks and self._covered == len(self._waiting)

    @property
    def first_time(self) -> int | None:
        """The least time that waits; inputs may lag each other, so it need not be the first's."""
        return min((message.time for message, _ in self._waiting), default=None)

    def put(self, message: QueueMessage, port: int) -> None:
        """Append a message; under piggyback, in place of the ends that wait."""
        if self._piggybacks and self._covered:
            kept = deque(entry for entry in self._waiting if not _speaks_for(message, entry[0]))
            dropped = len(self._waiting) - len(kept)
            if dropped:
                message.flag = True
                self.purged += dropped
                self._covered -= dropped
                self._waiting = kept
        self._covered += message.kind in COVERED_BY_FLAG
        self._waiting.append((message, port))

    def take(self) -> tuple[QueueMessage, int]:
        message, port = self._waiting.popleft()
        self._covered -= message.kind in COVERED_BY_FLAG
        return message, port


def _speaks_for(later: QueueMessage, waiting: QueueMessage) -> bool:
    return waiting.kind in COVERED_BY_FLAG and waiting.time <= later.time
