"""A node of a plan: a source or an operator, with the update pattern of its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from windows import patterns


class PlanNode(ABC):
    """A source or an operator: a name in the plan, inputs, and the update pattern of the output."""

    kind: ClassVar[str]

    def __init__(self, *inputs: PlanNode) -> None:
        self.inputs = inputs
        #: unique in its plan, given by it: "join", "join#2", ...
        self.name = ""

    @property
    @abstractmethod
    def pattern(self) -> str:
        """The update pattern of the rows that go out."""

    @property
    @abstractmethod
    def ends_known(self) -> bool:
        """Whether rows that go out end only when they are scheduled to."""

    def walk(self) -> Iterator[PlanNode]:
        """This node and all below, inputs first, each once."""
        seen: set[int] = set()

        def visit(node: PlanNode) -> Iterator[PlanNode]:
            if id(node) not in seen:
                seen.add(id(node))
                for below in node.inputs:
                    yield from visit(below)
                yield node

        return visit(self)


class RuleNode(PlanNode):
    """An operator whose edge follows from the table of patterns."""

    #: its row in `patterns.OPERATORS`
    rule: ClassVar[str]

    @property
    def pattern(self) -> str:
        return patterns.OPERATORS[self.rule].pattern([node.pattern for node in self.inputs])

    @property
    def ends_known(self) -> bool:
        below = [node.pattern for node in self.inputs]
        return patterns.ends_known(self.rule, below, [node.ends_known for node in self.inputs])
