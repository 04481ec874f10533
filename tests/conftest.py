"""What holds for every test.

Kernels are compiled once, before any test calls one directly: a kernel that is called before `ensure` would compile itself into
the cache under a stamp that does not know the other files with kernels, and would be used there after one of them has
changed.

Under CI hypothesis draws the same examples every time, so a submission is judged by its change and not by luck; elsewhere
it draws new ones.

Tests marked `spark` share one local session: starting one takes ten seconds. Their Java compiles once and quickly, not again and
better: it ends before that pays, and takes half the CPU.

What was loaded before the first test stays to the end, so the garbage collector is told to leave it alone: it would look through
half a million objects again and again, a sixth of the time of the tests.

Of a test over many seeds the first `QUICK_SEEDS` are for every run, the others are marked `slow`; tests marked `long` are for
long runs alone: `tests/reference/seeds.py`.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from eddy.base.compile import ensure
from eddy.client import exchange
from tests.reference.seeds import LONG, QUICK_SEEDS
from tests.reference.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# no deadline by the clock: on a machine with other work an example takes as long as that lets it
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("own", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "own")

os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

ensure()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tally())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all but the first seeds of a test as slow; leave what is for long runs to them."""
    if not LONG:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    seeds: dict[str, set[object]] = {}
    for item in items:
        seed = getattr(item, "callspec", None) and item.callspec.params.get("seed")  # type: ignore[attr-defined]
        if seed is not None:
            known = seeds.setdefault(item.nodeid.partition("[")[0], set())
            if seed not in known and len(known) == QUICK_SEEDS:
                item.add_marker(pytest.mark.slow)
            else:
                known.add(seed)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client waits a millisecond before its second try, and never longer than ten."""
    monkeypatch.setattr(exchange, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(exchange, "MAX_DELAY", 0.01)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector, which then leaves alone all that is there."""
    gc.disable()
    found = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return found


def pytest_unconfigure() -> None:
    # what is frozen is not let go of at the end either, and DuckDB would list all that it finds of its own
    gc.unfreeze()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of every test that needs one."""
    from pipeline.session import spark_session

    with spark_session(tmp_path_factory.mktemp("spark"), master="local[2]") as session:
        yield session
