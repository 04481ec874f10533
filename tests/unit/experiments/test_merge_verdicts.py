"""The verdicts of LMerge's experiments on rows made up to have the shape, and on rows made up to lack it. No merge, no clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from experiments.experiment import Check, Row, Verdict
from experiments.lmerge import (
    EXPERIMENTS,
    merge_bursts,
    merge_chatter,
    merge_cleanse,
    merge_congestion,
    merge_inputs,
    merge_lag,
    merge_stables,
)

Judge = Callable[[Sequence[Row]], Verdict]


def input_rows(*, minus: float = 1e7, shared: float = 1e5, ordered: float = 1e3, **speeds: float) -> list[Row]:
    """Bytes of an added input by case; speeds of ours, and of the printed R3 (`twin`) and R3- (`minus_speed`)."""
    ours = {"R0": 100.0, "R1": 90.0, "R2": 80.0, "R3": 20.0} | {
        case: speeds[case] for case in speeds if case in merge_inputs.KERNELS
    }
    rows: list[Row] = []
    for n in (2, 6, 10):
        held = {"R0": ordered * n, "R1": ordered * n, "R2": ordered * n, "R3": 1e7 + shared * n}
        rows += [
            {"form": "ours", "case": case, "inputs": n, "bytes": held[case], "in_per_s": ours[case], "out_per_s": 1.0}
            for case in merge_inputs.KERNELS
        ]
        printed = {"R3": (1e7, speeds.get("twin", 0.5)), "R3-": (1e7 + minus * n, speeds.get("minus_speed", 0.6))}
        rows += [
            {"form": "printed", "case": case, "inputs": n, "bytes": size, "in_per_s": speed, "out_per_s": 1.0}
            for case, (size, speed) in printed.items()
        ]
    return rows


def stable_rows(
    held: Sequence[float] = (90, 40, 15, 10), ours: float = 1.1, printed: float = 5.0, flat: float = 1.1, size: float = 1.0
) -> list[Row]:
    """`ours`, `printed` and `flat`: how many times as fast R3, the printed R3 and R0 are at the rarest stables; `size`: R0's."""
    rows: list[Row] = []
    for k, share in enumerate(merge_stables.SHARES):
        for form, case in [("ours", case) for case in merge_stables.KERNELS] + [("printed", "R3")]:
            fall = {"R0": flat, "R3": ours if form == "ours" else printed}.get(case, 1.0)
            small = case in merge_stables.FLAT
            rows.append(
                {"form": form, "case": case, "stables": share, "bytes": (size if k else 1.0) if small else held[k],
                 "in_per_s": fall if not k else 1.0, "out_per_s": 1.0}
            )  # fmt: skip
    return rows


def chatter_rows(alone: Sequence[float] = (0, 10, 20, 30, 40, 50), lazy: float = 0.8, every: float = 3.0) -> list[Row]:
    times = {merge_chatter.ONE_INPUT: 1.0, "lazy": lazy, "every": every}
    return [
        {"policy": policy, "disorder": disorder, "adjusts": times.get(policy, 0.5) * n}
        for disorder, n in zip(merge_chatter.DISORDERS, alone) for policy in (merge_chatter.ONE_INPUT, *merge_chatter.POLICIES)
    ]  # fmt: skip


def lag_rows(one: Sequence[float] = (10, 11, 12, 13, 14, 15), two: Sequence[float] = (10, 12, 14, 16, 18, 20)) -> list[Row]:
    return [
        {"lagging": n, "lag_s": lag, "out_per_s": rate, "dropped": 0.1}
        for n, rates in ((1, one), (2, two)) for lag, rate in zip(merge_lag.LAGS, rates)
    ]  # fmt: skip


def cleanse_rows(power: float = 1.0, times: float = 9.0, faster: float = 2.0, latency: float = 1.1) -> list[Row]:
    rows: list[Row] = []
    for n in (2, 6, 10):
        held = {"R3": 10.0, "C+R1": 10 * times * (n / 10) ** power, "R3-": 11.0 * n}
        speed = {"R3": faster, "C+R1": 1.0, "R3-": 0.1}
        rows += [
            {"part": "inputs", "way": way, "inputs": n, "bytes": held[way], "in_per_s": speed[way], "out_per_s": 1.0}
            for way in held
        ]
    for way, value in (("R3", 0.0), ("C+R1", 100 * latency)):
        rows.append({"part": "latency", "way": way, "inputs": 3, "latency_s": value, "life_s": 100.0})
    return rows


def burst_rows(merged: float = 300.0) -> list[Row]:
    """The merged rate is off by so much, that of the inputs by 1,000 and more."""
    lines = {"input 1": 1000.0, "input 2": 1200.0, merge_bursts.MERGED: merged}
    return [
        {"line": line, "second": 0.05 * (k + 1), "per_s": 5000 + off * (-1) ** k, "bin_s": 0.05}
        for line, off in lines.items() for k in range(20)
    ]  # fmt: skip


