"""An engine that is dumped and loaded again between calls: whoever drives it must not notice.

`Reloading(seed)` makes engines for the drivers (`harness.py`, `window_harness.py`). Before some of the calls, drawn from the
seed, the engine is replaced by `load_state(dump_state(engine))`; listeners are registered again, as a program would after a
restart, and what was submitted is known by its number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from eddy import Engine, Query
from eddy.state.dump import dump_state, load_state


def state_bytes(engine: Engine) -> list[bytes]:
    """All that an engine holds, as a service writes it."""
    return [bytes(part) for part in dump_state(engine)]


def reloaded(engine: Engine) -> Engine:
    """An engine with the state of another one, as after a restart."""
    return load_state(state_bytes(engine))


class Handle:
    """A query of whatever engine there is now; of the same class as that query."""

    def __init__(self, of: ReloadedEngine, id: int) -> None:
        self._of = of
        self.id = id

    @property
    def __class__(self) -> Any:
        return type(self._query())

    def _query(self) -> Query:
        return self._of.engine._catalog.queries[self.id]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query(), name)


class ReloadedEngine:
    """The calls of an engine."""

    def __init__(self, engine: Engine, rng: random.Random, chance: float) -> None:
        self.engine = engine
        self.n_reloads = 0
        self._rng = rng
        self._chance = chance
        self._listeners: list[Callable[[Any], None]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.engine, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            if self._rng.random() < self._chance:
                self.reload()
            args = tuple(arg.id if isinstance(arg, Query) else arg for arg in args)
            result = getattr(self.engine, name)(*args, **options)
            return Handle(self, result.id) if isinstance(result, Query) else result

        return call

    def on_commit(self, fn: Callable[[Any], None]) -> None:
        self._listeners.append(fn)
        self.engine.on_commit(fn)

    def reload(self) -> None:
        clock = self.engine._clock
        parts = state_bytes(self.engine)
        # whatever of it was not copied is gone
        self.engine.close()
        self.engine = load_state(parts, clock=clock)
        for fn in self._listeners:
            self.engine.on_commit(fn)
        self.n_reloads += 1


class Reloading:
    """Makes such engines; `n_reloads` counts those of all of them."""

    def __init__(self, seed: int, make: Callable[..., Engine] = Engine, chance: float = 0.1) -> None:
        self._rng = random.Random(seed)
        self._make = make
        self._chance = chance
        self._made: list[ReloadedEngine] = []

    def __call__(self, **options: Any) -> ReloadedEngine:
        self._made.append(ReloadedEngine(self._make(**options), self._rng, self._chance))
        return self._made[-1]

    @property
    def n_reloads(self) -> int:
        return sum(made.n_reloads for made in self._made)
