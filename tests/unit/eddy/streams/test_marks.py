"""Which commit of a table a stream's rows came after."""

from __future__ import annotations

import numpy as np

from eddy.streams.marks import Marks


def test_a_row_came_after_the_last_mark_at_or_below_it() -> None:
    marks = Marks()
    for commit, end in ((3, 0), (5, 10), (6, 10), (9, 12)):
        marks.note(commit, end)
    marks.check(12)
    assert marks.commits_of(np.array([0, 9, 10, 11, 12, 50]), 0).tolist() == [3, 3, 6, 6, 9, 9]
    assert (marks.oldest, len(marks)) == (3, 3), "two marks at one end are one"


def test_marks_that_no_row_needs_are_trimmed() -> None:
    marks = Marks()
    for n in range(100):
        marks.note(n, 10 * n)
    marks.trim(905)
    assert (marks.oldest, len(marks)) == (90, 10) and marks.commits_of(np.array([905, 910]), 0).tolist() == [90, 91]
    marks.trim(10_000)
    assert (marks.oldest, len(marks)) == (99, 1)


def test_rows_from_before_a_query_count_as_if_they_had_come_when_it_began() -> None:
    marks = Marks()
    marks.note(7, 10)
    marks.reach_back(4)
    marks.check(10)
    assert marks.commits_of(np.array([4, 9]), 7).tolist() == [7, 7]
    marks.note(9, 10)
    marks.note(11, 12)
    marks.check(12)
    assert marks.commits_of(np.array([4, 9, 10, 12]), 7).tolist() == [7, 7, 9, 11]
    assert marks.oldest < 7, "what counted when it began is held"
    marks.trim(10)
    assert (marks.oldest, len(marks)) == (9, 2)
    marks.reach_back(11)
    assert len(marks) == 2, "marked already"
