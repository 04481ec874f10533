"""Stream compression (G 3.3): in the messages of one turn, a row and its premature end become one row with an earlier end.

    + row [start, end)  ...  - row at t      becomes      + row [start, t)        (nothing, if start = t)

Only where scheduled ends do not travel, operator by operator: elsewhere the reader waits for the end to be told.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from experiments.papers.machine.messages import MessageKind, QueueMessage


def compress(sent: Sequence[QueueMessage]) -> list[QueueMessage]:
    """The same changes in fewer messages."""
    kept: list[QueueMessage | None] = []
    #: id -> place of its latest +
    begun: dict[Hashable, int] = {}
    for message in sent:
        element = message.element
        if message.kind is MessageKind.PREMATURE and element is not None and element.id in begun:
            place = begun.pop(element.id)
            first = kept[place]
            assert first is not None and first.element is not None
            shortened = first.element._replace(end=message.time)
            kept[place] = None
            if shortened.start < shortened.end:
                kept[place] = QueueMessage(MessageKind.POSITIVE, first.time, first.due, shortened, flag=first.flag)
            continue
        if message.kind is MessageKind.POSITIVE and element is not None:
            begun[element.id] = len(kept)
        kept.append(message)
    return [message for message in kept if message is not None]
