"""Readers of request bodies: counted while they stream, within a time, decompressed within the same bound.

    body too large          TooLargeError, as soon as it is clear; nothing more is kept. One query has a bound of its own
    too slow                TooSlowError: a body has `read_seconds`, and a second more for each `read_bytes_per_second` that came
    too much at once        TooManyError: all bodies of a service together have a bound too
    broken compression      BodyError

What is decompressed is handed on in steps of `STEP` bytes with a turn for others in between: a small body that stands for a huge
one costs its bound and no more.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, NamedTuple

from api.base.limits import Limits
from api.base.refusals import TooLargeError, TooManyError, TooSlowError
from api.edge.access_tokens import ApiRoute
from api.wire.bodies import BodyError, UnsupportedMediaError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

#: Requests that bring the text of one query.
ONE_QUERY = frozenset({("POST", "/v1/queries"), ("POST", "/v1/queries/validate"), ("PUT", "/v1/queries/{query}")})
#: Bytes that are decompressed at a time.
STEP = 1 << 20

_GZIP, _ZLIB, _RAW = 31, 15, -15


class ClientGoneError(Exception):
    """The client has closed the connection."""


class Inflater:
    """Decompresses a stream of bytes."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        #: of `deflate` there are two kinds, which the first byte tells apart
        self._stream: Any = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes in steps."""
        full = False
        while data or full:
            if self._stream is None:
                self._stream = zlib.decompressobj(_ZLIB if data[0] & 0x0F == 8 else _RAW)
            if self._stream.eof:
                if self._encoding != "gzip":
                    raise BodyError(f"something follows the {self._encoding} stream")
                self._stream = zlib.decompressobj(_GZIP)  # another member
            try:
                found = self._stream.decompress(data, STEP)
            except zlib.error as error:
                raise BodyError(f"the body is not {self._encoding}", detail=str(error)) from None
            self._begun = True
            yield found
            data = self._stream.unconsumed_tail or self._stream.unused_data
            full = len(found) == STEP and not self._stream.eof  # there may be more of what was fed

    def finish(self) -> None:
        """Raise if the stream is incomplete."""
        if self._begun and not self._stream.eof:
            raise BodyError(f"the {self._encoding} stream is cut off")


def inflater_of(encoding: str) -> Inflater | None:
    """Return the decompressor of a Content-Encoding; None if there is none."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip", "deflate"):
        return Inflater(name.removeprefix("x-"))
    fact = f'the content encoding "{name[:40]}" is not read'
    raise UnsupportedMediaError(fact, code="unsupported_encoding", hint="gzip, deflate, or none")


def time_allowed(limits: Limits, n_bytes: int) -> float:
    """Return the seconds that a body may take of which `n_bytes` have come."""
    return limits.read_seconds + n_bytes / limits.read_bytes_per_second


class Bound(NamedTuple):
    """The largest length of a body, and the hint of the error."""

    n_bytes: int
    hint: str

    def check(self, length: int) -> None:
        """Raise if a body is longer."""
        if length > self.n_bytes:
            raise TooLargeError(f"the body is larger than {self.n_bytes:,} bytes", hint=self.hint)


class BodyReader:
    """Reads the bodies of a service's requests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._any = Bound(limits.body_bytes, "send it in parts; compressed bodies count as what they stand for")
        query_bytes = min(limits.query_bytes, limits.body_bytes)
        self._query = Bound(query_bytes, f"the text of a query has at most {limits.sql_bytes:,} bytes")
        #: bytes of requests that were read and are not done with
        self.held = 0

    def bound_of(self, route: ApiRoute) -> Bound:
        """Return the largest length of a body on a route."""
        return self._query if (route.method, route.template) in ONE_QUERY else self._any

    async def read(self, receive: Receive, encoding: str, holding: Callable[[int], None], bound: Bound) -> bytes:
        """Read and decompress a whole body; `holding` is told of bytes as they are kept."""
        inflater = inflater_of(encoding)
        pieces: list[bytes] = []
        n_came = n_kept = 0
        loop = asyncio.get_running_loop()
        began = loop.time()
        more = True
        try:
            async with asyncio.timeout(time_allowed(self._limits, 0)) as deadline:
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    data: bytes = message.get("body", b"")
                    more = message.get("more_body", False)
                    n_came += len(data)
                    for piece in (data,) if inflater is None else inflater.feed(data):
                        n_kept += len(piece)
                        bound.check(n_kept)
                        self._admit(n_kept, len(piece))
                        holding(len(piece))
                        pieces.append(piece)
                        if inflater is not None:
                            await asyncio.sleep(0)
                    if more:
                        bound.check(n_came)
                        deadline.reschedule(began + time_allowed(self._limits, n_came))
        except TimeoutError:
            fact = f"the body came too slowly: {n_came} bytes in {loop.time() - began:.0f} s"
            raise TooSlowError(fact, hint="send less in one request") from None
        if inflater is not None:
            inflater.finish()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _admit(self, n_kept: int, n_bytes: int) -> None:
        # one body is always let in: it has a bound of its own
        if self.held + n_bytes > self._limits.receiving_bytes and self.held > n_kept - n_bytes:
            raise TooManyError("too many large requests at once", retry_after=1.0)
