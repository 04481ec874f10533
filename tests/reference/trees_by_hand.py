"""Small words for examples on trees of operators that are worked out by hand.

A row is written (v, ts, k): its name, its time, its key (0 unless told otherwise). A change is written (sign, time, value).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reference.lives import Window
from tests.reference.operators import Aggregate, Combined, Expression, Grouped, Item, Named, Select, Slide, ToStream, Tree
from tests.reference.tree_sql import aggregate_text
from tests.reference.window_model import WindowModel
from tests.reference.workload import combine, compare

COLUMNS = {"v": "string", "ts": "timestamp[us]", "k": "int"}
Shown = tuple[int, int, tuple[Any, ...]]


def model(*streams: str, **options: dict[str, Any]) -> WindowModel:
    made = WindowModel()
    for name in streams:
        made.create_stream(name, **options.get(name, {}))
    return made


def push(made: WindowModel, stream: str, *sent: tuple[Any, ...]) -> None:
    made.push(stream, [_row(*values) for values in sent])


def push_many(made: WindowModel, **sent: list[tuple[Any, ...]]) -> None:
    made.push_many({name: [_row(*values) for values in rows] for name, rows in sent.items()})


def _row(v: str, ts: int, k: Any = 0, until: int | None = None) -> dict[str, Any]:
    return {"v": v, "ts": ts, "k": k, "until": until}


# -- trees -----------------------------------------------------------------------------------------------------------


def column(item: Item, k: int, name: str) -> Expression:
    return Expression(
        item.columns[name].split("[")[0], f"{item.alias}.{name}", f'{item.alias}."{name}"', lambda rows: rows[k][name]
    )


def table(name: str) -> Item:
    return Item(name, name, {"k": "int", "v": "string"}, is_table=True)


def source(of: str | Tree, window: Window | Slide | None = None, alias: str = "a") -> Item:
    columns = dict(COLUMNS) if isinstance(of, str) else dict(of.columns)
    if isinstance(window, Slide) and window.bounds:
        columns |= {"window_start": "timestamp", "window_end": "timestamp"}
    return Item(alias, of, columns, window)


def select(item: Item, *names: str, where: Callable[[dict[str, Any]], bool | None] | None = None) -> Select:
    """Columns of one item; `where` is a function over its row."""
    condition = Expression("bool", "?", None, lambda rows: where(rows[0])) if where else None
    return Select((item,), condition, tuple((name, column(item, 0, name)) for name in names))


def over(stream: str, window: Window | Slide | None, *names: str) -> Select:
    return select(source(stream, window, stream), *(names or ("v",)))


def joined(left: Item, right: Item) -> Select:
    """The names of the rows with equal keys."""
    condition = combine("bool", "{} = {}", [column(left, 0, "k"), column(right, 1, "k")], lambda a, b: compare("=", a, b))
    return Select((left, right), condition, (("l", column(left, 0, "v")), ("r", column(right, 1, "v"))))


def grouped(item: Item, keys: list[str], *kinds: tuple[str, str | None] | Aggregate, having: Any = None) -> Grouped:
    """Aggregates by columns of one item; `having` is a function over its output row k0, .., a0, .."""
    made = [kind if isinstance(kind, Aggregate) else _aggregate(item, *kind) for kind in kinds]
    by = [column(item, 0, key) for key in keys]
    outputs = [(name, Expression(key.type, key.sql, f"k{i}", _of(f"k{i}"))) for i, (name, key) in enumerate(zip(keys, by))]
    outputs += [(f"a{i}", Expression(one.type, aggregate_text(one), f"a{i}", _of(f"a{i}"))) for i, one in enumerate(made)]
    condition = Expression("bool", "?", None, lambda rows: having(rows[0])) if having else None
    return Grouped((item,), None, tuple(by), tuple(made), condition, tuple(outputs))


def _aggregate(item: Item, kind: str, argument: str | None) -> Aggregate:
    return Aggregate(kind, column(item, 0, argument) if argument else None)


def _of(name: str) -> Callable[[Any], Any]:
    return lambda rows: rows[0][name]


def combined(text: str, left: Tree, right: Tree) -> Combined:
    """`text` such as EXCEPT ALL."""
    word, _, rest = text.lower().partition(" ")
    return Combined(word, rest == "all", left, right)


def istream(tree: Tree) -> ToStream:
    return ToStream("istream", tree)


def named(name: str, tree: Tree) -> Named:
    return Named(name, tree.columns, tree.is_stream)


# -- what is seen ----------------------------------------------------------------------------------------------------


def answer(made: WindowModel, query: int) -> list[tuple[Any, ...]]:
    return sorted(made.answer(query), key=str)


def changes(made: WindowModel, query: int, since: int = 0) -> list[Shown]:
    """Changes commit by commit; those of one sign and time by value, as their order is free."""
    found = [(seq, c.time, c.sign, c.value) for seq, c in made.changes(query, since)]
    if made.queries[query].emit == "commit":
        ordered = sorted(found, key=lambda entry: (entry[0], entry[2], entry[1], str(entry[3])))
    else:
        ordered = sorted(found, key=lambda entry: (*entry[:3], str(entry[3])))
    return [(sign, time, value) for _, time, sign, value in ordered]


def last(made: WindowModel, query: int) -> list[Shown]:
    """The changes of the last commit."""
    return changes(made, query, made.seq - 1)
