"""Would the random histories notice a broken operator? Each mutant changes one expression of one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import windows.aggregates.chains
import windows.aggregates.distinct_counts
import windows.aggregates.extremes
import windows.operators.distinct
import windows.operators.group_by
import windows.operators.intersect
import windows.operators.join
import windows.operators.join_keys
import windows.operators.pair_walk
import windows.operators.set_operation
import windows.operators.to_stream
import windows.operators.union
import windows.operators.window
import windows.state.netting
from eddy.base.compile import ensure
from lineage.schema import Type
from tests.reference.mutants import mutated
from tests.unit.windows.histories import compare, random_history
from tests.unit.windows.operators import (
    test_group_by,
    test_join,
    test_recipient,
    test_set_operation,
    test_to_stream,
    test_window_operators,
)
from windows.aggregates.operands import Operand
from windows.operators.recipient import Recipient
from windows.operators.slide import SlideOperator
from windows.spec import WindowSpec
from windows.state.cells import Cells
from windows.state.due import Calendar
from windows.state.rows import LiveRows

pytestmark = pytest.mark.slow

ensure()


def run_delta_star() -> None:
    test_set_operation.test_delta_star_shows_each_value_once_and_says_when_it_ends(Calendar, 1)


def run_intersect_star() -> None:
    test_set_operation.test_intersect_star_shows_what_both_sides_have_and_says_when_it_ends(Calendar, 1)


def run_set_operations() -> None:
    test_set_operation.test_after_every_event_the_output_has_the_copies_that_the_counts_say(("except", True), "calendar")


def run_values() -> None:
    test_set_operation.test_strings_and_floats_are_values_by_what_they_say()


def run_union() -> None:
    test_set_operation.test_union_all_has_the_rows_of_all_inputs(2)


def run_join() -> None:
    test_join.test_no_key_is_a_cross_product_and_two_keys_both_count(3)


def run_rows_window() -> None:
    test_window_operators.test_a_window_holds_the_newest_rows_in_its_range(WindowSpec.newest(2, [0, 1], 15), False)


def run_slide() -> None:
    test_window_operators.test_rows_are_shown_in_the_extents_of_the_last_boundary(20, 5, False)


def run_istream() -> None:
    test_to_stream.test_a_row_for_each_net_change_of_each_event(1, "calendar")


def run_rstream() -> None:
    test_to_stream.test_the_whole_answer_at_each_instant_at_which_it_changed("calendar")


def run_group_by() -> None:
    test_group_by.test_after_every_event_each_group_has_the_aggregates_of_its_rows("calendar", 1)


def run_scalar() -> None:
    test_group_by.test_after_every_event_each_group_has_the_aggregates_of_its_rows("calendar", 0)


def run_recipient() -> None:
    test_recipient.test_changes_net_by_value_and_the_latest_remain("event", "calendar")


#: (where, function, what it says, what it says instead, what has to notice)
MUTANTS: dict[str, tuple[Any, str, str, str, Callable[[], None]]] = {
    "delta-star keeps the youngest": (
        windows.operators.distinct, "star", "max(reserve[code], ends[k])", "ends[k]", run_delta_star,
    ),
    "delta-star forgets its reserve": (
        windows.operators.distinct, "star", "elif ends[k] > shown[code]:", "elif ends[k] > shown[code] + 10:", run_delta_star,
    ),
    "intersect-star keeps the youngest": (
        windows.operators.intersect, "meet", "max(latest[sides[k], code], ends[k])", "ends[k]", run_intersect_star,
    ),
    "intersect-star lets go when one side ends": (
        windows.operators.intersect, "meet",
        "if max(latest[0, code], latest[1, code])", "if min(latest[0, code], latest[1, code])",
        run_intersect_star,
    ),
    "counts are compared once an instant": (
        windows.operators.set_operation, "_count_side", "times[at] == time and ranks[at] == rank", "times[at] == time",
        run_set_operations,
    ),
    "a premature end of a part does not end its combinations": (
        windows.operators.pair_walk, "walk_pairs", "sends_ends or times[k] < end", "sends_ends", run_join,
    ),
    "beginnings before ends": (
        windows.operators.join.PairJoin, "_walked", "for sign in (-1, 1)", "for sign in (1, -1)", run_join,
    ),
    "NULL keys meet": (
        windows.operators.join_keys, "key_columns", "usable &= ~column.nulls", "pass", run_join,
    ),
    "ROWS n holds n - 1": (
        windows.operators.window, "walk_newest", "- n_newest", "- n_newest + 1", run_rows_window,
    ),
    "a displaced row ends again": (
        windows.operators.window, "walk_newest", "elif displaced[slot] == 0:", "else:", run_rows_window,
    ),
    "a row is in the extent of its own start": (
        SlideOperator, "_kept", "first = (plus.times // s + 1) * s", "first = -(-plus.times // s) * s", run_slide,
    ),
    "an extent is open at its start": (
        SlideOperator, "_kept", "last = (t + self._width) // s * s", "last = (t + self._width - 1) // s * s", run_slide,
    ),
    "nothing cancels": (
        windows.state.netting, "net_groups", "cancelled = min(counts[code, 0], counts[code, 1])", "cancelled = 0", run_istream,
    ),
    "an instant is answered before it has passed": (
        windows.operators.to_stream, "walk_answers", "state[_INSTANT] < time", "state[_INSTANT] <= time", run_rstream,
    ),
    "an answer without a net change": (
        windows.operators.to_stream, "walk_answers", "marks[seat_of[codes[k]]] += more", "marks[seat_of[codes[k]]] += 1",
        run_rstream,
    ),
    "groups are read once an instant": (
        windows.operators.group_by, "number_events",
        "times[k] != times[k - 1] or ranks[k] != ranks[k - 1]", "times[k] != times[k - 1]",
        run_group_by,
    ),
    "the first step of an event is read": (
        windows.operators.group_by, "number_readings", "for k in range(n - 1, -1, -1)", "for k in range(n)", run_group_by,
    ),
    "a group without rows has a row": (
        windows.operators.group_by, "list_changes", "stands = scalar or rows[k] > 0", "stands = True", run_group_by,
    ),
    "a scalar aggregate of no rows has none": (
        windows.operators.group_by, "list_changes", "stands = scalar or rows[k] > 0", "stands = rows[k] > 0", run_scalar,
    ),
    "NULLs count": (
        Operand, "enter", "if self.column is not None and not self.with_nulls:", "if False:", run_group_by,
    ),
    "FILTER passes NULL": (
        Operand, "enter", "if passed.nulls is not None:", "if False:", run_group_by,
    ),
    "the last value left, the chain did not": (
        windows.aggregates.chains, "walk_chains", "ends[_TAIL, group] = before", "pass", run_group_by,
    ),
    "halves of a median are not balanced": (
        windows.aggregates.extremes, "walk_medians", "if excess < 0 or excess > 1:", "if excess > 1:", run_group_by,
    ),
    "every copy is distinct": (
        windows.aggregates.distinct_counts, "walk_distinct", "counts[group] -= copies[pair] > 0", "pass", run_group_by,
    ),
    "instants are not told apart": (
        Recipient, "process", "group_stops(events.times)", "group_stops(events.times // 10)", run_recipient,
    ),
    "+ before -": (
        windows.state.netting, "net_groups", "for side in range(2)", "for side in (1, 0)", run_recipient,
    ),
    "rows that ended early stay in the buffer": (
        LiveRows, "apply", "self.buffer.remove(", "(lambda *_: None)(", run_set_operations,
    ),
    "rows share slots": (
        LiveRows, "apply", "self._enter(plus.ids, plus.ends)", "self._enter(plus.ids, plus.ends) % 16", run_set_operations,
    ),
    "-0.0 is not 0.0": (
        Cells, "encoded", "values = values + 0.0", "values = values * 1.0", run_values,
    ),
    "inputs of a union share ids": (
        windows.operators.union, "_numbered", "part * len(ids) + k", "part * len(ids)", run_union,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MUTANTS)
def test_a_broken_operator_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, old, new, run = MUTANTS[what]
    broken = mutated(where, name, old, new)
    monkeypatch.setattr(where, name, broken)
    if where in (windows.operators.join_keys, windows.operators.pair_walk):
        monkeypatch.setattr(windows.operators.join, name, broken)
    if name == "_count_side":
        # a helper is part of the compiled kernel: run that as plain Python too
        monkeypatch.setattr(where, "count_events", where.count_events.py_func)
    with pytest.raises(AssertionError):
        run()


def test_the_mutants_differ_from_the_operators_by_their_change_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel run as plain Python does what it does compiled."""
    plain = mutated(windows.operators.set_operation, "count_events", "sizes[0] = n_plus", "sizes[0] = n_plus")
    monkeypatch.setattr(windows.operators.set_operation, "count_events", plain)
    operator = test_set_operation.distinct([Type.INT], LiveRows(Calendar()))
    compare(operator, random_history(1), 1, lambda bags: Counter(set(+bags[0])))
