"""The whole state of an engine as buffers, and back: for snapshots of a service.

    engine, later calls          =  load_state(dump_state(engine)), the same calls
                                    the same answers, changes, receipts and `seq`

The state is the engine's objects themselves: streams with their rows, waiting rows, dictionaries and indexes; tables and their
versions; queries of every kind with their operators, logs, kept answers and earlier texts; timelines, counters, policies. Not in
it is the running program's own: listeners of `on_commit`, the clock, the turn of the caller; scratch memory, parsed texts,
compiled kernels. Functions that were registered are code, so an engine that has any cannot be dumped.

Parts: the first has a header, the table of arrays and the objects; the second the small arrays; each of the others a large one
(`eddy/state/state_graph.py`, `eddy/state/state_arrays.py`).

    header    MAGIC, LAYOUT, number of parts, lengths of the table and the graph, then of each other part its length and sum;
              and the digest of all that and of the rest of the first part

`LAYOUT` is the number of the objects' shapes: a change of any attribute or of its meaning counts it up
(`tests/unit/eddy/state/test_dump.py` has their digest), for state of another layout cannot be loaded. Digest and sums tell
damage from state; they do not make the bytes of strangers a good state, though loading those would call nothing but the engine's
own classes.
"""

from __future__ import annotations

import gc
import hashlib
import io
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from eddy.base import compile as kernels
from eddy.engine import Engine
from eddy.state.state_arrays import ArrayTable, loaded
from eddy.state.state_graph import GraphReader, GraphWriter, NotAllowed, NotDumpable, PlainReader
from lineage.errors import EddyError

#: The number of the shapes that the objects of a state have.
LAYOUT = 8

MAGIC = b"eddystat"
#: Magic, layout, number of other parts, lengths of the table and of the graph.
_HEADER = struct.Struct("<8sIIQQ")
#: Length and sum of one of the other parts.
_PART = struct.Struct("<QQ")
_DIGEST_BYTES = 32

Buffer = bytes | memoryview


def dump_state(engine: Engine) -> list[Buffer]:
    """The state of an engine as parts; they are copies, so the engine may be used at once."""
    with engine._turn, _uncollected():
        described, graph, others = _written(engine)
    head = _HEADER.pack(MAGIC, LAYOUT, len(others), len(described), len(graph))
    head += b"".join(_PART.pack(len(part), _sum(part)) for part in others)
    return [b"".join((head, _digest(head, described, graph), described, graph)), *others]


def _written(engine: Engine) -> tuple[bytes, bytes, list[Buffer]]:
    """The table of arrays, the object graph and the other parts."""
    if engine._catalog.functions:
        named = ", ".join(sorted(engine._catalog.functions)[:10])
        raise EddyError(
            "an engine with registered functions cannot be dumped", code="not_dumpable", detail=f"functions: {named}",
            hint="functions are code: keep their queries in an engine without snapshots",
        )  # fmt: skip
    writer = GraphWriter()
    try:
        kinds, graph = writer.write(engine)
    except NotDumpable as error:
        raise EddyError(
            f"a state cannot hold {error.what}", code="not_dumpable", hint="this is an error of the engine: please report it"
        ) from error
    table, others = writer.arrays.lay_out()
    return pickle.dumps((kinds, table.places, table.sizes, table.texts), protocol=5), graph, others


def load_state(
    parts: Sequence[Any], *, clock: Callable[[], Any] | None = None, wall: Callable[[], Any] | None = None
) -> Engine:  # fmt: skip
    """An engine that continues from a dumped state; clocks as for `Engine`.

    Raises `EddyError`, `other_layout` or `bad_state`, if these are not the parts of a state of this layout.
    """
    views = [memoryview(part).cast("B") for part in parts]
    described, graph = _checked(views)
    kernels.ensure()
    with _uncollected():
        try:
            kinds, *fields = PlainReader(io.BytesIO(described)).load()
            engine = GraphReader(graph, loaded(ArrayTable(*fields), views[1:]), kinds).read()
        except NotAllowed as error:
            raise _bad(f"the state names {error}, which no state holds") from error
        except (pickle.UnpicklingError, LookupError, TypeError, ValueError, AttributeError, ImportError, EOFError) as error:
            raise _bad("the state does not hold together") from error
        if not isinstance(engine, Engine):
            raise _bad("the state is not that of an engine")
    engine._restart(clock, wall)
    return engine


def _checked(parts: list[memoryview]) -> tuple[memoryview, memoryview]:
    """The table and the graph of a state, once all parts are found whole; raises before anything is made of them if not."""
    first = parts[0] if parts else memoryview(b"")
    if len(first) < _HEADER.size or bytes(first[: len(MAGIC)]) != MAGIC:
        raise _bad("these bytes are not the state of an engine")
    _, layout, n_others, n_table, n_graph = _HEADER.unpack_from(first)
    if layout != LAYOUT:
        raise EddyError(
            f"the state has layout {layout}, this version reads layout {LAYOUT}", code="other_layout",
            hint="start with --discard-state: streams, tables and queries are kept, their windows begin empty",
        )  # fmt: skip
    head = _HEADER.size + n_others * _PART.size
    body = head + _DIGEST_BYTES
    if len(parts) != 1 + n_others or len(first) != body + n_table + n_graph:
        raise _bad("a part of the state is missing, or is cut off")
    table, graph = first[body : body + n_table], first[body + n_table :]
    if _digest(first[:head], table, graph) != bytes(first[head:body]):
        raise _bad("the first part of the state is damaged")
    for number, part in enumerate(parts[1:]):
        length, total = _PART.unpack_from(first, _HEADER.size + number * _PART.size)
        if len(part) != length or _sum(part) != total:
            raise _bad(f"part {number + 1} of the state is damaged")
    return table, graph


def _bad(fact: str) -> EddyError:
    return EddyError(fact, code="bad_state", hint="take an older snapshot")


def _digest(*pieces: Buffer) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in pieces:
        found.update(piece)
    return found.digest()


def _sum(part: Buffer) -> int:
    """The sum of a buffer's words: as quick as memory, unlike a digest."""
    whole = len(part) & ~7
    words = np.frombuffer(part, np.uint64, whole >> 3)
    return (int(words.sum(dtype=np.uint64)) + int.from_bytes(part[whole:], "little")) & (2**64 - 1)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Switch the garbage collector off, which would walk the objects again and again while they are made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
