"""The windows of a stream against a look at every row."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eddy import Engine
from eddy.matching.match_filters import FEW_BOUNDS, count_up_to
from eddy.streams.window_classes import WindowClasses
from windows.spec import FOREVER, WindowKind, WindowSpec

WIDTHS = (1, 7, 40, 400)


def test_every_window_moves_to_its_first_row_alive_and_says_what_left() -> None:
    rng = random.Random(4)
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp[us]"}, time="ts")
    for width in WIDTHS:
        engine.submit(f"SELECT v FROM s [RANGE {width} MICROSECONDS]")
    engine.submit("SELECT v FROM s [RANGE UNBOUNDED]")
    engine.submit("SELECT v FROM s")
    source = engine._catalog.sources["s"]
    assert [window.window.width_us for window in source.expiry.windows()] == sorted(WIDTHS, reverse=True)
    times: list[int] = []
    clock = 0
    for _ in range(60):
        came = sorted(rng.choices(range(clock, clock + 30), k=rng.randint(1, 20)))
        engine.push("s", {"v": came, "ts": came})
        times += came
        clock = max(clock, came[-1]) + rng.choice([0, 0, 3, 50])
        before = {window.window.width_us: window.oldest for window in source.expiry.windows()}
        moved = source.expiry.move(clock)
        left = {} if moved is None else {held.window.width_us: (first, last) for held, _, first, last in zip(*moved, strict=True)}
        for width in WIDTHS:
            alive = next((at for at, time in enumerate(times) if time > clock - width), len(times))
            assert left.get(width, (before[width], before[width])) == (before[width], alive), (
                "from where it stood to the first alive"
            )
        assert source.expiry.move(clock) is None, "nothing leaves twice"


def test_a_window_that_comes_or_goes_is_noticed() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp[us]"}, time="ts")
    expiry = engine._catalog.sources["s"].expiry
    assert expiry.windows() == [] and expiry.move(5) is None and expiry.most_ends(10) == 0
    engine.submit("SELECT v FROM s [RANGE 9 MICROSECONDS]", name="nine")
    engine.submit("SELECT v FROM s [RANGE 5 MICROSECONDS]", name="five")
    assert len(expiry.windows()) == 2 and expiry.narrowest_us == 5
    engine.push("s", {"v": [1, 2, 3], "ts": [1, 2, 3]})
    assert expiry.most_ends(10) == 2 * 13
    engine.cancel("five")
    assert len(expiry.windows()) == 1 and expiry.narrowest_us == 9


@pytest.mark.parametrize("n_bounds", [0, 1, 5, FEW_BOUNDS, FEW_BOUNDS + 1, 200])
def test_the_bounds_up_to_a_position_are_counted(n_bounds: int) -> None:
    rng = np.random.default_rng(n_bounds)
    bounds = np.sort(rng.integers(0, 300, n_bounds))
    positions = rng.integers(-5, 310, 500)
    ranks = np.empty(500, np.int32)
    count_up_to(bounds, positions, ranks)
    assert ranks.tolist() == np.searchsorted(bounds, positions, "right").tolist()


# -- The window classes of a stream, against a look at all of them -----------------------------------------------------


def drawn(chance: random.Random) -> WindowSpec:
    width = chance.choice([1000, 2000, 3000, 5000])
    return chance.choice([
        WindowSpec.none(), WindowSpec.now(), WindowSpec.unbounded(), WindowSpec.range(width), WindowSpec.sliding(width, 1000),
        WindowSpec.newest(chance.randrange(1, 9), width_us=chance.choice([width, FOREVER])),
        WindowSpec.newest(chance.randrange(1, 9), [chance.randrange(2)], chance.choice([width, FOREVER])),
    ])  # fmt: skip


def contains(outer: WindowSpec, inner: WindowSpec) -> bool:
    return outer.partition == inner.partition and outer.rows >= inner.rows and outer.width_us >= inner.width_us


@pytest.mark.parametrize("seed", range(4))
def test_classes_that_come_and_go_are_found_as_a_look_at_all_of_them_finds_them(seed: int) -> None:
    chance = random.Random(seed)
    classes, held, end = WindowClasses(), dict[WindowSpec, int](), 100
    for _ in range(400):
        window = drawn(chance)
        end += chance.randrange(3)
        by_clock = [known for known in held if known.kind not in (WindowKind.NONE, WindowKind.ROWS)]
        if window in held:
            if chance.random() < 0.5:
                classes.remove(classes[window])
                del held[window]
            elif window in by_clock:
                oldest = chance.randrange(end)
                classes.reach_back(window.width_us, oldest)
                for known in by_clock:
                    if known.width_us >= window.width_us:
                        held[known] = min(held[known], oldest)
        else:
            narrower = [held[known] for known in by_clock if known.width_us <= window.width_us]
            found = classes.add(window, end)
            held[window] = min(narrower, default=end)
            assert found.oldest == held[window], "it holds what a narrower one does"
        classes.check()
        assert {known: classes[known].oldest for known in classes} == held
        assert len(classes) == len(held) and classes.any_ends == any(known.ends for known in held)
        counted = [known for known in held if known.kind is WindowKind.ROWS]
        outermost = list(classes.outermost())
        assert set(outermost) <= set(counted), "they are windows that somebody has"
        assert all(any(contains(outer, inner) for outer in outermost) for inner in counted), "they hold what any holds"
        assert not any(contains(one, other) for one in outermost for other in outermost if one != other), (
            "and no more than needed"
        )


def test_numbers_of_classes_that_went_are_used_again() -> None:
    classes = WindowClasses()
    numbers = [classes.add(WindowSpec.range(width), 0).number for width in (1, 2, 3)]
    classes.remove(classes[WindowSpec.range(2)])
    assert numbers == [0, 1, 2] and classes.n_numbers == 3
    assert classes.add(WindowSpec.newest(5), 0).number == 1 and classes.n_numbers == 3
