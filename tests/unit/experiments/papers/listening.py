"""Listening to what an operator of a pipeline sends."""

from __future__ import annotations

from typing import NamedTuple

from experiments.papers import Pipeline
from experiments.papers.buffers import Values
from experiments.papers.machine.messages import MessageKind, QueueMessage

SIGNS = {
    MessageKind.POSITIVE: "+",
    MessageKind.NEGATIVE: "-",
    MessageKind.PREMATURE: "!",
    MessageKind.JOIN_MESSAGE: "m",
    MessageKind.NULL: "0",
}


class Heard(NamedTuple):
    """One message: `+` a row, `-` its scheduled end, `!` a premature end, `m` a join message, `0` nothing."""

    time: int
    sign: str
    values: Values = ()
    flag: bool = False


def listen(pipeline: Pipeline, operator: str) -> list[Heard]:
    """What the operator sends from now on, as it is sent."""
    heard: list[Heard] = []
    op = pipeline.operators[operator]
    receive = op.receive

    def listening(message: QueueMessage, port: int) -> list[QueueMessage]:
        sent = receive(message, port)
        heard.extend(Heard(m.time, SIGNS[m.kind], m.element.values if m.element else (), m.flag) for m in sent)
        return sent

    op.receive = listening
    return heard


def plain(heard: list[Heard]) -> list[tuple[int, str, Values]]:
    return [(message.time, message.sign, message.values) for message in heard]
