"""Requests and their retries, shared by the blocking and the asynchronous client.

A call is a generator that yields `Request`s and is sent `Reply`s (`eddy/client/calls.py`). `performed` makes of it a generator of
*effects*, which is all that a client has to carry out:

    Send(request)    ->  Reply, or raises `httpx.TransportError`
    Sleep(seconds)
    Open(request)    ->  Reply: a stream begins, or was refused (`eddy/client/following.py`)
    Read()           ->  its next bytes, b"" at its end
    Give(message)        whoever asked is given something

A request is tried again when the service says that it is busy, when it cannot be reached, or when the connection broke and doing
it twice is the same as once: rows carry an idempotency key. Tries are spread out and end after `patience` seconds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from eddy.client.problems import UnreachableError, error_of
from lineage.errors import EddyError

T = TypeVar("T")

#: Seconds before the second try, and the longest time between two that the service did not ask for.
FIRST_DELAY = 0.1
MAX_DELAY = 5.0
#: Codes of a 503 with which nothing was done.
_NOT_DONE = ("recovering", "stopping")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to the service."""

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: whether doing it twice is the same as once
    repeatable: bool = False
    #: seconds that the service may take on purpose, beyond the client's timeout
    slow: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The service's reply; that of an open stream has no body yet."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Send:
    request: Request


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(frozen=True, slots=True)
class Open:
    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    pass


@dataclass(frozen=True, slots=True)
class Give:
    message: Any


Effect = Send | Sleep | Open | Read | Give
#: A call: yields requests, is sent replies, returns a result.
Call = Generator[Request, Reply, T]
#: A call as effects.
Steps = Generator[Effect, Any, T]


@dataclass(slots=True)
class Patience:
    """The seconds for which a client retries; `met` once the service has replied: it is not waited for before."""

    seconds: float
    met: bool = False


def performed(call: Call[T], patience: Patience) -> Steps[T]:
    """Turn a call into effects, with retries."""
    try:
        request = next(call)
        while True:
            try:
                reply = yield from attempts(request, patience)
            except EddyError as error:
                request = call.throw(error)
            else:
                request = call.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


def attempts(request: Request, patience: Patience) -> Steps[Reply]:
    """Return the successful reply to a request, with retries; raise an `EddyError` otherwise."""
    pause = Pause(patience)
    while True:
        try:
            reply: Reply = yield Send(request)
        except httpx.TransportError as error:
            failure: EddyError = unreachable(error, request)
            if not (never_sent(error) or request.repeatable) or (never_sent(error) and not patience.met):
                raise failure from None
            asked = 0.0
        else:
            patience.met = True
            if reply.status < 400:
                return reply
            failure, asked = error_of(reply.status, reply.body), retry_after(reply)
            if not passing(reply, failure, request.repeatable):
                raise failure
        yield pause.next(failure, asked)


def until_ready(seconds: float, patience: Patience) -> Steps[None]:
    """Wait until the service takes calls."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            reply = yield Send(Request("GET", "/readyz"))
            if reply.status == 200:
                patience.met = True
                return
        except httpx.TransportError:
            pass  # it is not there yet
        if time.monotonic() > deadline:
            raise UnreachableError(f"the service is not ready after {seconds:.0f} s", hint="eddy serve starts one")
        yield Sleep(0.05)


class Pause:
    """The waiting times between retries: twice the last one or what the service asks for, plus a random part."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.reset()

    def reset(self) -> None:
        """Start again with the shortest wait, after a success."""
        self._delay = FIRST_DELAY
        self._began: float | None = None

    def next(self, failure: EddyError, asked: float = 0.0) -> Sleep:
        """Return the wait before the next try; raise the failure when the patience is over."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        seconds = max(self._delay, asked) * (1 + random.random() / 4)
        if now - self._began + seconds > self._patience.seconds:
            raise failure
        self._delay = min(2 * self._delay, MAX_DELAY)
        return Sleep(seconds)


def passing(reply: Reply, failure: EddyError, repeatable: bool) -> bool:
    """Return whether an error may pass, and a retry cannot execute the request twice."""
    return reply.status == 429 or (reply.status == 503 and (repeatable or failure.code in _NOT_DONE))


def never_sent(error: httpx.TransportError) -> bool:
    """Return whether the service cannot have received any of the request."""
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def retry_after(reply: Reply) -> float:
    """Return the seconds that the service asks to wait; 0 if it does not say."""
    text = reply.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0.0


def unreachable(error: httpx.TransportError, request: Request) -> UnreachableError:
    """Return the error for a connection that could not be made, or that broke."""
    if never_sent(error):
        return UnreachableError("the service cannot be reached", detail=_why(error), hint="is it running? eddy serve starts one")
    if isinstance(error, httpx.TimeoutException):
        return UnreachableError("the service did not answer in time", code="timeout", detail=f"{request.method} {request.path}")
    return UnreachableError("the connection to the service broke", code="broken", detail=_why(error))


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
