"""A collection of ways to break the engine, by what is broken: tests of the tests apply one and want it noticed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eddy import Engine

#: Breaks something through a monkeypatch.
Patch = Callable[[pytest.MonkeyPatch], None]


def leave_it_to_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the engine's own `check`, which would notice at once."""
    monkeypatch.setattr(Engine, "check", lambda self: None)


class Breaks(dict[str, Patch]):
    """What is broken -> the function that breaks it; called as a decorator with the words."""

    def __call__(self, what: str) -> Callable[[Patch], Patch]:
        def add(patch: Patch) -> Patch:
            assert what not in self, f"{what}: twice"
            self[what] = patch
            return patch

        return add
