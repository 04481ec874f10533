"""Arrow bodies of every kind that a column takes, small, and what hostile clients make of them.

table(seed)            a table with columns of all types
encoded(table, ..)     as an IPC stream, in one of the ways there are to write one
SEEDLINGS              bodies to begin with: what differs in the format is in one of them
mutated(seed)          one of them, damaged: bits, words of the metadata, lengths, cut off, spliced, messages twice
"""

from __future__ import annotations

import datetime as dt
import io
import random
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

#: The columns of `table`, and the type of the stream's column that takes each.
COLUMNS: dict[str, str] = {
    "ts": "timestamp",
    **{f"{kind}{width}": "int" for kind in ("int", "uint") for width in (8, 16, 32, 64)},
    **{f"float{width}": "float" for width in (16, 32, 64)},
    "bool": "bool",
    **dict.fromkeys(("string", "large_string", "string_view", "coded8", "coded32", "coded_large", "coded_view"), "string"),
    **{f"time_{unit}": "timestamp" for unit in ("s", "ms", "us", "ns")},
    **dict.fromkeys(("zoned", "date32", "date64", "time_text", "time_coded", "days_coded", "time_view"), "timestamp"),
    "null": "float",
    "null_text": "string",
    "int_coded": "int",
    "float_coded": "float",
    "half_coded": "float",
    "bool_coded": "bool",
    "null_coded": "string",
}
WORDS = ("", "a", "bb", "größe", "日本語", "a text that no view holds", "x" * 40, "\U0001f600")
_DAY = dt.date(2020, 1, 1)


def table(seed: int, n_rows: int, nulls: float, names: tuple[str, ...] = tuple(COLUMNS)) -> pa.Table:
    """Rows by a seed, with that share of NULLs."""
    rng = random.Random(seed)

    def column(name: str) -> Any:
        type_, value = _KINDS[name]
        share = 0.0 if name == "ts" else nulls
        values = [None if rng.random() < share else value(rng) for _ in range(n_rows)]
        if pa.types.is_dictionary(type_):
            entries = list(dict.fromkeys(value for value in values if value is not None))
            indices = pa.array([None if value is None else entries.index(value) for value in values], type_.index_type)
            return pa.DictionaryArray.from_arrays(indices, pa.array(entries, type_.value_type))
        return pa.array(values, type_)

    return pa.table({name: column(name) for name in names})


def _whole(rng: random.Random) -> int:
    return rng.randrange(100)


def _word(rng: random.Random) -> str:
    return rng.choice(WORDS)


def _day(rng: random.Random) -> dt.date:
    return _DAY + dt.timedelta(rng.randrange(1000))


def _time_text(rng: random.Random) -> str:
    return f"2024-01-{rng.randrange(1, 29):02}T10:00:00Z"


_KINDS: dict[str, tuple[Any, Callable[[random.Random], Any]]] = {
    "ts": (pa.timestamp("us"), _whole),
    **{
        f"{kind}{width}": (getattr(pa, f"{kind}{width}")(), _whole)
        for kind in ("int", "uint") for width in (8, 16, 32, 64)
    },
    "float16": (pa.float16(), lambda rng: np.float16(rng.random())),
    "float32": (pa.float32(), random.Random.random),
    "float64": (pa.float64(), random.Random.random),
    "bool": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "string": (pa.string(), _word),
    "large_string": (pa.large_string(), _word),
    "string_view": (pa.string_view(), _word),
    "coded8": (pa.dictionary(pa.int8(), pa.string()), _word),
    "coded32": (pa.dictionary(pa.uint32(), pa.string()), _word),
    "coded_large": (pa.dictionary(pa.int64(), pa.large_string()), _word),
    "coded_view": (pa.dictionary(pa.int32(), pa.string_view()), _word),
    **{f"time_{unit}": (pa.timestamp(unit), _whole) for unit in ("s", "ms", "us", "ns")},
    "zoned": (pa.timestamp("ms", "Europe/Berlin"), _whole),
    "date32": (pa.date32(), _day),
    "date64": (pa.date64(), _day),
    "time_text": (pa.string(), _time_text),
    "time_coded": (pa.dictionary(pa.int32(), pa.string()), _time_text),
    "days_coded": (pa.dictionary(pa.int16(), pa.date32()), _day),
    "null": (pa.null(), lambda rng: None),
    "null_text": (pa.null(), lambda rng: None),
    "int_coded": (pa.dictionary(pa.int32(), pa.int64()), _whole),
    "float_coded": (pa.dictionary(pa.uint8(), pa.float64()), random.Random.random),
    "half_coded": (pa.dictionary(pa.int8(), pa.float16()), lambda rng: np.float16(rng.random())),
    "bool_coded": (pa.dictionary(pa.int8(), pa.bool_()), lambda rng: rng.random() < 0.5),
    "null_coded": (pa.dictionary(pa.int8(), pa.null()), lambda rng: None),
    "time_view": (pa.dictionary(pa.int8(), pa.string_view()), _time_text),
}  # fmt: skip


