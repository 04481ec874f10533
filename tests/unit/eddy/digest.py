"""A digest of everything an engine holds, so that a test can say "the call changed nothing"; and short ways to make engines.

`digest` reads what a caller can see (`stats()`, every answer) and then walks all private attributes from the engine down:
stores, slots, filters, dictionaries, waiting rows, fronts, logs. Left out are only scratch memory, caches that are derived
from the rest, and measured times.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddy import EddyError, Engine

#: Attributes that hold no state: ways back (sources and timelines are walked from the catalog), locks and clocks, scratch memory,
#: caches rebuilt from the rest, measured times, and the estimate between two accounts of the state cap.
SKIPPED = {
    "_shared_outputs", "_engine", "timeline", "_lock", "_cap", "_pairs", "_steps", "_begins", "gatherer",
    "_clock", "_skeletons", "_pool", "_places", "expiry", "_buffers", "_scratch", "_trial", "lineage",
    "_lives", "_planner", "_source", "_few", "_multi", "routing_ns", "total_ns", "cost_ns", "ns", "__weakref__",
    # what plans share, and what is made of it when somebody asks
    "_place", "_n_constants", "_trees", "lifting", "_table", "_strings",
}  # fmt: skip

#: Packages whose objects are walked.
OURS = {"eddy", "lineage", "filters", "stems", "queries", "windows"}

#: Types whose values are told apart by their text.
PLAIN = frozenset({str, bytes, int, float, bool, type(None)})

READINGS = {"sensor": "int", "room": "string", "temp": "float", "ok": "bool", "ts": "timestamp"}


def digest(engine: Engine) -> dict[str, str]:
    """A hash per part of the engine; equal digests mean that nothing has changed."""
    stats = engine.stats()
    answers = {name: engine.answer(query) for name, query in engine.queries.items()}
    seen = {
        "stats": stats,
        "streams": {name: (stream, dict(stream.columns)) for name, stream in engine.streams.items()},
        "answers": {name: (table.to_pydict(), table.schema.metadata) for name, table in answers.items()},
    }
    parts: dict[str, Any] = {f"seen: {name}": value for name, value in seen.items()}
    parts |= {name: value for name, value in vars(engine).items() if name not in SKIPPED}
    for source in (*engine._catalog.sources.values(), *engine._catalog.tables.values()):
        parts |= {f"{source.name}: {name}": value for name, value in vars(source).items() if name not in SKIPPED}
    # what several parts hold is walked in the first of them
    numbers: dict[int, int] = {}
    keep_alive: list[Any] = []
    return {name: _hash(value, numbers, keep_alive) for name, value in parts.items()}


def _hash(value: Any, numbers: dict[int, int], keep_alive: list[Any]) -> str:
    """`numbers`: of the objects that were walked, which have to stay alive as long as their ids are known."""
    found: list[bytes] = []
    todo = [value]
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind in PLAIN or isinstance(value, (str, int, float, enum.Enum, datetime, timedelta, np.generic)):
            found.append(f"{kind.__name__}:{value!r};".encode())
            continue
        if id(value) in numbers:
            found.append(b"again %d;" % numbers[id(value)])
            continue
        numbers[id(value)] = len(numbers)
        keep_alive.append(value)
        found.append(f"{kind.__name__}(".encode())
        if isinstance(value, np.ndarray) and value.dtype != object:
            found.append(f"{value.dtype.str}{value.shape}".encode())
            found.append(value.tobytes())
        elif isinstance(value, Mapping):
            todo += itertools.chain.from_iterable((item, key) for key, item in value.items())
        elif isinstance(value, (set, frozenset)):
            found.append(repr(sorted(map(_name, value))).encode())
        elif isinstance(value, (list, tuple)) and PLAIN.issuperset(map(type, value)):
            found.append(repr(list(value)).encode())
        elif isinstance(value, (list, tuple, np.ndarray)):
            todo += value.tolist() if isinstance(value, np.ndarray) else value
        elif kind.__module__.partition(".")[0] in OURS and kind.__name__ != "function":
            todo += itertools.chain.from_iterable(sorted(_attributes(value).items()))
        else:
            # functions, locks, foreign objects: the same one or another
            found.append(b"%d" % id(getattr(value, "__func__", value)))
    return hashlib.sha256(b"".join(found)).hexdigest()


def _name(value: Any) -> str:
    return str(getattr(value, "key", value))


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    named = [*slots, *getattr(value, "__dict__", {})]
    return {name: getattr(value, name) for name in named if name not in SKIPPED and hasattr(value, name)}


def assert_refused(
    engine: Engine, call: Callable[[Engine], Any], kind: type[EddyError], code: str, place: dict[str, Any], hint: str,
    before: dict[str, str] | None = None,
) -> None:  # fmt: skip
    """The call raises this error, at this place and with this hint, and has changed nothing; a code of "" is any.

    `before` is the engine's digest, where it is known.
    """
    before = before or digest(engine)
    with pytest.raises(kind) as error:
        call(engine)
    assert code in ("", error.value.code)
    assert {name: getattr(error.value, name) for name in place} == place
    assert hint in error.value.hint
    for text in (error.value.fact, str(error.value)):
        assert len(text) < 500 and "Traceback" not in text
    assert not error.value.fact.endswith(".")
    after = digest(engine)
    assert {name for name in before if before[name] != after[name]} == set()
    assert set(after) == set(before)
    engine.check()


def make_engine(**options: Any) -> Engine:
    """An engine with the stream `readings`."""
    engine = Engine(**options)
    engine.create_stream("readings", READINGS, time="ts")
    return engine


def row(
    ts: int, sensor: int | None = 1, temp: float | None = 20.0, room: str | None = "a", ok: bool | None = True
) -> dict[str, Any]:
    """A row of `readings`; `ts` in milliseconds."""
    return {"sensor": sensor, "room": room, "temp": temp, "ok": ok, "ts": ts}


def values(table: pa.Table, name: str | None = None) -> list[Any]:
    """One column of a table, the first one unless named."""
    return table.column(0 if name is None else name).to_pylist()


def at(ms: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def signed(changes: Any, name: str | None = None) -> list[tuple[int, int, Any]]:
    """Changes as (time in ms, sign, value of one column), to compare with a table written in the test."""
    return [
        (round((c.time - at(0)) / timedelta(milliseconds=1)), c.sign, next(iter(c.row.values())) if name is None else c.row[name])
        for c in changes
    ]