def congestion_rows(worst: float = 1.0, both: float = 1.0) -> list[Row]:
    """Shares of the nominal rate: of the second bin, and of those in which two inputs are congested."""
    rows: list[Row] = []
    for line in ("input 1", "input 2", "input 3", merge_congestion.MERGED):
        for k in range(104):
            second = 0.25 * (k + 1)
            share = worst if k == 1 else both if 17.75 <= second <= 19.5 else 1.0
            rows.append({"line": line, "second": second, "per_s": 4950 * share, "bin_s": 0.25, "nominal": 5000.0})
    return rows


MERGES_GOOD: dict[str, tuple[Judge, list[Row]]] = {
    "merge-inputs": (merge_inputs.judge, input_rows()),
    "merge-stables": (merge_stables.judge, stable_rows()),
    "merge-chatter": (merge_chatter.judge, chatter_rows()),
    "merge-lag": (merge_lag.judge, lag_rows()),
    "merge-cleanse": (merge_cleanse.judge, cleanse_rows()),
    "merge-bursts": (merge_bursts.judge, burst_rows()),
    "merge-congestion": (merge_congestion.judge, congestion_rows()),
}


@pytest.mark.parametrize("name", MERGES_GOOD)
def test_rows_of_the_expected_shape_hold(name: str) -> None:
    judge, rows = MERGES_GOOD[name]
    assert judge(rows).holds, [check for check in judge(rows).checks if not check.holds]


def test_every_experiment_has_such_rows() -> None:
    assert set(MERGES_GOOD) == set(EXPERIMENTS)


@pytest.mark.parametrize(
    ("judge", "rows", "missed"),
    [
        (merge_inputs.judge, input_rows(ordered=2e5, shared=1e5, minus=1e7), "flat"),
        (merge_inputs.judge, input_rows(ordered=2e4), "share of R3's"),
        (merge_inputs.judge, input_rows(shared=2e6), "R3 as a share of R3-"),
        (merge_inputs.judge, input_rows(R1=110.0), "speed of R0"),
        (merge_inputs.judge, input_rows(R2=97.0), "speed of R1"),
        (merge_inputs.judge, input_rows(R3=88.0), "speed of R2"),
        (merge_inputs.judge, input_rows(minus_speed=20.0), "R3-'s"),
        (merge_inputs.judge, input_rows(twin=2.0), "printed R3's"),
        (merge_stables.judge, stable_rows(held=(90, 10, 10, 9)), "bytes of R3"),
        (merge_stables.judge, stable_rows(size=1.5), "bytes of R0 to R2"),
        (merge_stables.judge, stable_rows(flat=1.4), "speed of R0 to R2"),
        (merge_stables.judge, stable_rows(printed=2.5), "printed R3"),
        (merge_stables.judge, stable_rows(ours=1.3), "our R3"),
        (merge_chatter.judge, chatter_rows(alone=(0, 10, 20, 20, 40, 50)), "one input rise"),
        (merge_chatter.judge, chatter_rows(lazy=0.0), "merge (lazy) rise"),
        (merge_chatter.judge, chatter_rows(lazy=1.1), "of one input"),
        (merge_chatter.judge, chatter_rows(every=1.2), "of `every`"),
        (merge_lag.judge, lag_rows(one=(10, 11, 11, 13, 14, 15)), "lag of 1 of 3"),
        (merge_lag.judge, lag_rows(two=(10, 12, 11, 16, 18, 20)), "lag of 2 of 3"),
        (merge_lag.judge, lag_rows(two=(10, 11, 12, 13, 14, 15)), "two lagging"),
        (merge_cleanse.judge, cleanse_rows(power=0.5), "linear"),
        (merge_cleanse.judge, cleanse_rows(times=4.5), "bytes of C+R1"),
        (merge_cleanse.judge, cleanse_rows(faster=1.0), "speed of R3"),
        (merge_cleanse.judge, cleanse_rows(latency=0.9), "latency"),
        (merge_bursts.judge, burst_rows(600.0), "variance"),
        (merge_congestion.judge, congestion_rows(worst=0.85), "worst bin"),
        (merge_congestion.judge, congestion_rows(both=0.85), "two of three"),
    ],
)  # fmt: skip
def test_rows_of_another_shape_do_not(judge: Judge, rows: list[Row], missed: str) -> None:
    verdict = judge(rows)
    assert not verdict.holds
    assert any(missed in check.claim for check in verdict.checks if not check.holds), verdict.checks


def test_strict_bars_do_not_hold_at_their_edge() -> None:
    assert Check.below("x", 0.99, 1.0).holds and not Check.below("x", 1.0, 1.0).holds
    assert Check.above("x", 1.01, 1.0).holds and not Check.above("x", 1.0, 1.0).holds
