"""Why a request is turned away before anything is done with it; each reason has its status."""

from __future__ import annotations

from typing import ClassVar

from eddy import EddyError


class Refusal(EddyError):
    """A request that is turned away at the door."""

    status: ClassVar[int] = 400
    #: seconds after which it may be tried again
    retry_after: float | None = None


class UnauthorizedError(Refusal):
    """No token, or one that is not known."""

    default_code = "unauthorized"
    status = 401


class ForbiddenError(Refusal):
    """The role of the token, or the page that a browser shows, does not allow the call."""

    default_code = "forbidden"
    status = 403


class TooSlowError(Refusal):
    """The request came too slowly."""

    default_code = "too_slow"
    status = 408


class TooLargeError(Refusal):
    """The body is too large."""

    default_code = "too_large"
    status = 413


class MisdirectedError(Refusal):
    """The request names another host."""

    default_code = "other_host"
    status = 421


class TooManyError(Refusal):
    """Too many requests."""

    default_code = "too_many_requests"
    status = 429

    def __init__(self, fact: str, *, retry_after: float, hint: str = "") -> None:
        super().__init__(fact, hint=hint or "try again after the seconds that Retry-After says")
        self.retry_after = retry_after