def encoded(rows: pa.Table, chunk: int | None = None, **options: Any) -> bytes:
    """Rows as an IPC stream, in batches of at most so many rows."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(rows, max_chunksize=chunk)
    return sink.getvalue()


def encoded_file(rows: pa.Table, chunk: int | None = None, **options: Any) -> bytes:
    """Rows as an IPC file."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(rows.unify_dictionaries(), max_chunksize=chunk)
    return sink.getvalue()


LEGACY = {"use_legacy_format": True, "metadata_version": pa.ipc.MetadataVersion.V4}
NUMBERS = tuple(name for name, kind in COLUMNS.items() if kind in ("int", "float", "bool") and "coded" not in name)
TEXTS = ("ts", "string", "large_string", "string_view")
TIMES = tuple(name for name, kind in COLUMNS.items() if kind == "timestamp")
CODED = (
    "ts",
    "coded8",
    "coded32",
    "coded_large",
    "coded_view",
    "int_coded",
    "float_coded",
    "half_coded",
    "bool_coded",
    "null_coded",
)


class Seedling(NamedTuple):
    """A body to begin with, and whether it brings rows for several streams."""

    body: bytes
    bundle: bool = False


def _growing(*, delta: bool) -> bytes:
    """Batches whose dictionary grows, or is another one each time."""
    sink = io.BytesIO()
    type_ = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("ts", pa.timestamp("us")), ("coded8", type_)])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=delta)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for n in range(1, 4):
            words = [f"w{i}" for i in range(n)] if delta else [f"{n}-{i}" for i in range(3)]
            indices = pa.array([i % len(words) for i in range(3)], pa.int8())
            coded = pa.DictionaryArray.from_arrays(indices, pa.array(words))
            writer.write_batch(pa.record_batch([pa.array([1, 2, 3], pa.timestamp("us")), coded], schema=schema))
    return sink.getvalue()


def _named(rows: pa.Table, stream: str) -> pa.Table:
    return rows.replace_schema_metadata({"stream": stream, "other": "x"})


def _nobody_takes() -> pa.Table:
    return pa.table({
        "ts": pa.array([1, 2], pa.timestamp("us")), "int8": pa.array([[1], [2]]), "int16": pa.array([b"a", b"b"]),
        "int32": pa.array([{"a": 1}, {"a": 2}]), "float32": pa.array([1, 2], pa.decimal128(5)),
        "int64": pa.array([1, 2], pa.duration("s")),
    })  # fmt: skip


