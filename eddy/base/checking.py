"""Marks on errors: whether anything had changed when an error was raised.

    with checking:          an error raised in here came before any change: while a call was read, checked, looked up
    with changing:          an error raised in here came during or after a change, even from a check inside
    @changing               the same for a whole function

    changed_nothing(error)  whether it has the mark of `checking`
    came_late(error)        whether it has the mark of `changing`

Without a mark an error counts as one that came too late. So a call that forgets to say where its checks end is never taken for
harmless; it costs the service that made it a restart. The code in `checking` is tried by failures at every step
(`tests/unit/api/test_injected.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Part:
    """A stretch of a call whose errors are marked."""

    __slots__ = ("_before",)

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._mark(error)

    def _mark(self, error: BaseException) -> None:
        if not self._before or getattr(error, "came_before", None) is None:
            error.came_before = self._before  # type: ignore[attr-defined]  # errors have a dict

    def __call__(self, do: Callable[P, T]) -> Callable[P, T]:
        @wraps(do)
        def done(*given: P.args, **named: P.kwargs) -> T:
            # as `with self`, at no cost where nothing is raised
            try:
                return do(*given, **named)
            except BaseException as error:
                self._mark(error)
                raise

        return done


checking = _Part(True)
changing = _Part(False)


def changed_nothing(error: BaseException) -> bool:
    """Whether an error came before anything was changed."""
    return getattr(error, "came_before", None) is True


def came_late(error: BaseException) -> bool:
    """Whether an error is known to have come after something had changed."""
    return getattr(error, "came_before", None) is False
