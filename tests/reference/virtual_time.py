"""An event loop whose clock leaps: nothing is waited for, so tests of deadlines are quick and exact."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Leaping(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found and timeout:
            self.now += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now


def run(what: Coroutine[Any, Any, T]) -> T:
    """Run something in virtual time, from 0 on."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(what)
