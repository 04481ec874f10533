"""Windows: operators under every expiry word, a pause in which a million rows end, signed changes of windowed filters.

operators        time a row under every expiry word against `auto`, over window size, share of rows that count, and number of
                 window lengths; bytes of state; rows looked at in search of due ones; and what the papers' pipeline does
                 under the same word: ends that come in, rows probed, messages sent, for each row
twins            the same by that pipeline, by dicts, and by DuckDB that computes the answer again every push (`--peers`)
pause            the longest commit of a call that ends 2**20 rows, and how much more memory it takes; and if they end at one
                 instant, which is never parted
signed filters   + and - of N windowed filters delivered, with 1 and 16 window lengths
group-by         of 1 to 8192 queries and 1 to 1000 groups: also a case of its own
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.base.peers import is_installed
from experiments.bench.base.timing import take_turns
from experiments.bench.cases import group_by
from experiments.bench.windows.filter_driver import FilterDriver
from experiments.bench.windows.pause import PAUSES, pause
from experiments.bench.windows.twins import DictTwin, DuckTwin, PipelineTwin
from experiments.bench.windows.window_driver import WindowDriver
from experiments.bench.windows.window_workload import TEXTS, WORDS, WindowSetting

#: What is varied, one at a time, from `WindowSetting`'s own values.
WINDOWS = (1_000, 10_000, 100_000)
SELECTIVITIES = (1, 100)
LENGTHS = (4, 16)
#: Bars: the longest step of a pause in milliseconds, and 16 window lengths against one. Memory does not double.
PAUSE_ROWS, PAUSE_BAR, MEMORY_BAR = 1 << 20, 10.0, 1.0
FILTER_COUNTS, MANY_LENGTHS, LENGTHS_BAR = (1, 128, 1024), 16, 1.5
_TWIN_PUSHES = 6


def settings(operator: str, n_rows: int) -> list[WindowSetting]:
    found = [WindowSetting(operator, n_window=window, n_rows=n_rows) for window in WINDOWS]
    found += [WindowSetting(operator, selectivity=share, n_rows=n_rows) for share in SELECTIVITIES]
    return found + [WindowSetting(operator, n_lengths=n, n_rows=n_rows) for n in LENGTHS]


def _words(setting: WindowSetting, options: Options) -> list[Line]:
    """Every expiry word in one race."""
    drivers = {word: WindowDriver(setting, word) for word in WORDS}
    rounds = take_turns({word: driver.push for word, driver in drivers.items()}, setting.n_batches, options.seconds)
    lines = []
    for word, driver in drivers.items():
        a_row = rounds.median(word) / setting.n_rows
        measures = {
            "ns_a_row": Measure(1e9 * a_row, "ns"),
            "times_auto": Measure(rounds.ratio("auto", word), "x"),
            "state": Measure(driver.state_bytes() / setting.n_window, "B/row"),
            "looked_at": Measure(driver.n_looked_at() / driver.n_pushed, "/row"),
            "results": Measure(driver.n_results / driver.n_pushed, "/row"),
        }
        if setting.n_lengths == 1 and word != "auto":
            measures |= _paper_counts(setting, word)
        lines.append(Line("windows", f"{_work(setting)}, {word}", measures, None, _numbers(setting, word)))
    return lines


def _paper_counts(setting: WindowSetting, word: str) -> dict[str, Measure]:
    twin = PipelineTwin(setting.small(), word)
    for number in range(_TWIN_PUSHES):
        twin.push(number)
    return {name: Measure(value, "/row") for name, value in twin.counts().items()}


def _work(setting: WindowSetting) -> str:
    lengths = f", {setting.n_lengths} lengths" if setting.n_lengths > 1 else ""
    return f"{setting.operator}, {setting.n_window:,} rows, {setting.selectivity} %{lengths}"


def _numbers(setting: WindowSetting, word: str) -> dict[str, int | str]:
    return {
        "operator": setting.operator,
        "window": setting.n_window,
        "selectivity": setting.selectivity,
        "lengths": setting.n_lengths,
        "expiry": word,
    }


def _twins(operator: str, options: Options) -> list[Line]:
    """The engine against the same query by other means; first their answers. The pipeline takes a row at a time: few rows."""
    setting = WindowSetting(operator, n_rows=options.rows)
    check_twins(setting.small())
    others: dict[str, Callable[[int], object]] = {"duckdb": DuckTwin(setting).push} if is_installed("duckdb") else {}
    if operator != "join":
        others["dicts"] = DictTwin(setting).push
    small = setting.small()
    found = _race_twins(setting, others, options)
    return found + _race_twins(small, {"pipeline": PipelineTwin(small, "update-pattern").push}, options)


def _race_twins(setting: WindowSetting, others: dict[str, Callable[[int], object]], options: Options) -> list[Line]:
    turns: dict[str, Callable[[int], object]] = {"engine": WindowDriver(setting, "auto").push, **others}
    rounds = take_turns(turns, setting.n_batches, options.seconds)
    lines = []
    for name in turns:
        measures = {"ns_a_row": Measure(1e9 * rounds.median(name) / setting.n_rows, "ns")}
        if name != "engine":
            measures["times_engine"] = Measure(rounds.ratio("engine", name), "x")
        work = f"{_work(setting)}, {setting.n_rows:,} a push, by {name}"
        lines.append(Line("windows", work, measures, None, _numbers(setting, name)))
    return lines


def check_twins(setting: WindowSetting) -> None:
    """All give the same answer."""
    driver = WindowDriver(setting, "auto")
    n_pushes = driver.n_pushed // setting.n_rows
    table = driver.engine.answer(driver.queries[0])
    expected = sorted(zip(*(column.to_pylist() for column in table.columns)))
    twins: list[PipelineTwin | DictTwin | DuckTwin] = [PipelineTwin(setting, word) for word in WORDS if word != "auto"]
    twins += [DuckTwin(setting)] if is_installed("duckdb") else []
    twins += [DictTwin(setting)] if setting.operator != "join" else []
    for twin in twins:
        for number in range(n_pushes):
            twin.push(number)
        found = twin.answer()
        if setting.operator == "join" and isinstance(twin, PipelineTwin):
            found = [(row[0], row[2]) for row in found]
        assert sorted(found) == expected, f"{type(twin).__name__} answers otherwise"


def _pause(name: str, n_rows: int, at_once: bool) -> list[Line]:
    found = pause(PAUSES[name], n_rows, at_once=at_once)
    longest, more = 1e3 * float(found.commits.max()), found.peak_bytes / found.before_bytes - 1
    measures = {
        "longest": Measure(longest, "ms"),
        "median": Measure(1e3 * float(sorted(found.commits)[len(found.commits) // 2]), "ms"),
        "commits": Measure(len(found.commits), ""),
        "ns_a_row": Measure(1e9 * float(found.commits.sum()) / n_rows, "ns"),
        "more_memory": Measure(more, "%"),
    }
    work = f"pause, {n_rows:,} ends{' at one instant' if at_once else ''}, {name}"
    bar = Bar.at_most(more, MEMORY_BAR, "%") if at_once else Bar.at_most(longest, PAUSE_BAR, "ms")
    return [Line("windows", work, measures, bar, {"rows": n_rows, "query": name, "at_once": int(at_once)})]


def _filters(n_queries: int, options: Options) -> list[Line]:
    drivers = {n: FilterDriver(n_queries, n, options.rows) for n in (1, MANY_LENGTHS) if n <= n_queries}
    rounds = take_turns({str(n): driver.push for n, driver in drivers.items()}, drivers[1].n_batches, options.seconds)
    lines = []
    for n, driver in drivers.items():
        seconds = rounds.median(str(n))
        measures = {
            "rows_per_s": Measure(options.rows / seconds, "/s"),
            "ns_a_row": Measure(1e9 * seconds / options.rows, "ns"),
            "pairs_per_s": Measure(driver.pairs_a_push() / seconds, "/s"),
        }
        bar = None
        if n > 1:
            times = rounds.ratio("1", str(n))
            measures["times_one_length"] = Measure(times, "x")
            bar = Bar.at_most(times, LENGTHS_BAR, "x")
        setting = {"queries": n_queries, "lengths": n}
        lines.append(Line("windows", f"signed filters, {n_queries:,} queries, {n} lengths", measures, bar, setting))
    return lines


def steps(options: Options) -> list[Step]:
    found: list[Step] = [partial(_pause, name, PAUSE_ROWS, at_once) for at_once in (False, True) for name in PAUSES]
    found += [partial(_filters, n, options) for n in options.counts(FILTER_COUNTS)]
    for operator in TEXTS:
        found += [partial(_words, setting, options) for setting in settings(operator, options.rows)]
        if options.peers:
            found.append(partial(_twins, operator, options))
    return found + group_by.steps(options)
