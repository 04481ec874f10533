"""Merges: the cases against bare kernels, against each other and against the papers' twins; and what they keep in memory.

bare      R3 and R4 against kernels of the same work with nothing around them (`experiments/bench/merges/`)
stables   R3 with fewer stables: a stable costs what changes, not what is half frozen
cases     all cases over one ordered presentation, which each of them takes
twins     the printed algorithms, one element at a time (`experiments/papers/lmerge/`)
bytes     state and payloads with 2 and 10 inputs, and those of R3- and of Cleanse + R1; and after a million events

10,000 live events, 1 % stables, but where it says otherwise. CPU time, contestants in turn, the lower quartile of laps.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.merges.contestants import BareMerge, CleansedMerge, ProductMerge, TwinMerge
from experiments.bench.merges.laps import Entry, check_outputs, race_laps, race_pushes
from experiments.bench.merges.merge_workload import MergeSetting, MergeWorkload, make_workload
from lmerge.merge import Merge, make_merge
from lmerge.streams.elements import INSERT, STABLE, ElementBatch

INPUTS = (2, 5, 10)
#: Bars: speed of R3 and R4 as a part of their bare kernels'; R3 at 1 % stables against .01 %; R1 and R2 against R3; R3 and
#: its twin.
BARE_BAR = 0.6
STABLES_BAR, SHARES = 1.3, (0.01, 0.001, 0.0001)
CASE_BARS = {"R1": 3.0, "R2": 1.5}
TWIN_BAR = 15.0
#: Bars: bytes with 10 inputs against 2, and of what shares nothing against R3; after many events, what a tenth of them leaves.
BYTES_BAR, UNSHARED_BAR = 1.1, 5.0
PAYLOAD_BYTES = 1000
PASSED = 1_000_000
_MANNERS = {"R3": "any", "R4": "bag"}
#: A twin takes so many clocked pushes.
_TWIN_PUSHES = 8


def _numbers(setting: MergeSetting, case: str) -> dict[str, int | str]:
    return {"case": case, "inputs": setting.n_inputs, "live": setting.n_live, "manner": setting.manner}


def _against_bare(case: str, n_inputs: int, options: Options) -> list[Line]:
    workload = make_workload(MergeSetting(_MANNERS[case], n_inputs, n_elements=options.rows))
    setting = workload.setting
    check_outputs(workload, ProductMerge(setting, case), BareMerge(setting, case))
    entries: dict[str, Entry] = {
        "product": (lambda: ProductMerge(setting, case), workload),
        "bare": (lambda: BareMerge(setting, case), workload),
    }
    laps = race_laps(entries, options.seconds)
    share = laps.ratio("product", "bare")
    measures = {
        "elements_per_s": Measure(1 / laps.quartile("product"), "/s"),
        "bare_per_s": Measure(1 / laps.quartile("bare"), "/s"),
        "of_bare": Measure(share, "%"),
    }
    return [Line("lmerge", f"{case}, {n_inputs} inputs", measures, Bar.at_least(share, BARE_BAR, "%"), _numbers(setting, case))]


def _stables(options: Options) -> list[Line]:
    entries: dict[str, Entry] = {}
    for share in SHARES:
        setting = MergeSetting(n_inputs=5, stables=share, n_elements=options.rows)
        entries[str(share)] = (partial(ProductMerge, setting, "R3"), make_workload(setting))
    laps = race_laps(entries, options.seconds)
    lines = []
    for share in SHARES:
        slower = laps.ratio(str(share), str(SHARES[-1]))
        measures = {
            "elements_per_s": Measure(1 / laps.quartile(str(share)), "/s"),
            "times_as_long": Measure(1 / slower, "x"),
        }
        bar = Bar.at_most(1 / slower, STABLES_BAR, "x") if share == SHARES[0] else None
        setting = entries[str(share)][1].setting
        lines.append(Line("lmerge", f"R3, 5 inputs, {share:.2%} stables", measures, bar, _numbers(setting, "R3")))
    return lines


def _cases(n_inputs: int, options: Options) -> list[Line]:
    setting = MergeSetting("ordered", n_inputs, n_elements=options.rows)
    workload = make_workload(setting)
    alone = make_workload(setting._replace(together=1))
    entries: dict[str, Entry] = {"R0": (lambda: ProductMerge(setting, "R0"), alone)}
    entries |= {case: (partial(ProductMerge, setting, case), workload) for case in ("R1", "R2", "R3", "R4")}
    entries["R2 bag"] = (lambda: ProductMerge(setting, "R2", bag=True), workload)
    laps = race_laps(entries, options.seconds)
    lines = []
    for case in entries:
        times = laps.ratio(case, "R3")
        measures = {
            "elements_per_s": Measure(1 / laps.quartile(case), "/s"),
            "times_r3": Measure(times, "x"),
        }
        bar = Bar.at_least(times, CASE_BARS[case], "x") if case in CASE_BARS else None
        lines.append(Line("lmerge", f"{case}, in order, {n_inputs} inputs", measures, bar, _numbers(setting, case)))
    return lines


def _twin(case: str, options: Options) -> list[Line]:
    manner = _MANNERS.get(case, "ordered")
    # R4's takes so long for a stable that it has fewer events
    n_live = 1_000 if case == "R4" else 10_000
    setting = MergeSetting(manner, n_live=n_live, n_elements=options.rows, together=1 if case == "R0" else 2)
    whole = make_workload(setting)
    # filled as far as the others, then few pushes: a stable of the twin looks at all that is half frozen
    workload = whole.cut(whole.n_filling, _TWIN_PUSHES)
    check_outputs(workload, ProductMerge(setting, case), TwinMerge(setting, case))
    laps = race_pushes(
        {"product": (lambda: ProductMerge(setting, case), workload), "twin": (lambda: TwinMerge(setting, case), workload)}
    )
    # both inputs in equal parts: the one that comes first costs more
    times = laps.mean("twin") / laps.mean("product")
    measures = {"twin_elements_per_s": Measure(1 / laps.mean("twin"), "/s"), "times_twin": Measure(times, "x")}
    bar = Bar.at_least(times, TWIN_BAR, "x") if case == "R3" else None
    return [Line("lmerge", f"{case}, 2 inputs, its twin", measures, bar, _numbers(setting, case))]


def kept_bytes(workload: MergeWorkload) -> dict[str, int]:
    """Return the most bytes that R3, R3- and Cleanse + R1 keep once they are filled, with the payloads of their events."""
    setting = workload.setting
    product, cleansed = ProductMerge(setting, "R3"), CleansedMerge(setting)
    minus = TwinMerge(setting, "R3-")
    most = {"R3": 0, "R3-": 0, "Cleanse + R1": 0}
    for k, (number, batch) in enumerate(workload.pushes):
        for contestant in (product, minus, cleansed):
            contestant.push(number, batch)
        if k >= workload.n_filling:
            # an owner has a reference for every node there may be, and the payload of every one there is
            state = product.merge.bytes + 8 * product.merge.capacity + PAYLOAD_BYTES * product.merge.n_live
            held = sum(one.bytes + (8 + PAYLOAD_BYTES) * one.n_held for one in cleansed.cleanses)
            found = {"R3": state, "R3-": minus.merge.bytes(PAYLOAD_BYTES), "Cleanse + R1": cleansed.merge.bytes + held}
            most = {name: max(most[name], found[name]) for name in most}
    return most


def _bytes(n_live: int, options: Options) -> list[Line]:
    found = {}
    for n_inputs in (INPUTS[0], INPUTS[-1]):
        workload = make_workload(MergeSetting(n_inputs=n_inputs, n_live=n_live, n_events=3 * n_live, n_elements=options.rows))
        found[n_inputs] = kept_bytes(workload.cut(workload.n_filling, 2 * n_inputs))
    few, many = found[INPUTS[0]], found[INPUTS[-1]]
    lines = []
    for name in many:
        grows, times = many[name] / few[name], many[name] / many["R3"]
        measures = {
            "a_live_event_of_2": Measure(few[name] / n_live, "B"),
            "of_10": Measure(many[name] / n_live, "B"),
            "times_2_inputs": Measure(grows, "x"),
            "times_r3": Measure(times, "x"),
        }
        bar = Bar.at_most(grows, BYTES_BAR, "x") if name == "R3" else Bar.at_least(times, UNSHARED_BAR, "x")
        setting: dict[str, int | str] = {"case": name, "live": n_live, "payload": PAYLOAD_BYTES}
        lines.append(Line("lmerge", f"{name}, bytes with payloads of {PAYLOAD_BYTES:,} B", measures, bar, setting))
    return lines


def bytes_after(case: str, n_events: int) -> tuple[int, int]:
    """Return the most bytes of a merge of two inputs while events pass, and what is left when all are over."""
    merge = make_merge(case)
    numbers = [merge.attach(), merge.attach()]
    most, size = 0, 10_000
    for k in range(n_events // size):
        starts = np.arange(size) + k * size
        merge_all(merge, numbers, starts, starts + size, (k + 1) * size)
        most = max(most, merge.bytes)
    # state falls when it is looked at: with a few events at a time, as a quiet stream has them
    for k in range(n_events, n_events + 64):
        merge_all(merge, numbers, np.array([2 * k]), np.array([2 * k + 1]), 2 * k + 3)
    assert merge.n_live == 0, "all are over"
    return most, merge.bytes


def merge_all(merge: Merge, numbers: list[int], starts: np.ndarray, ends: np.ndarray, point: int) -> None:
    """Let every input give the same events and a stable."""
    n = len(starts)
    kinds, zeros = np.append(np.full(n, INSERT), STABLE), np.zeros(n + 1, np.int64)
    for number in numbers:
        merge.push(number, ElementBatch(kinds, np.append(starts, 0), zeros, zeros, np.append(ends, point)))


def _passed(case: str) -> list[Line]:
    _, once = bytes_after(case, PASSED // 10)
    most, left = bytes_after(case, PASSED)
    measures = {"most": Measure(most, "B"), "left": Measure(left, "B"), "after_a_tenth": Measure(once, "B")}
    work = f"{case}, bytes after {PASSED:,} events"
    return [Line("lmerge", work, measures, Bar.at_most(left, once, "B"), {"case": case, "events": PASSED})]


def steps(options: Options) -> list[Step]:
    found: list[Step] = [partial(_against_bare, case, n, options) for case in _MANNERS for n in INPUTS]
    found += [partial(_stables, options), *(partial(_cases, n, options) for n in INPUTS)]
    found += [partial(_twin, case, options) for case in ("R0", "R1", "R2", "R3", "R4")]
    found += [partial(_bytes, 10_000, options), *(partial(_passed, case) for case in _MANNERS)]
    return found
