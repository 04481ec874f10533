"""The LMerge experiments for real at a small size, and their generator: presentations of one table, answers of the sub-query."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from experiments.experiment import column, one, where
from experiments.lmerge import (
    merge_bursts,
    merge_chatter,
    merge_cleanse,
    merge_congestion,
    merge_inputs,
    merge_lag,
    merge_stables,
)
from experiments.lmerge.arrivals import arrived, per_second, play, sent
from experiments.lmerge.case_costs import measured
from experiments.lmerge.contestants import (
    CleansedContestant,
    ContestSize,
    KernelContestant,
    MergeContestant,
    PrintedContestant,
    mean_bytes,
)
from experiments.lmerge.count_query import CountQuery
from experiments.lmerge.generator import (
    PAYLOAD_BYTES,
    SECOND_US,
    VALUES,
    GeneratorSettings,
    make_table,
    presentations,
    rounds,
    take,
)
from lineage.elements import FOREVER
from lmerge.merge import make_merge
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch
from lmerge.streams.table import TemporalTable, find_fault, reconstitute

SMALL = GeneratorSettings(elements=5000, stables=0.02, active=200, disorder=0.3)
#: Windows of some 20 elements of the small stream.
QUERY = CountQuery(width_us=200 * SECOND_US, base_us=1000 * SECOND_US, step_us=100 * SECOND_US)


def same(a: TemporalTable, b: TemporalTable) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a[:4], b[:4]))


# -- The generator -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disorder", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_presentations_are_valid_and_make_one_table(disorder: float, seed: int) -> None:
    settings = GeneratorSettings(elements=5000, stables=0.02, active=200, disorder=disorder)
    streams = presentations(settings, seed, 3)
    table = reconstitute([make_table(settings, seed)])
    for stream in streams:
        assert find_fault([stream], key=True) is None
        assert same(reconstitute([stream]), table) and stream.ends[-1] == FOREVER
        assert all(column.flags.c_contiguous and column.dtype == np.int64 for column in stream)
    assert not np.array_equal(streams[0].ends, streams[1].ends), "they differ physically"


def test_the_stream_has_the_shares_that_were_asked_for() -> None:
    settings = GeneratorSettings(elements=50_000)
    (stream,) = presentations(settings, 3, 1)
    stables = np.flatnonzero(stream.kinds == STABLE)
    assert len(stream.kinds) == pytest.approx(50_000, rel=0.01) and len(stables) == pytest.approx(500, rel=0.15)
    assert np.diff(stables).min() > 1, "an insert stands between two stables"
    inserts = take(stream, stream.kinds == INSERT)
    late = inserts.starts < np.maximum.accumulate(inserts.starts)
    assert late.mean() == pytest.approx(0.2, abs=0.03), "moved back, and not by nothing"
    table = make_table(settings, 3)
    alive = np.arange(1, len(table.starts) + 1) - np.searchsorted(np.sort(table.ends), table.starts, side="right")
    assert alive[20_000:].mean() == pytest.approx(10_000, rel=0.05)
    gaps = np.diff(table.starts)
    assert gaps.min() >= 1 and gaps.max() <= 20 * SECOND_US and gaps.mean() == pytest.approx(10 * SECOND_US, rel=0.05)
    values = table.payloads % VALUES
    assert values.min() == 0 and values.max() == 400 and len(set(table.payloads.tolist())) == len(table.payloads)


def test_the_same_seed_gives_the_same_stream() -> None:
    again, other = presentations(SMALL, 4, 2), presentations(SMALL, 5, 2)
    for a, b in zip(presentations(SMALL, 4, 2), again):
        assert all(np.array_equal(x, y) for x, y in zip(a, b))
    assert not np.array_equal(again[0].starts, other[0].starts)


def counted_slowly(stream: ElementBatch, query: CountQuery) -> list[tuple[int, int, int, int, int]]:
    """The count query, element by element."""
    counts: Counter[tuple[int, int]] = Counter()
    over = said = -1
    out: list[tuple[int, int, int, int, int]] = []

    def end(cell: tuple[int, int]) -> int:
        return cell[0] * query.width_us + query.base_us + query.step_us * counts[cell]

    def finish(window: int) -> None:
        nonlocal over
        for cell in sorted(cell for cell in counts if over < cell[0] < window):
            out.append((INSERT, cell[0] * query.width_us, cell[1], 0, end(cell)))
        over = max(over, window - 1)

    for kind, start, payload, _, point in zip(*(part.tolist() for part in stream)):
        if kind == STABLE:
            finish(point // query.width_us)
            reached = point if point == FOREVER else point // query.width_us * query.width_us
            if reached > max(said, 0):
                said = reached
                out.append((STABLE, 0, 0, 0, reached))
            continue
        cell = (start // query.width_us, payload % VALUES)
        finish(cell[0])
        old = end(cell)
        counts[cell] += 1
        if cell[0] <= over:
            kind = INSERT if counts[cell] == 1 else ADJUST
            out.append((kind, cell[0] * query.width_us, cell[1], 0 if kind == INSERT else old, end(cell)))
    return out


@pytest.mark.parametrize("disorder", [0.0, 0.3, 1.0])
def test_the_count_query_equals_its_slow_twin(disorder: float) -> None:
    settings = GeneratorSettings(elements=3000, stables=0.02, disorder=disorder, back_us=400 * SECOND_US)
    # few integers, so that counts rise
    streams = [s._replace(payloads=s.payloads % VALUES % 7) for s in presentations(settings, 1, 2)]
    for stream in streams:
        assert list(zip(*(column.tolist() for column in QUERY.answer(stream)))) == counted_slowly(stream, QUERY)
    answers = [QUERY.answer(stream) for stream in streams]
    assert all(find_fault([answer], key=True) is None for answer in answers)
    assert same(reconstitute(answers[:1]), reconstitute(answers[1:]))
    assert bool((answers[0].kinds == ADJUST).any()) == (disorder > 0)


def test_adjusts_have_the_share_of_the_paper_at_half_disorder() -> None:
    query = CountQuery()
    (stream,) = presentations(merge_cleanse.settings_of(50_000, query), 1, 1)
    kinds = query.answer(stream).kinds
    assert np.mean(kinds == ADJUST) == pytest.approx(0.36, abs=0.03)


# -- Contestants and virtual time --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "contestant", [KernelContestant("R3", 3), KernelContestant("R4", 3), PrintedContestant("R3-", 3), CleansedContestant(3)]
)
def test_every_contestant_gives_the_table_and_accounts_for_payloads(contestant: MergeContestant) -> None:
    streams = [QUERY.answer(stream) for stream in presentations(SMALL, 2, 3)]
    pushes = rounds(streams, 100)
    assert mean_bytes(contestant, pushes, 3) > 200 * PAYLOAD_BYTES
    assert contestant.bytes() < 200_000, "at the end nothing is kept"


def test_what_contestants_give_out_is_the_table() -> None:
    streams = [QUERY.answer(stream) for stream in presentations(SMALL, 2, 3)]
    table = reconstitute(streams[:1])
    for contestant in (KernelContestant("R3", 3), CleansedContestant(3)):
        given = [contestant.push(number, part) for number, part in rounds(streams, 50)]
        assert same(reconstitute(given), table)


def test_elements_wait_behind_a_pause_and_come_in_a_spike() -> None:
    times = arrived(sent(1000, 1000.0), np.where(np.arange(1000) == 100, 50_000.0, 100.0))
    assert (times >= sent(1000, 1000.0)).all() and (np.diff(times) >= 0).all()
    assert times[[99, 100, 999]] == pytest.approx([99_000, 149_000, 999_000])
    rate = per_second(times, 10_000, 100)
    assert rate[10] == 0 and rate.max() >= 5000 and rate[:9].mean() == pytest.approx(1000)


def test_playing_pushes_everything_once_and_in_order() -> None:
    streams = presentations(SMALL, 1, 2)
    times = [sent(len(stream.kinds), rate) for stream, rate in zip(streams, (1000.0, 900.0))]
    merge = make_merge("R3")
    for _ in streams:
        merge.attach()
    steps = [(step, number, merged.elements) for step, number, merged in play(merge.push, streams, times, 10_000)]
    assert [step for step, _, _ in steps] == sorted(step for step, _, _ in steps)
    assert same(reconstitute([out for _, _, out in steps]), reconstitute([streams[0]]))
    assert merge.counters.inserts == sum(np.count_nonzero(stream.kinds == INSERT) for stream in streams)


# -- The experiments, tiny: what they count holds at any size; speeds are only there ------------------------------------


def test_inputs_tiny() -> None:
    size = ContestSize((2, 6), 6000, 3000, 2, push=100)
    rows = [row for n in size.inputs for row in measured(merge_inputs.KERNELS, merge_inputs.PRINTED, n, size, 0.01, 1000, 1)]
    checks = merge_inputs.judge(rows).checks[:3]
    # with a thousand events alive R0 to R2 are a larger share of less
    assert checks[0].holds and checks[1].value < 0.01 and checks[2].holds, checks
    assert all(float(row["out_per_s"]) > 0 for row in rows) and len(rows) == 12


def test_stables_tiny() -> None:
    size = ContestSize((3,), 6000, 3000, 2, push=100)
    rows = [
        row
        for share in (0.001, 0.01, 0.1)
        for row in measured(merge_stables.KERNELS, merge_stables.PRINTED, 3, size, share, 500, 1)
    ]
    for case in ("R3", "R4"):
        held = column(where(rows, form="ours", case=case), "bytes")
        assert held[0] > held[-1], case
    for case in merge_stables.FLAT:
        assert len(set(column(where(rows, form="ours", case=case), "bytes"))) == 1


def test_chatter_tiny() -> None:
    query = CountQuery(width_us=2000 * SECOND_US, base_us=20_000 * SECOND_US)
    rows = [row for disorder in (0.0, 0.25, 0.5) for row in merge_chatter.measured(disorder, 8000, query, 1)]
    assert merge_chatter.judge(rows).holds, merge_chatter.judge(rows).checks
    assert one(rows, "adjusts", policy="stable", disorder=0.5) == 0, "what is given out late is never changed"


def test_lag_tiny() -> None:
    rows = [row for n in (1, 2) for lag in (0.0, 2.0, 5.0) for row in merge_lag.measured(n, lag, 8000, 1)]
    assert merge_lag.judge(rows).holds, merge_lag.judge(rows).checks
    assert one(rows, "dropped", lagging=2, lag_s=5.0) > 0.2 > 0.05 > one(rows, "dropped", lagging=2, lag_s=0.0)


def test_cleanse_tiny() -> None:
    query = CountQuery(width_us=2000 * SECOND_US, base_us=20_000 * SECOND_US)
    size = ContestSize((2, 8), 8000, 3000, 1, push=200)
    rows = [row for n in size.inputs for row in merge_cleanse.measured(n, size, query, 1)]
    rows += merge_cleanse.waited(10_000, query, 1)
    linear, times, _, _ = merge_cleanse.judge(rows).checks
    # few stables: how much an input holds differs a little from one to the next
    assert 0.8 < linear.value < 1.2 and times.value > 3
    assert one(rows, "latency_s", part="latency", way="R3") == 0.0 < one(rows, "latency_s", part="latency", way="C+R1")


def test_bursts_tiny() -> None:
    rows = merge_bursts.measured(3.0, 1)
    assert merge_bursts.judge(rows).holds, merge_bursts.judge(rows).checks
    assert sum(column(where(rows, line="merged"), "per_s")) == pytest.approx(4950 * len(where(rows, line="merged")), rel=0.02)


def test_congestion_tiny() -> None:
    rows = merge_congestion.measured(500_000, 24.0, 1)
    assert merge_congestion.judge(rows).holds, merge_congestion.judge(rows).checks
    for line in ("input 1", "input 2", "input 3"):
        rate = column(where(rows, line=line), "per_s")
        assert min(rate) < 0.5 * merge_bursts.RATE < 2 * merge_bursts.RATE < max(rate), "congested, then a spike"
