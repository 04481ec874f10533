"""A tree of operators as the engine's SQL (`contract.md` 4).

Queries that items share, or that say so, are written in front with WITH. An operand of a set operator that is one itself is
written as a subquery, so that no text depends on how set operators bind.
"""

from __future__ import annotations

from tests.reference.lives import UNBOUNDED, Window
from tests.reference.operators import (
    Aggregate,
    Combined,
    Distinct,
    Grouped,
    Item,
    Named,
    Select,
    Slide,
    ToStream,
    Tree,
    walk,
)

UNITS = [(1_000_000, "SECOND"), (1_000, "MILLISECOND"), (1, "MICROSECOND")]


def as_sql(tree: Tree) -> str:
    """The whole text."""
    shared: dict[str, str] = {}
    for node in reversed(list(walk(tree))):  # what is used by another stands before it
        if isinstance(node, Select | Grouped):
            for item in node.items:
                if item.shared and not isinstance(item.source, str):
                    shared.setdefault(item.shared, query_text(item.source))
    defined = ", ".join(f"{name} AS ({text})" for name, text in shared.items())
    return f"WITH {defined} {query_text(tree)}" if defined else query_text(tree)


def query_text(tree: Tree) -> str:
    match tree:
        case Select():
            return f"SELECT {_outputs(tree)} {_from_where(tree)}"
        case Grouped():
            group = f" GROUP BY {', '.join(key.sql for key in tree.keys)}" if tree.keys else ""
            having = f" HAVING {tree.having.sql}" if tree.having else ""
            return f"SELECT {_outputs(tree)} {_from_where(tree)}{group}{having}"
        case Distinct(child):
            if isinstance(child, Select | Grouped):
                return query_text(child).replace("SELECT", "SELECT DISTINCT", 1)
            return f"SELECT DISTINCT {', '.join(child.columns)} FROM ({query_text(child)}) AS d"
        case Combined(word, all, left, right):
            return f"{_operand(left)} {word.upper()}{' ALL' if all else ''} {_operand(right)}"
        case ToStream(word, child):
            return f"{word.upper()} ({query_text(child)})"
        case Named(name, columns):
            return f"SELECT {', '.join(columns)} FROM {name}"


def _operand(tree: Tree) -> str:
    if isinstance(tree, Combined):
        return f"SELECT {', '.join(tree.columns)} FROM ({query_text(tree)}) AS u"
    return query_text(tree)


def _outputs(tree: Select | Grouped) -> str:
    return ", ".join(f"{node.sql} AS {name}" for name, node in tree.outputs)


def _from_where(tree: Select | Grouped) -> str:
    where = f" WHERE {tree.where.sql}" if tree.where else ""
    return f"FROM {', '.join(map(_item, tree.items))}{where}"


def _item(item: Item) -> str:
    if isinstance(item.window, Slide) and item.window.called:
        size, slide = _interval(item.window.width), _interval(item.window.slide)
        call = f"TUMBLE({item.source}, {size})" if size == slide else f"HOP({item.source}, {slide}, {size})"
        return f"{call} AS {item.alias}"
    if isinstance(item.source, str):
        source = item.source
    elif item.shared:
        source = item.shared
    elif isinstance(item.source, Named):
        source = item.source.name
    else:
        source = f"({query_text(item.source)})"
    window = f" {window_text(item.window)}" if item.window is not None else ""
    return f"{source}{window} AS {item.alias}"


def window_text(window: Window | Slide) -> str:
    """
    >>> window_text(Window(5_000, 3, ("k",))), window_text(Slide(4_000, 1_500)), window_text(Window())
    ('[PARTITION BY k ROWS 3 RANGE 5 MILLISECONDS]', '[RANGE 4 MILLISECONDS SLIDE 1500 MICROSECONDS]', '[RANGE UNBOUNDED]')
    """
    if isinstance(window, Slide):
        return f"[RANGE {duration(window.width)} SLIDE {duration(window.slide)}]"
    if window.rows is None:
        return "[RANGE UNBOUNDED]" if window.width == UNBOUNDED else f"[RANGE {duration(int(window.width))}]"
    partition = f"PARTITION BY {', '.join(window.partition)} " if window.partition else ""
    width = "" if window.width == UNBOUNDED else f" RANGE {duration(int(window.width))}"
    return f"[{partition}ROWS {window.rows}{width}]"


def duration(micros: int) -> str:
    size, unit = next((size, unit) for size, unit in UNITS if micros % size == 0)
    return f"{micros // size} {unit}{'' if micros == size else 'S'}"


def _interval(micros: int) -> str:
    count, unit = duration(micros).split()
    return f"INTERVAL '{count}' {unit}"


def aggregate_text(aggregate: Aggregate) -> str:
    """An aggregate as it is called."""
    inside = aggregate.argument.sql if aggregate.argument else "*"
    filtered = f" FILTER (WHERE {aggregate.where.sql})" if aggregate.where else ""
    return f"{aggregate.kind.upper()}({'DISTINCT ' if aggregate.distinct else ''}{inside}){filtered}"
