"""Messages between operators, one at a time.

    positive       a row begins
    negative       a row ends at its scheduled end
    premature      a row ends before it
    join message   every row whose scheduled end is `end` ends (N 6.1)
    null           nothing but the time

Any of them may carry the piggyback flag: rows whose scheduled end is at most `time` are over, and nobody will say so (N 7).
Then, and only then, may the ends of kind negative and join message that waited before it be dropped; a premature end never is
(semantics 32).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from experiments.papers.buffers import Element


class MessageKind(enum.Enum):
    POSITIVE = "positive"
    NEGATIVE = "negative"
    PREMATURE = "premature"
    JOIN_MESSAGE = "join message"
    NULL = "null"


#: What a flag on a later message says as well.
COVERED_BY_FLAG = frozenset({MessageKind.NEGATIVE, MessageKind.JOIN_MESSAGE, MessageKind.NULL})
#: What says that rows end.
ENDS = frozenset({MessageKind.NEGATIVE, MessageKind.PREMATURE, MessageKind.JOIN_MESSAGE})


@dataclass(slots=True)
class QueueMessage:
    kind: MessageKind
    #: the event time at which it takes effect; an operator's messages ascend
    time: int
    #: the time of the arrival or end outside that caused it: delays count from here
    due: int
    #: the row; None iff the kind is join message or null
    element: Element | None = None
    #: which rows a join message ends
    end: int = 0
    #: whether rows with a scheduled end up to `time` are over without further word
    flag: bool = False
