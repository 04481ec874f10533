"""Properties choose the case of a merge: the cheapest that they allow, by name only what they allow."""

from __future__ import annotations

from itertools import product

import pytest

from lineage.errors import EddyError
from lmerge.streams.properties import (
    CASES,
    INFERRED,
    ORDERS,
    InputProperties,
    choose_case,
    cleanse_properties,
    infer,
    shared_properties,
)


@pytest.mark.parametrize(
    ("properties", "case", "bag"),
    [
        (InputProperties("strict", True), "R0", False),
        (InputProperties("same", True, gap_free=True), "R1", False),
        (InputProperties("same", True, key=True), "R2", False),
        (InputProperties("same", True, gap_free=False), "R2", True),
        (InputProperties("ordered", True, key=True, gap_free=True), "R2", False),
        (InputProperties("ordered", True), "R2", True),
        (InputProperties("strict", False, key=True), "R3", False),
        (InputProperties("none", True, key=True), "R3", False),
        (InputProperties("none", True), "R4", False),
        (InputProperties(), "R4", False),
    ],
)
def test_the_cheapest_case_that_the_properties_allow_is_chosen(properties: InputProperties, case: str, bag: bool) -> None:
    choice = choose_case(properties)
    assert (choice.case, choice.bag) == (case, bag)
    assert choice.why


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("aggregate under SLIDE", "R0"),
        ("stream", "R1"),
        ("ISTREAM", "R1"),
        ("groups under SLIDE", "R2"),
        ("groups", "R3"),
        ("DISTINCT", "R3"),
        ("EXCEPT", "R3"),
        ("bag", "R4"),
    ],
)
def test_each_kind_of_query_has_its_case(kind: str, case: str) -> None:
    assert choose_case(infer(kind).properties).case == case
    assert infer(kind).why


def test_every_kind_of_query_is_tested() -> None:
    assert len(INFERRED) == 8


def test_what_is_chosen_may_also_be_asked_for_by_name() -> None:
    for order, insert_only, key, gap_free in product(ORDERS, (False, True), (False, True), (None, False, True)):
        properties = InputProperties(order, insert_only, key, gap_free)
        chosen = choose_case(properties)
        named = choose_case(properties, chosen.case)
        assert named.why == "asked for by name"
        assert (named.case, named.bag) == (chosen.case, chosen.bag)
        allowed = [case for case in CASES if not _refused(properties, case)]
        assert allowed[-1] == "R4" and chosen.case in allowed


def _refused(properties: InputProperties, case: str) -> bool:
    try:
        choose_case(properties, case)
    except EddyError as error:
        assert error.code == "bad_case"
        return True
    return False


def test_r1_is_taken_at_its_word_by_name_and_never_where_events_are_missing() -> None:
    ordered = InputProperties("ordered", True)
    assert choose_case(ordered, "R1").case == "R1"
    with pytest.raises(EddyError, match="case R1 needs inputs that are gap free"):
        choose_case(ordered._replace(gap_free=False), "R1")


def test_a_case_that_the_properties_do_not_allow_is_refused_with_what_it_lacks_and_what_fits() -> None:
    with pytest.raises(EddyError) as raised:
        choose_case(InputProperties("ordered", False, True), "R0")
    assert str(raised.value) == (
        "case R0 needs inputs that are strictly ordered and insert only\n"
        "known of these inputs: ordered, payload and start are a key\n"
        'hint: Declare it if it holds, or take R3, which case="auto" chooses.'
    )
    assert raised.value.code == "bad_case"


def test_an_unknown_case_and_an_unknown_word_are_named() -> None:
    with pytest.raises(EddyError, match='unknown case "R5"'):
        choose_case(InputProperties(), "R5")
    with pytest.raises(EddyError, match='unknown word "all" for missing'):
        choose_case(InputProperties(), missing="all")


def test_the_union_of_the_inputs_needs_events_that_can_be_told_apart() -> None:
    assert choose_case(InputProperties(key=True), missing="any").case == "R3"
    with pytest.raises(EddyError, match="can be told apart"):
        choose_case(InputProperties(), missing="any")


def test_cleanse_makes_a_disordered_input_fit_for_r1() -> None:
    cleansed = cleanse_properties(InputProperties(key=True, gap_free=True))
    assert cleansed.words() == "ordered in the same way, insert only, payload and start are a key, gap free"
    assert choose_case(cleansed).case == "R1"
    assert cleanse_properties(InputProperties("strict")).order == "strict"


def test_what_holds_for_a_merge_holds_for_all_of_its_inputs() -> None:
    one = InputProperties("strict", True, True, True)
    assert shared_properties([one, one]) == one
    assert shared_properties([one, InputProperties("ordered", True, False)]) == InputProperties("ordered", True, False, None)
    assert shared_properties([one._replace(gap_free=None), one._replace(gap_free=False)]).gap_free is False
    assert shared_properties([InputProperties()]).words() == "none"
