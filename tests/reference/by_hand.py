"""Small words for examples on the naive model that are worked out by hand.

A row is written (v, ts, k): its name, its time, its key (0 unless told otherwise). A change is written (sign, time, value); a
value shows the names of the rows it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reference.lives import Window
from tests.reference.matching import Condition, Input, Meaning, Rows
from tests.reference.naive import Naive
from tests.reference.workload import compare, kleene_and

Sent = tuple[Any, ...]
Shown = tuple[int, int, tuple[Any, ...]]


def model(*streams: str, **options: dict[str, Any]) -> Naive:
    """A model with these streams, each with a time column; `options` are those of some of them."""
    made = Naive()
    for name in streams:
        made.create_stream(name, time="ts", **options.get(name, {}))
    return made


def row(v: str, ts: int, k: Any = 0) -> dict[str, Any]:
    return {"v": v, "ts": ts, "k": k}


def push(naive: Naive, stream: str, *sent: Sent) -> None:
    naive.push(stream, [row(*values) for values in sent])


def push_many(naive: Naive, **sent: list[Sent]) -> None:
    naive.push_many({name: [row(*values) for values in rows] for name, rows in sent.items()})


def upsert(naive: Naive, *sent: tuple[Any, str]) -> None:
    """Rows (k, v) of the table `t`."""
    naive.upsert("t", [{"k": k, "v": v} for k, v in sent])


def equal_keys(rows: Rows) -> bool | None:
    """k of all inputs is equal, in SQL's three values."""
    return kleene_and(*(compare("=", rows[i]["k"], rows[i + 1]["k"]) for i in range(len(rows) - 1)))


def always(rows: Rows) -> bool | None:
    return True


def meaning(*inputs: str | tuple[str, Window], on: Callable[[Rows], bool | None] = equal_keys) -> Meaning:
    """A join that shows the name of each of its rows."""
    items = tuple(Input(item) if isinstance(item, str) else Input(*item) for item in inputs)
    condition = Condition(frozenset(range(len(items))), on)
    return Meaning(items, (condition,), lambda rows: tuple(entry["v"] for entry in rows))


def answer(naive: Naive, query: int) -> list[str]:
    """The answer, sorted, a value as its names with a blank between them."""
    return sorted(" ".join(map(str, value)) for value in naive.answer(query))


def changes(naive: Naive, query: int, since: int = 0) -> list[Shown]:
    """Changes in the order they are read; those of one commit, sign and time by value, as their order is free."""
    found = [(seq, c.sign, c.time, c.value) for seq, c in naive.changes(query, since)]
    ordered = sorted(found, key=lambda entry: (*entry[:3], str(entry[3])))
    assert [entry[:3] for entry in found] == [entry[:3] for entry in ordered], "- before +, each by time"
    return [entry[1:] for entry in ordered]


def last(naive: Naive, query: int) -> list[Shown]:
    """The changes of the last commit."""
    return changes(naive, query, naive.seq - 1)


def with_table(retroactive: bool, *streams: str) -> Naive:
    naive = model(*(streams or ("a",)))
    naive.create_table("t", key=["k"], retroactive=retroactive)
    return naive
