"""The contestants of `eddy bench join` against each other and against nested loops. Never a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest

from experiments.bench.base.options import Options
from experiments.bench.cases import join
from experiments.bench.joins import join_peers as peers
from experiments.bench.joins.bare_join import LAYOUTS, BareJoin
from experiments.bench.joins.dict_loop import DictLoop
from experiments.bench.joins.join_workload import TIMES, JoinWorkload, PriceQuery, sql, stocks_and_articles
from experiments.bench.joins.matches import Copies, MatchLists, Pairs, assert_same
from experiments.bench.joins.niagara_plans import PullUp, PushDown
from experiments.bench.joins.prototype import PrototypeJoin
from experiments.bench.joins.selections import Constants, Functions, picky_functions
from experiments.bench.joins.stem import PART


def pairs_for(workload: JoinWorkload) -> Pairs:
    return Pairs(workload.n_streams)


def take_lists(pairs: Pairs, part: MatchLists) -> None:
    """Collect a part of results that are listed by query."""
    queries, offsets, matches = part.lists
    pairs.add(np.repeat(queries, np.diff(offsets)), *(rows[matches] for rows in part.rows))


def take_copies(pairs: Pairs, workload: JoinWorkload, part: Copies) -> None:
    """Collect a part of results that are copied for every query."""
    queries = np.repeat(np.arange(len(part.offsets) - 1), np.diff(part.offsets))
    pairs.add(queries, *(workload.row_numbers(part.tuples[:, column]) for column in (2, 3)))


def nested_loops(workload: JoinWorkload, n_pushes: int) -> Pairs:
    """Every combination of rows of all pushes, by the definition: a match is shown if it lives when its last push ends."""
    rows: list[list[tuple[int, int, float, int]]] = [[] for _ in range(workload.n_streams)]
    for number in range(n_pushes):
        stream, batch = workload.push(number)
        prices = batch["price"] if stream == 0 else np.zeros(workload.n_rows)
        for symbol, time, price in zip(batch["symbol"].tolist(), batch[TIMES[stream]].tolist(), prices.tolist()):
            rows[stream].append((symbol, time, price, len(rows[stream])))
    pairs = pairs_for(workload)
    for match in product(*rows):
        if len({row[0] for row in match}) > 1:
            continue
        newest = max(row[1] for row in match) // workload.n_rows * workload.n_rows + workload.n_rows - 1
        for q, query in enumerate(workload.queries):
            if match[0][2] > query.constant and all(newest - row[1] < query.window_us for row in match):
                pairs.add(np.array([q]), *(np.array([row[3]]) for row in match))
    return pairs


def all_of(push_into: Callable[[Pairs], object], workload: JoinWorkload, n_pushes: int, first: int = 0) -> Pairs:
    """What a contestant gives from push `first` on."""
    pairs = pairs_for(workload)
    for number in range(n_pushes):
        push_into(pairs if number >= first else pairs_for(workload))
    return pairs


def plans_of(workload: JoinWorkload) -> dict[str, Callable[[Pairs], object]]:
    """Everything that joins two streams over one window."""
    bare = {name: BareJoin(workload, lister) for name, lister in LAYOUTS.items()}
    functions = Functions(picky_functions(workload))
    niagara = [
        PushDown(workload, Constants(workload.constants, workload.n_rows)),
        PullUp(workload, Constants(workload.constants, PART)),
        PushDown(workload, functions),
        PullUp(workload, functions),
    ]
    found: dict[str, Callable[[Pairs], object]] = {}
    for name, b in bare.items():
        found[name] = lambda p, b=b: b.push(partial(take_lists, p))  # type: ignore[misc]  # bound now
    prototype = PrototypeJoin(workload)
    found["prototype"] = lambda p: prototype.push(partial(take_lists, p))
    for k, plan in enumerate(niagara):
        found[f"{type(plan).__name__} {k}"] = lambda p, plan=plan: plan.push(partial(take_copies, p, workload))  # type: ignore[misc]  # bound now
    return found


@pytest.mark.parametrize("n_queries", [1, 3, 70])
@pytest.mark.parametrize("window_rows", [12, 20, 55])
@pytest.mark.slow
def test_all_plans_give_the_matches_of_nested_loops(n_queries: int, window_rows: int) -> None:
    workload = stocks_and_articles(n_queries, n_rows=20, n_keys=12, window_rows=window_rows, seed=n_queries + window_rows)
    n_pushes = 10
    expected = nested_loops(workload, n_pushes)
    assert len(expected.sorted()) > 50
    assert_same(all_of(DictLoop(workload).push_into, workload, n_pushes), expected)
    for push_into in plans_of(workload).values():
        assert_same(all_of(push_into, workload, n_pushes), expected)


@pytest.mark.parametrize("n_queries, n_keys", [(1, 300), (130, 300), (1100, 300), (4, 5)])
@pytest.mark.slow
def test_all_plans_agree_when_rings_wrap_and_parts_are_many(n_queries: int, n_keys: int) -> None:
    # 1,100 cuts are more than a part has kept bitmaps; 5 keys give 100 matches a row, so a push has several parts
    workload = stocks_and_articles(n_queries, n_rows=128, n_keys=n_keys, window_rows=500)
    expected = all_of(DictLoop(workload).push_into, workload, 22, first=18)
    for push_into in plans_of(workload).values():
        assert_same(all_of(push_into, workload, 22, first=18), expected)


@pytest.mark.parametrize("n_streams, n_windows", [(2, 16), (3, 1), (3, 4), (4, 1), (5, 2)])
def test_the_loop_joins_any_number_of_streams_and_windows(n_streams: int, n_windows: int) -> None:
    workload = stocks_and_articles(8, n_rows=4, n_keys=3, window_rows=6, n_streams=n_streams, n_windows=n_windows)
    n_pushes = 3 * n_streams if n_streams > 3 else 5 * n_streams
    expected = nested_loops(workload, n_pushes)
    assert len(expected.sorted()) > 20
    assert_same(all_of(DictLoop(workload).push_into, workload, n_pushes), expected)


def test_equal_constants_are_told_apart() -> None:
    workload = stocks_and_articles(40, n_rows=32, n_keys=10, window_rows=64)
    coarse = [PriceQuery(float(int(query.constant) // 20), query.window_us) for query in workload.queries]
    workload = JoinWorkload(coarse, workload.n_keys, workload.window_rows, workload.n_rows, workload.contents)
    expected = all_of(DictLoop(workload).push_into, workload, 8)
    for push_into in plans_of(workload).values():
        assert_same(all_of(push_into, workload, 8), expected)


def test_windows_hold_the_wanted_rows_and_their_pushes_go_on_for_ever() -> None:
    workload = stocks_and_articles(20, n_rows=64, window_rows=640, n_streams=3, n_windows=4)
    assert workload.window_us == 3 * 640 and len({query.window_us for query in workload.queries}) == 4
    assert min(query.window_us for query in workload.queries) > workload.window_us // 2
    assert workload.queries[0].constant == 0.0 and workload.queries[0].window_us == workload.window_us
    times = [workload.push(number)[1][TIMES[number % 3]] for number in range(3 * 40)]
    assert np.array_equal(np.concatenate(times), np.arange(3 * 40 * 64))
    articles = np.concatenate(times[1::3])
    assert np.array_equal(workload.row_numbers(articles), np.arange(len(articles)))
    held = [int(((articles > now - workload.window_us) & (articles <= now)).sum()) for now in range(3000, 6000, 17)]
    assert abs(np.mean(held) - 640) < 10 and max(held) - min(held) <= 64


def test_queries_with_one_window_share_their_text() -> None:
    workload = stocks_and_articles(3, window_rows=50, n_streams=3, n_windows=2)
    texts = [sql(workload, query) for query in workload.queries]
    assert texts[0] is texts[2] and texts[0] != texts[1]
    assert texts[0] == (
        "SELECT s.symbol, s.price, s.quoted, a.published, r.rated FROM stocks [RANGE 150 MICROSECONDS] s, "
        "articles [RANGE 150 MICROSECONDS] a, ratings [RANGE 150 MICROSECONDS] r "
        "WHERE s.symbol = a.symbol AND s.symbol = r.symbol AND s.price > :c"
    )


def test_pull_up_calls_a_function_for_every_match_and_push_down_for_every_quote() -> None:
    few, many = peers.compare_thinking(3, peers.thinking_baselines(peers.thinking_workload(3)), 0.0)
    assert few.measures["calls_a_quote"].value == peers.FUNCTIONS
    assert many.measures["calls_a_quote"].value > 3 * peers.FUNCTIONS


@pytest.mark.slow
def test_every_line_of_the_case_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        "KEYS": 100,
        "WINDOW": 100,
        "SHAPES": ((20, 200),),
        "WINDOW_COUNTS": (20,),
        "MANY": 8,
        "STATE_COUNTS": (1, 9),
        "ARTICLES": (2,),
    }
    for name, value in small.items():
        monkeypatch.setattr(join, name, value)
    lines = [line for step in join.steps(Options(queries=(3,), rows=64, seconds=0.0, peers=True)) for line in step()]
    assert {line.case for line in lines} == {"join"}
    assert len(lines) == 1 + 1 + 2 + 1 + 1 + 1 + len(join.WAYS) + 4 + 3 * len(join.ARTICLES)
    assert lines[0].measures["a_stored_row"].value > 24
