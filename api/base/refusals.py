"""Errors of requests that are refused before any work is done; each class has its HTTP status."""

from __future__ import annotations

from typing import ClassVar

from eddy import EddyError


class Refusal(EddyError):
    """A request was refused before it reached the application."""

    status: ClassVar[int] = 400
    #: seconds after which it may be tried again
    retry_after: float | None = None


class UnauthorizedError(Refusal):
    """The request has no token, or an unknown one."""

    default_code = "unauthorized"
    status = 401


class ForbiddenError(Refusal):
    """The token's role, or the web page that sent the request, does not allow the call."""

    default_code = "forbidden"
    status = 403


class TooSlowError(Refusal):
    """The bytes of the request came too slowly."""

    default_code = "too_slow"
    status = 408


class TooLargeError(Refusal):
    """The body of the request is too large."""

    default_code = "too_large"
    status = 413


class MisdirectedError(Refusal):
    """The Host header of the request names another server."""

    default_code = "other_host"
    status = 421


class TooManyError(Refusal):
    """The client sent too many requests."""

    default_code = "too_many_requests"
    status = 429

    def __init__(self, fact: str, *, retry_after: float, hint: str = "") -> None:
        super().__init__(fact, hint=hint or "try again after the seconds that Retry-After says")
        self.retry_after = retry_after
