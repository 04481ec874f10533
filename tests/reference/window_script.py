"""A run of trees of operators as plain data, and the same as text to paste."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.reference.operators import Tree, parameters
from tests.reference.payload import encode
from tests.reference.script import Act, Advance, Delete, Push, TablePlan, Upsert
from tests.reference.tree_sql import as_sql
from tests.reference.workload import MS


@dataclass(frozen=True)
class StreamPlan:
    """A stream on timeline main with the time column `ts`."""

    name: str
    columns: Mapping[str, str]
    lateness_us: int = 0
    late: str = "adjust"
    keep_us: int | None = None
    key: tuple[str, ...] = ()
    end: str | None = None


@dataclass(frozen=True)
class Retract:
    stream: str
    keys: list[tuple[Any, ...]]
    time: int


@dataclass(frozen=True)
class Open:
    """The submit of a query; others may read it if it has a name."""

    label: int
    tree: Tree
    history: str = "new"
    emit: str = "commit"
    name: str | None = None
    #: None: what the engine was made with
    expiry: str | None = None


@dataclass(frozen=True)
class Rewrite:
    """Another tree for the running query with that label; nothing if it is not running."""

    label: int
    tree: Tree


Step = Push | Advance | Upsert | Delete | Retract | Open | Rewrite | Act


@dataclass(frozen=True)
class WindowScript:
    streams: list[StreamPlan]
    tables: list[TablePlan]
    policy: str = "auto"
    expiry: str = "auto"
    batch_rows: int = 4096
    steps: list[Step] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        streams = {stream.name: dict(stream.columns) for stream in self.streams}
        return streams | {table.name: table.columns for table in self.tables}


def as_python(script: WindowScript) -> str:
    """The script as calls that can be pasted after `from eddy import Engine` and `from datetime import timedelta`."""
    lines = [f"engine = Engine(policy={script.policy!r}, expiry={script.expiry!r}, batch_rows={script.batch_rows})"]
    for s in script.streams:
        options = f', time="ts", lateness=timedelta(microseconds={s.lateness_us}), late={s.late!r}'
        options += "" if s.keep_us is None else f", keep=timedelta(microseconds={s.keep_us})"
        options += f", key={list(s.key)}" if s.key else ""
        options += f", end={s.end!r}" if s.end else ""
        lines.append(f"engine.create_stream({s.name!r}, {dict(s.columns)}{options})")
    for t in script.tables:
        lines.append(f"engine.create_table({t.name!r}, {t.columns}, key={list(t.key)}, retroactive={t.retroactive})")
    return "\n".join(lines + [line for step in script.steps for line in _lines(step, script.columns)])


def _lines(step: Step, columns: dict[str, dict[str, str]]) -> list[str]:
    match step:
        case Push(batches, _, many):
            sent = {name: encode(rows, columns[name], "dicts") for name, rows in batches.items()}
            return [f"engine.push_many({sent})"] if many else [f"engine.push({n!r}, {p})" for n, p in sent.items()]
        case Advance(time, _):
            return [f"engine.advance({time / MS})"]
        case Upsert(table, rows):
            return [f"engine.upsert({table!r}, {encode(rows, columns[table], 'dicts')})"]
        case Delete(table, keys):
            return [f"engine.delete({table!r}, {written_keys(keys)})"]
        case Retract(stream, keys, time):
            return [f"engine.retract({stream!r}, {written_keys(keys)}, {time / MS})"]
        case Open(label, tree, history, emit, name, expiry):
            asked = f", params={parameters(tree)}" if parameters(tree) else ""
            asked += f", history={history!r}" if history != "new" else ""
            asked += f", emit={emit!r}" if emit != "commit" else ""
            asked += f", name={name!r}" if name else ""
            asked += f", expiry={expiry!r}" if expiry else ""
            return [f"q{label} = engine.submit({as_sql(tree)!r}{asked})"]
        case Rewrite(label, tree):
            return [f"engine.replace(q{label}, {as_sql(tree)!r})"]
        case Act(verb, label):
            return [f"engine.{verb}(q{label})"]


def written_keys(keys: list[tuple[Any, ...]]) -> list[Any]:
    """Keys as a client writes them: that of one column is its value."""
    return [key[0] if len(key) == 1 else key for key in keys]


def smaller(script: WindowScript) -> Iterator[WindowScript]:
    """Candidates for a smaller script that fails too: without some steps, without some rows of a push."""
    steps = script.steps
    for part in _parts(steps):
        yield replace(script, steps=part)
    for i, step in enumerate(steps):
        if isinstance(step, Push):
            for name, rows in step.batches.items():
                for part in _parts(rows):
                    batches = {**step.batches, name: part}
                    yield replace(script, steps=[*steps[:i], replace(step, batches=batches), *steps[i + 1 :]])
    if script.batch_rows != 4096:
        yield replace(script, batch_rows=4096)


def _parts(listed: list[Any]) -> Iterator[list[Any]]:
    """The list without one of its halves, quarters, ..., single items."""
    size = len(listed) // 2
    while size:
        for first in range(0, len(listed), size):
            yield listed[:first] + listed[first + size :]
        size //= 2
