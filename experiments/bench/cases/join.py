"""Stocks and articles joined by symbol for queries `price > c` (`experiments/bench/joins/join_workload.py`), 4096 rows a push.

    of bare        the engine's speed against the bare SteM's, row lists delivered, at several windows and numbers of symbols;
                   beside it against the kernels of the prototypes, from whose speed the bars were taken
    growth         time a row with 128 queries against one; all quotes survive with either
    windows        16 window lengths against one
    derived key    `s.symbol % 10000 = a.symbol` against `s.symbol = a.symbol`, which give the same matches
    state          bytes that a stored row takes, and how many more with 1,024 queries than with one
    ways           joins of three to five streams
    with --peers   a Python loop over dicts of deques and NiagaraCQ's plans, also with user functions

A turn is one push to every stream. Before anything is timed the engine gives the same matches to the same queries as the Python
loop in a small workload of the same shape, and as many (match, query) pairs as the bare SteM in the one that is timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.joins.bare_join import LAYOUTS, BareJoin
from experiments.bench.joins.dict_loop import DictLoop
from experiments.bench.joins.join_driver import JoinDriver
from experiments.bench.joins.join_peers import constants_lines, functions_lines
from experiments.bench.joins.join_workload import stocks_and_articles
from experiments.bench.joins.matches import MatchLists, Pairs, assert_same
from experiments.bench.joins.prototype import PrototypeJoin
from experiments.bench.joins.race import Contestant, filled, race, rows_of_turn

COUNTS = (1, 128, 1024, 8192)
KEYS = 10_000
WINDOW = 10_000
#: Bars by number of queries: share of the speed of the prototypes' kernels, `KEYS` symbols, `WINDOW` rows a side (decision 12).
BARS = {1: 0.35, 128: 0.45, 1024: 0.60}
#: (symbols, rows a side) of further windows, at `MANY` queries.
SHAPES = ((1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000))
MANY = 128
#: Bars: time a row at `MANY` queries as a multiple of that at one, without row lists and with.
GROWTH_BARS = {False: 1.3, True: 1.7}
WINDOWS = 16
WINDOW_COUNTS = (128, 1024)
#: Bar: time a row with `WINDOWS` window lengths as a multiple of that with one.
WINDOWS_BAR = 1.5
DERIVED_COUNTS = (1, 128, 1024)
#: Share of the speed of a plain key that a key which is an expression has to reach.
DERIVED_BAR = 0.5
STATE_COUNTS = (1, 1024)
#: Bar: bytes that a stored row may take more because of the queries: a code for its one filtered attribute.
STATE_BAR = 4.0
WAYS = (2, 3, 4, 5)
PEER_COUNTS = (1, 16, 128, 1024)
#: Articles a quote, where user functions are the conditions.
ARTICLES = (1, 4, 16)

#: Rows a push, and pushes in a window, of the small workload that is checked.
_SMALL_ROWS = 32
_SMALL_PUSHES = 10


def check(n_queries: int, n_keys: int = KEYS, window_rows: int = WINDOW, n_streams: int = 2, n_windows: int = 1) -> None:
    """The engine equals the Python loop in a small workload of this shape."""
    small = _SMALL_ROWS * _SMALL_PUSHES
    workload = stocks_and_articles(
        n_queries,
        n_rows=_SMALL_ROWS,
        n_keys=max(1, small * n_keys // window_rows),
        window_rows=small,
        n_streams=n_streams,
        n_windows=n_windows,
    )
    driver, loop = filled(JoinDriver(workload)), filled(DictLoop(workload))
    found, expected = (Pairs(n_streams) for _ in range(2))
    for _ in range(2 * n_streams):
        driver.push_into(found)
        loop.push_into(expected)
    assert_same(found, expected)


def _count_pairs(driver: JoinDriver, others: Sequence[BareJoin | PrototypeJoin]) -> int:
    """The (match, query) pairs of one turn, on which all have to agree."""
    counts = [0] * len(others)

    def count(k: int, part: MatchLists) -> None:
        counts[k] += len(part.lists.rows)

    before = driver.n_pairs
    for _ in range(2):
        driver.push()
        for k, other in enumerate(others):
            other.push(partial(count, k))
    n_pairs = driver.n_pairs - before
    assert counts == [n_pairs] * len(others), f"{n_pairs} (match, query) pairs, not {counts}"
    return n_pairs


def _against_bare(n_queries: int, n_keys: int, window_rows: int, options: Options) -> list[Line]:
    check(n_queries, n_keys, window_rows)
    workload = stocks_and_articles(n_queries, n_rows=options.rows, n_keys=n_keys, window_rows=window_rows)
    driver = filled(JoinDriver(workload))
    bare = {f"bare {name}": filled(BareJoin(workload, lister)) for name, lister in LAYOUTS.items()}
    prototype = filled(PrototypeJoin(workload))
    n_pairs = _count_pairs(driver, [bare["bare prefixes"], prototype])
    rounds = race({"engine": driver, **bare, "prototype": prototype}, options.seconds)
    best = rounds.fastest("bare")
    of_prototype = rounds.ratio("engine", "prototype")
    seconds = rounds.median("engine")
    measures = {
        "rows_per_s": Measure(rows_of_turn(workload) / seconds, "/s"),
        "pairs_per_s": Measure(n_pairs / seconds, "/s"),
        "bare_rows_per_s": Measure(rows_of_turn(workload) / rounds.median(best), "/s"),
        "of_bare": Measure(rounds.ratio("engine", best), "%"),
        "of_prototype": Measure(of_prototype, "%"),
        "a_stored_row": Measure(driver.state_bytes(), "B"),
    }
    bar = BARS.get(n_queries) if (n_keys, window_rows) == (KEYS, WINDOW) else None
    setting: dict[str, int | str] = {"queries": n_queries, "keys": n_keys, "window": window_rows, "bare": best}
    work = f"{n_queries:,} queries, {n_keys:,} symbols, last {window_rows:,} a side"
    return [Line("join", work, measures, None if bar is None else Bar.at_least(of_prototype, bar, "%"), setting)]


def _growth(options: Options) -> list[Line]:
    lines = []
    for lists, bar in GROWTH_BARS.items():
        drivers: dict[str, Contestant] = {
            str(n): filled(JoinDriver(stocks_and_articles(n, n_rows=options.rows), lists=lists)) for n in (1, MANY)
        }
        found = race(drivers, options.seconds).ratio("1", str(MANY))
        work = f"{MANY} queries against one, {'with' if lists else 'without'} row lists"
        measures = {"times_as_long": Measure(found, "x")}
        lines.append(Line("join", work, measures, Bar.at_most(found, bar, "x"), {"queries": MANY, "lists": int(lists)}))
    return lines


def _windows(n_queries: int, options: Options) -> list[Line]:
    check(n_queries, n_windows=WINDOWS)
    drivers: dict[str, Contestant] = {
        str(n): filled(JoinDriver(stocks_and_articles(n_queries, n_rows=options.rows, n_windows=n))) for n in (1, WINDOWS)
    }
    rounds = race(drivers, options.seconds)
    found = rounds.ratio("1", str(WINDOWS))
    rows = rows_of_turn(drivers["1"].workload)
    measures = {"rows_per_s": Measure(rows / rounds.median(str(WINDOWS)), "/s"), "times_as_long": Measure(found, "x")}
    work = f"{n_queries:,} queries, {WINDOWS} window lengths against one"
    return [Line("join", work, measures, Bar.at_most(found, WINDOWS_BAR, "x"), {"queries": n_queries, "windows": WINDOWS})]


def _derived_key(n_queries: int, options: Options) -> list[Line]:
    drivers: dict[str, Contestant] = {
        str(derived): filled(JoinDriver(stocks_and_articles(n_queries, n_rows=options.rows, n_keys=KEYS, derived_key=derived)))
        for derived in (False, True)
    }
    found = {driver.n_pairs for driver in drivers.values() if isinstance(driver, JoinDriver)}
    assert len(found) == 1, f"the two keys give {found} (match, query) pairs"
    rounds = race(drivers, options.seconds)
    share = rounds.ratio(str(True), str(False))
    measures = {
        "rows_per_s": Measure(rows_of_turn(drivers[str(True)].workload) / rounds.median(str(True)), "/s"),
        "of_plain_key": Measure(share, "%"),
    }
    work = f"{n_queries:,} queries, a key that is an expression against a plain one"
    return [Line("join", work, measures, Bar.at_least(share, DERIVED_BAR, "%"), {"queries": n_queries, "derived": 1})]


def _state(options: Options) -> list[Line]:
    few, many = (filled(JoinDriver(stocks_and_articles(n, n_rows=options.rows))).state_bytes() for n in STATE_COUNTS)
    measures = {"a_stored_row": Measure(many, "B"), "more_than_one_query": Measure(many - few, "B")}
    work = f"state of {STATE_COUNTS[1]:,} queries against one"
    return [Line("join", work, measures, Bar.at_most(many - few, STATE_BAR, "B"), {"queries": STATE_COUNTS[1]})]


def _ways(options: Options) -> list[Line]:
    for n in WAYS:
        check(MANY, n_streams=n)
    drivers: dict[str, Contestant] = {
        str(n): filled(JoinDriver(stocks_and_articles(MANY, n_rows=options.rows, n_streams=n))) for n in WAYS
    }
    rounds = race(drivers, options.seconds)
    two = rounds.median("2") / rows_of_turn(drivers["2"].workload)
    lines = []
    for name, driver in drivers.items():
        a_row = rounds.median(name) / rows_of_turn(driver.workload)
        measures = {"rows_per_s": Measure(1 / a_row, "/s"), "times_as_long": Measure(a_row / two, "x")}
        setting = {"queries": MANY, "streams": driver.workload.n_streams}
        lines.append(Line("join", f"{MANY} queries, {name} streams", measures, None, setting))
    return lines


def steps(options: Options) -> list[Step]:
    found: list[Step] = [partial(_against_bare, n, KEYS, WINDOW, options) for n in options.counts(COUNTS)]
    found += [partial(_against_bare, MANY, keys, rows, options) for keys, rows in SHAPES]
    found += [partial(_growth, options), *(partial(_windows, n, options) for n in WINDOW_COUNTS)]
    found += [partial(_derived_key, n, options) for n in options.counts(DERIVED_COUNTS)]
    found += [partial(_state, options), partial(_ways, options)]
    if options.peers:
        found += [partial(constants_lines, n, options.rows, options.seconds) for n in options.counts(PEER_COUNTS)]
        found += [partial(functions_lines, articles, options.seconds) for articles in ARTICLES]
    return found
