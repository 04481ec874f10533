"""Routing policies: the order each one gives, and what it learns from visits."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from eddy.base.compile import ensure
from eddy.routing import NAMES, make
from eddy.routing.base import MEMORY_ROWS, Ledger, Policy
from eddy.routing.greedy import REFRESH
from eddy.routing.lottery import FADE, FLOOR
from lineage.errors import EddyError

ensure()

POLICIES = ["auto", "random", "lottery", "backpressure", "greedy", "fixed:filter:b,filter:a"]


def ledger(*names: str, predicates: int = 1) -> Ledger:
    made = Ledger()
    for name in names:
        made.add(name, 10.0)
    made.predicates[:] = predicates
    return made


def ready(*modules: int) -> np.ndarray:
    return np.array(modules, np.int32)


def routes(policy: Policy, of: Ledger, modules: np.ndarray, n: int) -> list[tuple[int, ...]]:
    return [tuple(policy.route(of, modules).tolist()) for _ in range(n)]


def one(*numbers: int) -> list[np.ndarray]:
    """Each number as an array, as for one module of several."""
    return [np.array([number]) for number in numbers]


def first_share(policy: Policy, of: Ledger, module: int, n: int = 4000) -> float:
    """How often a module comes first."""
    modules = np.arange(len(of.names), dtype=np.int32)
    return sum(route[0] == module for route in routes(policy, of, modules, n)) / n


# ---- all of them


@pytest.mark.parametrize("name", POLICIES)
def test_a_route_is_an_order_of_exactly_the_ready_modules(name: str) -> None:
    of = ledger("filter:t.a", "filter:t.b", "filter:t.c", "residual:t#1", "function:f#1")
    policy = make(name, 1)
    for modules in (ready(0, 1, 2, 3, 4), ready(1, 3), ready(4), ready(0, 2, 4)):
        for _ in range(6):
            route = policy.route(of, modules)
            assert sorted(route.tolist()) == modules.tolist() and route.dtype == np.int32
            policy.visited(of, *one(int(route[0]), 50, 25))


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_seed_gives_the_same_routes(name: str) -> None:
    modules = ready(0, 1, 2, 3)

    def run(seed: int) -> list[tuple[int, ...]]:
        of, policy = ledger("filter:t.a", "filter:t.b", "filter:t.c", "filter:t.d"), make(name, seed)
        found = []
        for _ in range(100):
            route = policy.route(of, modules).tolist()
            found.append(tuple(route))
            policy.visited(of, *one(route[0], 64, 10 * route[0]))
        return found

    assert run(5) == run(5)
    if name in ("random", "lottery", "backpressure"):
        assert run(5) != run(6)


@pytest.mark.parametrize("seed", [0, -1, 2**64, 2**70 + 3])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    of = ledger("a", "b")
    assert len(set(routes(make("random", seed), of, ready(0, 1), 100))) == 2


@pytest.mark.parametrize("name", [*POLICIES, "fixed:"])
def test_a_policy_has_the_name_it_was_made_by(name: str) -> None:
    assert make(name, 0).name == name


def test_only_policies_that_learn_ask_for_samples() -> None:
    learns = {name: make(name, 0).learns for name in POLICIES}
    assert [name for name in POLICIES if learns[name]] == ["auto", "lottery", "backpressure", "greedy"]


@pytest.mark.parametrize("name", ["lotery", "", "Random", "fixed", None, 5])
def test_an_unknown_policy_is_refused_with_the_names_there_are(name: object) -> None:
    with pytest.raises(EddyError) as refused:
        make(name, 0)  # type: ignore[arg-type]  # what is tested
    assert refused.value.code == "unknown_policy"
    if name == "lotery":
        assert "lottery" in str(refused.value.hint)
    if name == 5:
        assert all(known in str(refused.value.hint) for known in NAMES)


# ---- fixed


def test_a_fixed_order_is_that_of_the_names_and_others_come_after_in_order() -> None:
    of = ledger("filter:t.a", "filter:t.b", "residual:t#1", "filter:t.c")
    policy = make("fixed: filter:t.c , residual:t#1", 0)
    assert policy.route(of, ready(0, 1, 2, 3)).tolist() == [3, 2, 0, 1]
    assert policy.route(of, ready(0, 2)).tolist() == [2, 0]
    assert policy.route(of, ready(0, 1, 2, 3)).tolist() == [3, 2, 0, 1]


def test_a_short_name_stands_for_the_column_of_any_stream() -> None:
    policy = make("fixed:filter:temp,filter:s.room,filter:room", 0)
    one = ledger("filter:lab.room", "filter:lab.hum", "filter:lab.temp")
    other = ledger("filter:s.room", "filter:s.temp")
    assert policy.route(one, ready(0, 1, 2)).tolist() == [2, 0, 1]
    assert policy.route(other, ready(0, 1)).tolist() == [1, 0]
    assert policy.route(one, ready(0, 1, 2)).tolist() == [2, 0, 1]


def test_a_short_name_is_a_whole_name() -> None:
    of = ledger("filter:t.overtemp", "filter:t.temp", "residual:temp")
    assert make("fixed:filter:temp", 0).route(of, ready(0, 1, 2)).tolist() == [1, 0, 2]


def test_a_fixed_order_follows_the_names_when_a_number_is_used_again() -> None:
    of = ledger("filter:t.a", "residual:t#1")
    policy = make("fixed:residual:t#2,filter:a,residual:t#1", 0)
    assert policy.route(of, ready(0, 1)).tolist() == [0, 1]
    of.predicates[1] = 0
    of.remove(1)
    assert of.add("residual:t#2", 10.0) == 1
    assert policy.route(of, ready(0, 1)).tolist() == [1, 0]


# ---- random


@pytest.mark.parametrize("n_modules", [2, 3, 4])
def test_random_takes_every_order_about_equally_often(n_modules: int) -> None:
    of = ledger(*"abcd"[:n_modules])
    of.tickets[0] = 1000.0
    n = 6000
    counts = Counter(routes(make("random", 7), of, np.arange(n_modules, dtype=np.int32), n))
    expected = n / math.factorial(n_modules)
    assert set(counts) == set(permutations(range(n_modules)))
    assert all(abs(count - expected) < 5 * math.sqrt(expected) for count in counts.values())


# ---- lottery


@pytest.mark.parametrize("name", ["lottery", "backpressure"])
def test_tickets_follow_the_formula(name: str) -> None:
    of = ledger("a", "b")
    of.predicates[:] = [3, 40]
    policy = make(name, 0)
    expected = [1.0, 1.0]
    rng = np.random.default_rng(2)
    for _ in range(300):
        module, rows_in = int(rng.integers(2)), int(rng.integers(1, 500))
        rows_out = int(rng.integers(0, rows_in + 1))
        policy.visited(of, *one(module, rows_in, rows_out))
        earned = [3, 40][module] * (rows_in - rows_out)
        expected[module] = max(FLOOR, expected[module] * FADE**rows_in + earned)
        # powers of numpy and Python may differ in the last bit, by the machine
        assert of.tickets.tolist() == pytest.approx(expected, rel=1e-12)


def test_a_module_that_returns_every_row_falls_to_the_floor_and_no_lower() -> None:
    of = ledger("a")
    of.tickets[0] = 5000.0
    policy = make("lottery", 0)
    for _ in range(30):
        policy.visited(of, *one(0, 1000, 1000))
    assert of.tickets[0] == FLOOR


def test_tickets_fade_by_rows_not_by_batches() -> None:
    whole, parts = ledger("a"), ledger("a")
    whole.tickets[0] = parts.tickets[0] = 1e6
    policy = make("lottery", 0)
    policy.visited(whole, *one(0, 2000, 2000))
    for _ in range(2000):
        policy.visited(parts, *one(0, 1, 1))
    assert parts.tickets[0] == pytest.approx(whole.tickets[0], rel=1e-9) == pytest.approx(1e6 * FADE**2000)


def test_small_batches_earn_about_as_much_as_one_that_holds_their_rows() -> None:
    whole, parts = ledger("a", predicates=10), ledger("a", predicates=10)
    policy = make("lottery", 0)
    policy.visited(whole, *one(0, 64, 16))
    for _ in range(16):
        policy.visited(parts, *one(0, 4, 1))
    assert parts.tickets[0] == pytest.approx(whole.tickets[0], rel=0.05)


def test_a_module_comes_first_as_often_as_its_share_of_tickets() -> None:
    of = ledger("a", "b", "c")
    of.tickets[:] = [6.0, 3.0, 1.0]
    policy = make("lottery", 3)
    counts = Counter(routes(policy, of, ready(0, 1, 2), 8000))
    for order in permutations(range(3)):
        left, chance = [6.0, 3.0, 1.0], 1.0
        for module in order:
            chance *= left[module] / sum(left)
            left[module] = 0.0
        assert counts[order] / 8000 == pytest.approx(chance, abs=0.025)


def test_tickets_of_modules_that_are_not_ready_do_not_count() -> None:
    of = ledger("a", "b", "c")
    of.tickets[:] = [1e9, 1.0, 1.0]
    found = Counter(routes(make("lottery", 3), of, ready(1, 2), 2000))
    assert set(found) == {(1, 2), (2, 1)} and abs(found[1, 2] - 1000) < 150


def test_a_module_at_the_floor_is_still_tried() -> None:
    of = ledger("a", "b")
    of.tickets[:] = [50.0, FLOOR]
    assert 0.005 < first_share(make("lottery", 1), of, 1) < 0.05


def test_the_lottery_learns_which_module_is_selective() -> None:
    of = ledger("a", "b")
    policy = make("lottery", 4)
    for _ in range(100):
        policy.visited(of, *one(0, 64, 60))
        policy.visited(of, *one(1, 64, 10))
    assert first_share(policy, of, 1) > 0.85


# ---- backpressure


def test_backpressure_prefers_the_cheaper_of_two_equally_selective_modules() -> None:
    of = ledger("dear", "cheap")
    policy = make("backpressure", 4)
    for _ in range(100):
        for module, ns in ((0, 900), (1, 100)):
            policy.visited(of, *one(module, 64, 32))
            of.measure(module, 64, 64 * ns)
    assert of.tickets[0] == of.tickets[1]
    assert first_share(policy, of, 1) == pytest.approx(0.9, abs=0.03)
    assert first_share(make("lottery", 4), of, 1) == pytest.approx(0.5, abs=0.05)


def test_backpressure_takes_a_cost_below_a_nanosecond_as_one() -> None:
    of = ledger("a", "b")
    of.cost_ns[:] = [0.0, 1.0]
    assert first_share(make("backpressure", 2), of, 0) == pytest.approx(0.5, abs=0.05)


# ---- greedy


def test_greedy_takes_first_what_clears_most_bits_for_its_cost() -> None:
    of = ledger("a", "b", "c")
    of.cleared_rate[:] = [10.0, 10.0, 100.0]
    of.cost_ns[:] = [5.0, 1.0, 20.0]
    policy = make("greedy", 0)
    assert routes(policy, of, ready(0, 1, 2), 20) == [(1, 2, 0)] * 20


def test_equal_gains_keep_the_order_of_the_modules() -> None:
    of = ledger("a", "b", "c")
    assert make("auto", 0).route(of, ready(0, 1, 2)).tolist() == [0, 1, 2]
    assert make("auto", 0).route(of, ready(0, 2)).tolist() == [0, 2]


@pytest.mark.parametrize("name", POLICIES)
def test_a_route_serves_one_batch_or_more(name: str) -> None:
    of, policy = ledger("filter:t.a", "filter:t.b"), make(name, 1)
    served = []
    for _ in range(12):
        policy.route(of, ready(0, 1))
        served.append(policy.serves)
    if name in ("auto", "greedy"):
        assert served == sorted(served) and 1 <= served[0] < served[-1] == REFRESH, "looks again soon while little is known"
    elif name.startswith("fixed"):
        assert min(served) > 10**6, "nothing is learned"
    else:
        assert served == [1] * 12
    assert policy.per_row == (name not in ("auto", "greedy"))


def test_greedy_looks_again_soon_at_each_stream() -> None:
    one, other = ledger("a", "b"), ledger("c", "d")
    policy = make("greedy", 1)
    for _ in range(12):
        policy.route(one, ready(0, 1))
    policy.route(other, ready(0, 1))
    assert policy.serves < REFRESH


def test_greedy_follows_rates_that_change() -> None:
    of = ledger("a", "b")
    of.cleared_rate[:] = [2.0, 1.0]
    policy = make("greedy", 1)
    assert routes(policy, of, ready(0, 1), 3) == [(0, 1)] * 3
    of.cleared_rate[:] = [1.0, 2.0]
    assert routes(policy, of, ready(0, 1), 3) == [(1, 0)] * 3


def test_greedy_follows_rates_of_every_stream_when_two_take_turns() -> None:
    one, other = ledger("a", "b"), ledger("c", "d")
    one.cleared_rate[:], other.cleared_rate[:] = [2.0, 1.0], [1.0, 2.0]
    policy = make("greedy", 1)
    for _ in range(3):
        assert policy.route(one, ready(0, 1)).tolist() == [0, 1]
        assert policy.route(other, ready(0, 1)).tolist() == [1, 0]


def test_greedy_answers_for_other_ready_modules_at_once() -> None:
    of = ledger("a", "b", "c")
    of.cleared_rate[:] = [1.0, 2.0, 3.0]
    policy = make("greedy", 1)
    assert policy.route(of, ready(0, 1)).tolist() == [1, 0]
    assert policy.route(of, ready(0, 1, 2)).tolist() == [2, 1, 0]


# ---- the ledger


def test_a_ledger_counts_visits_and_averages_over_rows() -> None:
    whole, parts = ledger("a"), ledger("a")
    whole.record(*one(0, 400, 100, 1200))
    for _ in range(40):
        parts.record(*one(0, 10, 2 + (_ % 2), 30))
    assert whole.rows_in[0] == parts.rows_in[0] == 400
    assert (whole.rows_out[0], whole.cleared[0]) == (100, 1200) == (parts.rows_out[0], parts.cleared[0])
    assert whole.cleared_rate[0] == pytest.approx(3.0) == parts.cleared_rate[0], "all rows count alike at first"


def test_later_rows_are_averaged_over_the_memory_only() -> None:
    of = ledger("a")
    n = int(MEMORY_ROWS)
    for _ in range(10):
        of.record(*one(0, n, 0, 0))
    of.record(*one(0, n // 8, n // 8, 3 * n // 8))
    of.measure(0, n, 10 * n)
    of.measure(0, n // 8, 90 * n // 8)
    assert of.cleared_rate[0] == pytest.approx(3 / 8)
    assert of.cost_ns[0] == pytest.approx(10 + 80 / 8)


def test_what_samples_tell_is_kept_apart_from_visits() -> None:
    of = ledger("a")
    of.profile(0, 8.0)
    assert of.cleared_rate[0] == 8.0
    of.record(*one(0, 100, 50, 200), sampled=True)
    assert (of.cleared_rate[0], of.cleared[0]) == (8.0, 200)
    of.profile(0, 4.0)
    assert of.cleared_rate[0] == 6.0, "the last few samples count"


def test_a_batch_longer_than_the_memory_is_all_that_is_remembered() -> None:
    of = ledger("a")
    of.record(*one(0, 10_000, 1_000, 50_000))
    of.measure(0, 10_000, 70_000)
    assert of.cleared_rate[0] == pytest.approx(5.0)
    assert of.cost_ns[0] == pytest.approx(7.0)


def test_a_visit_without_rows_says_nothing_of_the_cost() -> None:
    of = ledger("a")
    of.measure(0, 0, 1000)
    assert of.cost_ns[0] == 10.0


def test_what_several_modules_did_is_recorded_as_if_one_by_one() -> None:
    together, apart = ledger("a", "b", "c"), ledger("a", "b", "c")
    for modules, visits in (([0, 2], [(40, 10, 90), (7, 7, 0)]), ([2, 1, 0], [(5000, 1, 8), (1, 0, 3), (30, 2, 60)])):
        together.record(np.array(modules), *np.array(visits).T)
        for module, visit in zip(modules, visits):
            apart.record(*one(module, *visit))
    for field in ("rows_in", "rows_out", "cleared", "cleared_rate"):
        assert getattr(together, field).tolist() == getattr(apart, field).tolist()
    assert together.rows_in.tolist() == [70, 1, 5007]


def test_the_number_of_a_module_that_went_is_used_again_from_scratch() -> None:
    of = ledger("a", "b", "c")
    of.record(*one(1, 5000, 1, 1))
    of.measure(1, 5000, 10**9)
    of.tickets[1] = 77.0
    of.predicates[1] = 0
    of.remove(1)
    assert of.add("d", 3.0) == 1
    assert of.names == ["a", "d", "c"]
    assert (of.rows_in[1], of.rows_out[1], of.cleared[1], of.predicates[1]) == (0, 0, 0, 0)
    assert (of.cost_ns[1], of.tickets[1], of.cleared_rate[1]) == (3.0, 1.0, 1.0)
    assert of.add("e", 3.0) == 3


def test_a_module_that_applies_predicates_does_not_go() -> None:
    of = ledger("a")
    with pytest.raises(AssertionError, match="a module goes when it applies no predicate"):
        of.remove(0)
