"""Requests with rows, made beforehand: the sender must not be what is measured.

Each request carries one marked row, `n` > 0, by which its result is recognised when it becomes visible; the others have `n` = 0.
A request is a template in which only the mark is written anew, in a fixed width.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa

FORMATS = ("columns", "ndjson", "arrow")
_MEDIA = {
    "columns": "application/json",
    "ndjson": "application/x-ndjson",
    "arrow": "application/vnd.apache.arrow.stream",
}
#: A mark of ten digits, and as eight bytes, that stands nowhere else.
_MARK = 7_310_562_849
_WIDTH = 10
#: Different batches that are sent in turns.
TEMPLATES = 16


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """The bytes before and after the mark."""

    before: bytes
    after: bytes
    binary: bool

    def request(self, mark: int) -> bytes:
        """The whole request with a mark."""
        text = mark.to_bytes(8, "little") if self.binary else str(mark + 10 ** (_WIDTH - 1)).encode()
        return self.before + text + self.after


def mark_of(n: int) -> int:
    """The mark that a row carries, from the value that came out; those of texts have a fixed width."""
    return n - 10 ** (_WIDTH - 1) if n >= 10 ** (_WIDTH - 1) else n


def make(format_: str, n_rows: int, host: str) -> list[RequestTemplate]:
    """Requests of a format."""
    generator = np.random.default_rng(7)
    return [_make(format_, n_rows, host, generator) for _ in range(TEMPLATES)]


def _make(format_: str, n_rows: int, host: str, generator: np.random.Generator) -> RequestTemplate:
    n = np.zeros(n_rows, np.int64)
    n[0] = _MARK
    columns = {"n": n, "price": np.round(generator.uniform(0, 100, n_rows), 3), "size": generator.integers(0, 1000, n_rows)}
    if format_ == "columns":
        body = orjson.dumps({name: values.tolist() for name, values in columns.items()})
    elif format_ == "ndjson":
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        body = b"\n".join(orjson.dumps(dict(zip(columns, row, strict=True))) for row in rows)
    else:
        sink = io.BytesIO()
        table = pa.table(columns)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        body = sink.getvalue()
    head = (
        f"POST /v1/streams/ticks/rows HTTP/1.1\r\nHost: {host}\r\nContent-Type: {_MEDIA[format_]}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    mark = _MARK.to_bytes(8, "little") if format_ == "arrow" else str(_MARK).encode()
    at = body.index(mark)
    assert body.count(mark) == 1, "the mark stands once"
    return RequestTemplate(head + body[:at], body[at + len(mark) :], format_ == "arrow")
