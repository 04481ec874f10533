"""The window classes of a stream, against a look at all of them."""

from __future__ import annotations

import random

import pytest

from eddy.streams.window_classes import WindowClasses
from windows.spec import FOREVER, WindowKind, WindowSpec


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
