"""The cost formulas, with numbers worked out by hand."""

from __future__ import annotations

import pytest

from lineage.errors import EddyError
from windows.costs import (
    Load,
    Upkeep,
    operator_cost,
    processing_cost,
    structure_of,
    upkeep_cost,
)

#: 2 and 3 rows a second, windows of 10 s and 20 s: 20 and 60 rows alive; 8 and 16 values; 5 results a second, 40 alive
LOAD = Load(rates=(2, 3), sizes=(20, 60), output_rate=5, output_size=40, distinct=(8, 16), premature_rate=0.5, aggregate_cost=4)
UPKEEP = Upkeep(partitions=10, eager_interval=0.5, lazy_interval=2)


@pytest.mark.parametrize(
    ("operator", "direct", "negative"),
    [
        ("select", 2 + 3, 10),
        ("union", 2 + 3, 10),
        # a row of the first input looks at the 60 of the second
        ("join", 2 * 60 + 3 * 20, 360),
        ("intersect", 180, 360),
        ("delta-star", 2 * 40 / 2, 80),
        # and 5 results end a second, each with a look at 20 rows / 40 values
        ("distinct", 40 + 5 * 20 / 40, 85),
        ("group-by", 2 * 2 * 4, 16),
        # 2 * 2 * log2 8 + 2 * 3 * log2 16, and half a premature end a second that looks at 20 / 8 rows
        ("minus", 2 * 2 * 3 + 2 * 3 * 4 + 0.5 * 2.5, 37.25),
    ],
)
def test_processing_costs_are_those_of_the_formulas(operator: str, direct: float, negative: float) -> None:
    assert processing_cost(operator, LOAD, negative=False) == direct
    assert processing_cost(operator, LOAD, negative=True) == negative


@pytest.mark.parametrize(
    ("structure", "cost", "premature"),
    [
        ("list", 3 + 60 / 0.5, 30),
        ("hash", 6, 1),
        ("fifo", 6, 30),
        # half of a partition of 6 rows is looked through at each insertion
        ("calendar by end", 3 * 3 + 3, 3),
        ("calendar by insertion", 6 + 6 / 2, 3),
    ],
)
def test_upkeep_costs_follow_the_structure(structure: str, cost: float, premature: float) -> None:
    assert upkeep_cost(structure, 3, 60, UPKEEP) == cost
    assert upkeep_cost(structure, 3, 60, UPKEEP, premature_rate=1) == cost + premature


def test_the_structure_is_that_of_the_pattern() -> None:
    def chosen(pattern: str, lazy: bool = False, frequent: bool = False) -> str:
        return structure_of("update-pattern", pattern, lazy=lazy, frequent_premature=frequent)

    assert [chosen(pattern) for pattern in ("monotonic", "weakest", "weak", "strict")] == [
        "fifo",
        "fifo",
        "calendar by end",
        "calendar by end",
    ]
    assert chosen("weak", lazy=True) == "calendar by insertion"
    assert chosen("strict", frequent=True) == "hash"
    assert structure_of("direct", "weakest", lazy=False) == "list"
    assert structure_of("negative", "weakest", lazy=False) == "hash"


def test_a_join_is_cheapest_by_update_patterns() -> None:
    costs = {
        expiry: operator_cost(expiry, "join", ("weakest", "weak"), LOAD, UPKEEP)
        for expiry in ("negative", "direct", "update-pattern")
    }
    assert costs == {
        "negative": 360 + (2 * 2 + 2 * 3),
        "direct": 180 + (2 + 20 / 0.5) + (3 + 60 / 0.5),
        "update-pattern": 180 + 4 + (6 + 6 / 2),
    }


def test_a_negation_with_many_premature_ends_is_cheaper_with_negative_tuples() -> None:
    many = Load(rates=(100, 100), sizes=(1e5, 1e5), output_rate=80, output_size=8e4, distinct=(1e4, 1e4), premature_rate=32)
    rare = operator_cost("update-pattern", "minus", ("weakest", "weakest"), many, UPKEEP)
    frequent = operator_cost("update-pattern", "minus", ("weakest", "weakest"), many, UPKEEP, frequent_premature=True)
    assert frequent < rare


def test_delta_star_keeps_no_input() -> None:
    with_input = operator_cost("update-pattern", "distinct", ("weak",), LOAD, UPKEEP)
    without = operator_cost("update-pattern", "delta-star", ("weak",), LOAD, UPKEEP)
    # the look for an heir, and the input: 2 rows a second, 20 alive, 2 a partition
    assert with_input - without == 5 * 20 / 40 + (2 + 2)


def test_words_without_costs_are_refused() -> None:
    for call in (
        lambda: processing_cost("sort", LOAD, negative=False),
        lambda: upkeep_cost("tree", 1, 1, UPKEEP),
        lambda: structure_of("piggyback", "weak", lazy=False),
    ):
        with pytest.raises(EddyError) as caught:
            call()
        assert caught.value.code == "bad_option"
