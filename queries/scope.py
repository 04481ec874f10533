"""Which column a name in a query means.

A name is looked up in the inputs that are visible where it stands: all of them in SELECT and WHERE, those up to and with the
joined one in an ON. Names are not case-sensitive.

    a.x    the input with the alias a; else the only input whose stream or table is called a
    x      the only visible input with a column x

A name that two inputs answer to is an error that says how to write each. Cost: O(inputs) per name.
"""

from __future__ import annotations

from filters.expressions.expression import ColumnRef
from lineage.errors import QueryError, did_you_mean
from queries.inputs import Input
from queries.sql_text import SqlText
from queries.syntax import Name, Star


class Scope:
    """The inputs of one query, to find columns in."""

    __slots__ = ("visible", "_source", "_inputs")

    def __init__(self, source: SqlText, inputs: tuple[Input, ...]) -> None:
        #: how many inputs can be named now, from the first
        self.visible = len(inputs)
        self._source = source
        self._inputs = inputs

    def has(self, name: str) -> bool:
        """Whether any visible input has a column of that name."""
        return any(owner.schema.find(name) is not None for owner in self._inputs[: self.visible])

    def column(self, node: Name) -> ColumnRef:
        """The column a name means; raises `QueryError` when there is none, or more than one."""
        if node.qualifier is not None:
            owner = self._owner(node, node.qualifier)
            found = _find(owner, node.name)
            if found is None:
                raise self._unknown(node, owner)
            return found
        if len(self._inputs) == 1:
            found = _find(self._inputs[0], node.name)
            if found is None:
                raise self._unknown(node, self._inputs[0])
            return found
        candidates = [(owner, found) for owner in self._inputs[: self.visible] if (found := _find(owner, node.name)) is not None]
        if len(candidates) == 1:
            return candidates[0][1]
        if not candidates:
            raise self._unknown(node, None)
        fact = f'column "{node.name}" is in {_list([owner.alias for owner, _ in candidates], "and")}'
        hint = "write " + " or ".join(f"{owner.alias}.{found.name}" for owner, found in candidates)
        raise self._source.error(fact, node.start, node.end, "ambiguous_column", hint)

    def columns(self, node: Star) -> list[ColumnRef]:
        """All columns that `*` or `a.*` stands for, in order."""
        owners = self._inputs if node.qualifier is None else (self._owner(node, node.qualifier),)
        return [
            ColumnRef(column.type, column.name, owner.offset + at)
            for owner in owners
            for at, column in enumerate(owner.schema.columns)
        ]

    def _owner(self, node: Name | Star, qualifier: str) -> Input:
        """The input a qualifier means."""
        lowered = qualifier.lower()
        visible = self._inputs[: self.visible]
        for item in visible:
            if item.alias.lower() == lowered:
                return item
        named = [item for item in visible if item.name.lower() == lowered]
        if len(named) == 1:
            return named[0]
        start, end = node.start, node.end
        if named:
            fact = f'"{qualifier}" is read as {_list([item.alias for item in named], "and")}'
            raise self._source.error(fact, start, end, "ambiguous_column", "write the alias before the column")
        if any(lowered in (item.alias.lower(), item.name.lower()) for item in self._inputs):
            fact, hint = f'"{qualifier}" stands behind this ON', "an ON sees the FROM items up to its own; put it into WHERE"
            raise self._source.error(fact, start, end, "unknown_stream", hint)
        known = list(dict.fromkeys(word for item in visible for word in (item.alias, item.name)))
        fact = f'"{qualifier}" is no {_kinds(visible)} of this query'
        raise self._source.error(fact, start, end, "unknown_stream", did_you_mean(qualifier, known))

    def _unknown(self, node: Name, owner: Input | None) -> QueryError:
        visible = self._inputs[: self.visible] if owner is None else (owner,)
        if owner is not None:
            where = f'{owner.kind} "{owner.name}"'
        else:
            where = _list([item.alias for item in visible], "or")
        fact = f'column "{node.name}" does not exist in {where}'
        known = list(dict.fromkeys(name for item in visible for name in item.schema.names))
        return self._source.error(fact, node.start, node.end, "unknown_column", did_you_mean(node.name, known))


def _find(owner: Input, name: str) -> ColumnRef | None:
    column = owner.schema.find(name)
    if column is None:
        return None
    return ColumnRef(column.type, column.name, owner.offset + owner.schema.position(column.name))


def _kinds(inputs: tuple[Input, ...]) -> str:
    kinds = {item.kind for item in inputs}
    if kinds & {"query", "merge"}:
        return "source"
    return "stream or table" if "table" in kinds else "stream"


def _list(words: list[str], last: str) -> str:
    """The words in quotes: "a", "b" and "c"."""
    quoted = [f'"{word}"' for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