@cache
def seedlings() -> tuple[Seedling, ...]:
    """Bodies of every kind."""
    both = [encoded(_named(table(30 + n, 2, 0.2, TEXTS + ("int64",)), name)) for n, name in enumerate("st")]
    return tuple(
        Seedling(body)
        for body in (
            encoded(table(1, 3, 0.0, ("ts", *NUMBERS))),
            encoded(table(2, 9, 0.4, ("ts", *NUMBERS))),
            encoded(table(3, 3, 0.0, TEXTS)),
            encoded(table(4, 9, 0.4, TEXTS)),
            encoded(table(5, 70, 0.2, TEXTS)),
            encoded(table(6, 4, 0.3, CODED)),
            encoded(table(7, 70, 0.2, CODED)),
            encoded(table(8, 4, 0.3, TIMES)),
            encoded(table(9, 70, 0.2, TIMES)),
            encoded(table(10, 4, 0.3, ("ts", "null", "null_text", "time_text", "time_coded"))),
            encoded(table(11, 12, 0.2, (*TEXTS, "coded8")), 4),
            _growing(delta=True),
            _growing(delta=False),
            encoded(table(12, 40, 0.2, (*TEXTS, "int64", "coded8")), compression="lz4"),
            encoded(table(13, 40, 0.2, (*TEXTS, "int64", "coded8")), compression="zstd"),
            encoded(table(14, 3, 0.3, (*TEXTS, "int64")), **LEGACY),
            encoded(table(15, 0, 0.0, (*TEXTS, "int64"))),
            encoded(_nobody_takes()),
        )
    ) + (Seedling(b"".join(both), True), Seedling(both[0], True))


def framing(body: bytes) -> list[tuple[int, int, int]]:
    """Of each message of well-formed streams where it begins, where its metadata does, and where it ends."""
    found = []
    at = 0
    while at + 4 <= len(body):
        first = at
        if body[at : at + 4] == b"\xff\xff\xff\xff":
            at += 4
        (length,) = struct.unpack_from("<i", body, at)
        at += 4
        if length == 0:
            continue
        message = pa.ipc.read_message(pa.py_buffer(body[first:]))
        end = at + length + (message.body.size if message.body is not None else 0)
        found.append((first, at, end))
        at = end
    return found


@cache
def _metadata(n: int) -> tuple[list[tuple[int, int, int]], list[int]]:
    """The messages of a seedling, and where words of its metadata and lengths lie."""
    body = seedlings()[n].body
    messages = framing(body)
    words: list[int] = []
    for first, at, _ in messages:
        (length,) = struct.unpack_from("<i", body, at - 4)
        words += range(first, at + length - 8, 4)
    return messages, words


_INTERESTING = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    16,
    127,
    128,
    255,
    256,
    65535,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**63 - 1,
    2**63,
    2**64 - 1,
)


def mutated(seed: int) -> Seedling:
    """A damaged body."""
    rng = random.Random(seed)
    n = rng.randrange(len(seedlings()))
    seedling = seedlings()[n]
    messages, words = _metadata(n)
    body = bytearray(seedling.body)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        how = rng.random()
        if how < 0.25:
            at = rng.randrange(len(body))
            body[at] = rng.choice((0, 255, 127, 128, 1, body[at] ^ (1 << rng.randrange(8)), rng.randrange(256)))
        elif how < 0.75:
            _change_word(body, rng.choice(words), rng)
        elif how < 0.85:
            at = 4 * rng.randrange(len(body) // 4)
            _change_word(body, at, rng)
        elif how < 0.89:
            del body[rng.randrange(len(body)) :]
        elif how < 0.93:
            other = seedlings()[rng.randrange(len(seedlings()))].body
            cut = rng.randrange(len(other))
            body[min(cut, len(body)) if rng.random() < 0.5 else rng.randrange(len(body) + 1) :] = other[cut:]
        else:
            first, _, end = rng.choice(messages)
            message = body[first:end]
            at = rng.choice(messages)[rng.choice((0, 2))]
            if rng.random() < 0.3:
                del body[first:end]
            else:
                body[at:at] = message
        if len(body) < 16:
            break
    return Seedling(bytes(body), seedling.bundle)


def _change_word(body: bytearray, at: int, rng: random.Random) -> None:
    width = rng.choice((1, 2, 4, 4, 8, 8))
    if at + width > len(body):
        return
    value = int.from_bytes(body[at : at + width], "little")
    value = rng.choice(
        (value + rng.choice((-8, -4, -1, 1, 4, 8)), rng.choice(_INTERESTING), value ^ (1 << rng.randrange(8 * width)), value * 2)
    )
    body[at : at + width] = (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
