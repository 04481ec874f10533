"""The benchmarks' own parts: bare kernels and peers against numpy, workloads, reports. Never a time."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from experiments.bench.base import workloads
from experiments.bench.base.bare import Candidates, Conjunctions, Layout, RangeQueries
from experiments.bench.base.bitmaps import SPARE, emit, transpose
from experiments.bench.base.lines import Bar, Line, Measure, table_of
from experiments.bench.base.options import Options
from experiments.bench.base.paper import per_tuple_seconds
from experiments.bench.base.peers import numpy_lists, polars_lists, python_lists
from experiments.bench.base.timing import spread, take_turns, time_calls
from experiments.bench.base.workloads import Batch, Workload, intervals_of, keys_of, sql
from experiments.bench.cases import CASES, churn, csv, idle, lmerge, replay, routing
from experiments.bench.merges.contestants import BareMerge, ProductMerge, TwinMerge
from experiments.bench.merges.laps import check_outputs
from experiments.bench.merges.merge_workload import MergeSetting, make_workload
from experiments.papers.grouped_filter import ReferenceEddy
from lineage.bits import BYTE_BITS
from lmerge.streams.elements import STABLE


def expected_lists(workload: Workload, batch: Batch) -> list[list[int]]:
    return [rows.tolist() for rows in numpy_lists(workload)(batch)]


def assert_lists(workload: Workload, layout: Layout) -> None:
    for batch in workload.batches:
        found = layout(batch)
        expected = expected_lists(workload, batch)
        assert found.queries.tolist() == [q for q, rows in enumerate(expected) if rows]
        assert found.offsets.tolist() == [0, *np.cumsum([len(rows) for rows in expected if rows]).tolist()]
        assert found.rows.tolist() == [row for rows in expected for row in rows]


@pytest.mark.parametrize("density", [0.0, 0.001, 0.01, 0.03, 0.1, 0.5, 1.0])
def test_emit_lists_the_set_bits_in_order(density: float) -> None:
    bits = np.random.default_rng(1).random(64 * 13) < density
    rows = np.zeros(5 + bits.sum() + SPARE, np.int32)
    end = emit(np.packbits(bits, bitorder="little").view(np.uint64), BYTE_BITS, rows, 5)
    assert rows[5:end].tolist() == np.flatnonzero(bits).tolist()


def test_transpose_turns_rows_into_bitmaps_of_rows() -> None:
    bits = np.random.default_rng(2).random((512, 128)) < 0.3
    found = np.zeros((128, 8), np.uint64)
    transpose(np.packbits(bits, axis=1, bitorder="little").view(np.uint64), found)
    assert np.array_equal(found, np.packbits(bits.T.copy(), axis=1, bitorder="little").view(np.uint64))


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("n_queries", [1, 16, 130, 700])
def test_conjunctions_in_both_layouts_equal_numpy(n_queries: int, floats: bool) -> None:
    # 700 float queries give more cuts than n_rows / STEP: the stepped bitmaps
    workload = workloads.filters(n_queries, 512, floats=floats, n_batches=3)
    layouts = Conjunctions(workload, 512).layouts()
    assert set(layouts) == {"query-major", "row-major"}
    for layout in layouts.values():
        assert_lists(workload, layout)


def test_batches_need_not_fill_a_word() -> None:
    workload = workloads.filters(200, 83, floats=True, n_batches=3)
    layouts = Conjunctions(workload, 83).layouts()
    assert set(layouts) == {"query-major"}
    assert_lists(workload, layouts["query-major"])


def test_candidates_equal_numpy() -> None:
    workload = workloads.selective(3000, 256, n_batches=3)
    assert_lists(workload, Candidates(workload, 256).by_pair)


@pytest.mark.parametrize("width", [None, 0.5])
def test_ranges_in_every_layout_equal_numpy(width: float | None) -> None:
    workload = workloads.intervals(300, 256, width=width, n_batches=3)
    ranges = RangeQueries(workload, 256, narrow=width is not None)
    for layout in (*ranges.layouts().values(), ranges.by_slice):
        assert_lists(workload, layout)


@pytest.mark.parametrize(
    "workload",
    [
        workloads.filters(40, 32, n_batches=1),
        workloads.filters(40, 32, floats=True, n_batches=1),
        workloads.selective(40, 32, n_batches=1),
        workloads.intervals(40, 32, n_batches=1),
    ],
    ids=["filters", "floats", "selective", "intervals"],
)
def test_peers_and_the_papers_filter_do_the_same_work(workload: Workload) -> None:
    (batch,) = workload.batches
    expected = expected_lists(workload, batch)
    assert python_lists(workload)(batch) == expected
    polars = polars_lists(workload)
    if polars is not None:
        assert [rows.to_list() for rows in polars(batch)] == expected
    eddy = ReferenceEddy(list(workload.columns))
    for slot, query in enumerate(workload.queries):
        eddy.add(slot, intervals_of(workload, query))
    matches = [eddy.match(row) for row in keys_of(workload, batch)]
    assert [[row for row, match in enumerate(matches) if match[slot]] for slot in range(len(expected))] == expected
    assert per_tuple_seconds(workload, 0.0) > 0


def test_queries_of_one_shape_share_their_text() -> None:
    first, second = workloads.selective(2, 1, n_batches=1).queries
    text, params = sql(first)
    assert text == "SELECT * FROM s WHERE id = :p0 AND x >= :p1 AND x <= :p2"
    assert sql(second)[0] == text and sql(second)[1] != params
    assert sql(()) == ("SELECT * FROM s", {})


def test_shapes_bound_the_number_of_texts() -> None:
    first = workloads.filters(200, 1, n_batches=1, n_shapes=7)
    later = workloads.filters(200, 1, n_batches=1, n_shapes=7, seed=99)
    texts = {sql(query)[0] for query in first.queries}
    assert len(texts) <= 7 and texts == {sql(query)[0] for query in later.queries}
    assert first.queries != later.queries


@pytest.mark.parametrize("case", ["filters", "floats", "selective", "intervals"])
def test_the_engine_gives_the_row_lists_of_the_bare_kernels(case: str) -> None:
    # a case compares them before it measures anything
    lines = [line for step in CASES[case](Options(queries=(20,), rows=512, seconds=0.0)) for line in step()]
    assert [line.setting["queries"] for line in lines] == [20] * len(lines)
    assert {"rows_per_s", "pairs_per_s", "of_bare", "times_paper", "routing"} <= set(lines[0].measures)


def test_a_csv_gives_the_rows_of_the_same_parquet() -> None:
    # the case compares them before it tells
    (line,) = csv.measure(3_000, 1)
    assert {"csv_rows_per_cpu_s", "parquet_rows_per_cpu_s", "times_parquet"} <= set(line.measures)
    assert line.bar is not None and line.bar.text == "4 x" and line.setting["columns"] == 19


def test_a_replay_gives_the_results_of_the_same_rows_from_memory() -> None:
    # the case compares them before it tells
    (line,) = replay.measure(30_000, 40, 1024, 1)
    assert {"replay_rows_per_s", "memory_rows_per_s", "of_memory", "of_memory_cpu"} <= set(line.measures)
    assert line.bar is not None and line.bar.text == "80 %"


@pytest.mark.parametrize(("case", "manner"), [("R3", "any"), ("R4", "bag")])
def test_bare_kernels_and_twins_give_out_what_the_product_does(case: str, manner: str) -> None:
    workload = make_workload(MergeSetting(manner, 3, n_live=200, n_events=900, n_elements=128))
    kinds = np.concatenate([batch.kinds for _, batch in workload.pushes])
    assert abs((kinds == STABLE).mean() - 0.01) < 0.005 and 0 < workload.n_filling < len(workload.pushes)
    check_outputs(workload, ProductMerge(workload.setting, case), BareMerge(workload.setting, case))
    check_outputs(workload, ProductMerge(workload.setting, case), TwinMerge(workload.setting, case))


def test_what_shares_nothing_keeps_a_payload_for_each_input() -> None:
    few, many = (
        lmerge.kept_bytes(make_workload(MergeSetting(n_inputs=n, n_live=500, n_events=2_000, n_elements=256))) for n in (2, 10)
    )
    assert many["R3"] < 1.2 * few["R3"] and min(many["R3-"], many["Cleanse + R1"]) > 5 * many["R3"]


def test_visits_lie_between_one_and_all_five_filters() -> None:
    best, lottery = (routing.visits_per_row(policy, 64, 12) for policy in ("fixed", "lottery"))
    assert 1 < best <= lottery < 5


def test_churn_gives_a_line_for_submit_and_one_for_cancel() -> None:
    submit, cancel = churn.measure_changes(30, False, 4)
    assert submit.work.startswith("submit") and cancel.work.startswith("cancel")


def test_an_idle_query_takes_memory() -> None:
    assert idle.bytes_per_query(40, True) > 100


def test_an_idle_group_by_takes_memory_and_keeps_no_log() -> None:
    held, traced = idle.group_by_bytes(300, 100)
    assert 100_000 < held < idle.GROUP_BY_BAR and traced > held / 2


def test_contestants_take_turns_over_rotating_batches() -> None:
    calls: list[tuple[str, int]] = []
    rounds = take_turns({name: lambda i, name=name: calls.append((name, i)) for name in "ab"}, 3, 0.0)  # type: ignore[misc]  # bound now
    assert len(rounds.seconds["a"]) == len(rounds.seconds["b"]) == 5
    assert {i for _, i in calls} == {0, 1, 2}
    assert [name for name, _ in calls[4:10]] == ["a"] * 3 + ["b"] * 3


def test_single_calls_are_counted() -> None:
    calls: list[int] = []
    between: list[int] = []
    time_calls(calls.append, 60, 0.0, lambda: between.append(len(calls)))
    assert calls == [*range(16), 0, *range(8), *range(1, 50)] and between == [17], "calls after a pause are not counted"
    assert spread([1e-6, 3e-6, 2e-6]).median_us == pytest.approx(2)


def test_a_line_prints_its_bar_and_whether_it_is_met() -> None:
    line = Line("filters", "128 queries", {"rows_per_s": Measure(51e6, "/s")}, Bar.at_least(0.5, 0.45, "%"), {"queries": 128})
    assert str(line.bar) == "bar 45 %  ok"
    assert str(Bar.at_most(310, 300, "us")) == "bar 300 us  missed"
    assert json.loads(line.as_json()) == {
        "case": "filters",
        "work": "128 queries",
        "queries": 128,
        "rows_per_s": 51e6,
        "bar": "45 %",
        "met": True,
    }
    assert [column.header for column in table_of("filters", [line]).columns] == ["work", "rows/s", "bar"]


def test_a_case_uses_its_own_numbers_of_queries_unless_told() -> None:
    assert Options().counts((1, 2)) == (1, 2)
    assert Options(queries=(7,)).counts((1, 2)) == (7,)


def test_the_benchmarks_start_where_no_peer_is_installed() -> None:
    without = "import sys; sys.modules['duckdb'] = sys.modules['polars'] = None; import experiments.bench.command"
    ended = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
