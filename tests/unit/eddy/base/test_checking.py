"""A commit that fails half way has changed something, and its error says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eddy import Engine
from eddy.base.checking import came_late


@pytest.mark.parametrize(
    ("step", "call"),
    [
        ("streams.table_source.TableSource.apply", lambda engine: engine.upsert("t", {"k": [1], "v": [2]})),
        ("streams.table_source.TableSource.apply", lambda engine: engine.delete("t", [1])),
        ("base.result_log.ResultLog.append", lambda engine: engine.push("s", {"k": [1], "ts": [1]})),
    ],
    ids=["upsert", "delete", "push"],
)
def test_an_error_inside_a_commit_came_late(
    step: str, call: Callable[[Engine], Any], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    engine = Engine()
    engine.create_table("t", {"k": "int", "v": "int"}, key="k")
    engine.create_stream("s", {"k": "int", "ts": "timestamp"}, time="ts")
    engine.upsert("t", {"k": [1], "v": [1]})

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(f"eddy.{step}", fail)
    with pytest.raises(MemoryError) as raised:
        call(engine)
    assert came_late(raised.value)
