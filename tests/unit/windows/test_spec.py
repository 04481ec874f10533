"""Window specifications: what they promise the engine."""

from __future__ import annotations

import pytest

from windows.spec import FOREVER, WindowSpec

MINUTE = 60_000_000
#: spec, text, is_stream, ends, update pattern, width
SPECS = [
    (WindowSpec.none(), "no window", True, False, "monotonic", 0),
    (WindowSpec.now(), "[NOW]", False, True, "weakest", 1),
    (WindowSpec.unbounded(), "[RANGE UNBOUNDED]", False, False, "monotonic", FOREVER),
    (WindowSpec.range(5 * MINUTE), "[RANGE 5 MINUTES]", False, True, "weakest", 5 * MINUTE),
    (WindowSpec.range(7), "[RANGE 7 MICROSECONDS]", False, True, "weakest", 7),
    (WindowSpec.newest(10), "[ROWS 10]", False, True, "strict", FOREVER),
    (WindowSpec.newest(10, width_us=MINUTE), "[ROWS 10 RANGE 1 MINUTE]", False, True, "strict", MINUTE),
    (WindowSpec.newest(3, [2, 0]), "[PARTITION BY #0, #2 ROWS 3]", False, True, "strict", FOREVER),
    (WindowSpec.newest(3, [1], 1000), "[PARTITION BY #1 ROWS 3 RANGE 1 MILLISECOND]", False, True, "strict", 1000),
]


@pytest.mark.parametrize("row", SPECS, ids=[row[1] for row in SPECS])
def test_a_window_says_what_it_is(row: tuple[WindowSpec, str, bool, bool, str, int]) -> None:
    spec = row[0]
    assert (str(spec), spec.is_stream, spec.ends, spec.update_pattern, spec.width_us) == row[1:]


def test_windows_with_the_same_rows_are_one_key() -> None:
    assert WindowSpec.newest(3, [2, 0]) == WindowSpec.newest(3, [0, 2, 2])
    assert len({spec for spec, *_ in SPECS} | {WindowSpec.newest(3, (0, 2)), WindowSpec.newest(10)}) == len(SPECS)


def test_key_columns_are_said_by_name() -> None:
    assert WindowSpec.newest(3, [2, 0]).say(["a", "b", "c"]) == "[PARTITION BY a, c ROWS 3]"
    assert WindowSpec.now().say(["a"]) == "[NOW]"
