"""Bars at their full size, for `./check --soak NAME`: each runs for hours, once for the change that needs its figure.

    python -m tests.soak NAME

The last line has the figure; whoever keeps it keeps the commit beside it. A soak that fails ends with the trace of what it found.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.test_kills import run_kills
from tests.fault.test_catalog_crashes import CatalogTrial
from tests.fault.test_journal_crashes import JournalTrial
from tests.fault.test_snapshot_crashes import SnapshotTrial
from tests.property.test_csv_fuzz import BODIES, test_mutated_bodies_are_taken_or_refused
from tests.reference import arrow_fuzz, comparison, driver, merge_trials, window_harness
from tests.reference.crashes import sweep
from tests.reference.directory_trial import DirectoryTrial

ROOT = Path(__file__).resolve().parents[1]
#: Seeds from here on are of no test.
FIRST_SEED = 1_000_000
#: Cases of merges, and whether as a bag.
MERGE_CASES = (("R0", False), ("R1", False), ("R2", False), ("R2", True), ("R3", False), ("R4", False))


def arrow(n: int) -> str:
    tally = arrow_fuzz.run(0, n, loud=True)
    assert not tally.faults and tally.peak <= 4 * arrow_fuzz.BODY_BYTES, tally
    return f"{tally.count:,} bodies: {tally.taken:,} taken, {tally.refused:,} refused, peak {tally.peak >> 20} MiB"


def csv(n: int) -> str:
    for seed in range(FIRST_SEED, FIRST_SEED + n):
        test_mutated_bodies_are_taken_or_refused(seed)
    return f"{n * BODIES:,} bodies taken or refused"


def kills(n: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        run_kills(Path(folder) / "data", n, FIRST_SEED)
    return f"{n:,} kills, nothing lost or repeated"


def crashes(n: int) -> str:
    n_recoveries = 0
    for seed in range(FIRST_SEED, FIRST_SEED + n):
        for trial in (JournalTrial(seed), SnapshotTrial(seed), CatalogTrial(seed), DirectoryTrial(seed)):
            n_recoveries += sweep(trial, n_losses=2, again_every=5)
    return f"{n_recoveries:,} recoveries of four parts of the storage, {n:,} seeds each"


def models(n: int) -> str:
    before = comparison.n_compared
    for seed in range(FIRST_SEED, FIRST_SEED + n):
        driver.run(seed, 80, driver.subject)
        window_harness.run(seed, 80, driver.subject)
    return f"{comparison.n_compared - before:,} comparisons with models and DuckDB, {n:,} seeds of queries and of trees each"


def lmerge(n: int) -> str:
    """Trials of every case until so many outputs were checked after an element: validity, C1-C3 or counts; tables at the end.

    Beside that kernel and twin are compared element by element, and outputs under another cut.
    """
    before, seed = comparison.n_compared, FIRST_SEED
    counts = dict.fromkeys(("beside twins", "after each element", "cut anew"), 0)
    while counts["after each element"] < n:
        for case, bag in MERGE_CASES:
            words: dict[str, Any] | None = {"bag": True} if bag else ({} if seed % 2 else None)
            trial = merge_trials.draw_trial(seed, case, words=words)
            at = comparison.n_compared
            merge_trials.run_beside_twin(trial)
            counts["beside twins"] += comparison.n_compared - at
            at = comparison.n_compared
            merge_trials.run_compatible(trial)
            counts["after each element"] += comparison.n_compared - at
            at = comparison.n_compared
            merge_trials.run_cut_anew(trial, seed)
            counts["cut anew"] += comparison.n_compared - at
        seed += 1
    parts = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    n_trials = (seed - FIRST_SEED) * len(MERGE_CASES)
    return f"{comparison.n_compared - before:,} checks of {n_trials:,} merges, 0 wrong: {parts}"


def bench(*cases: str) -> str:
    subprocess.run([ROOT / "eddyctl", "bench", *cases], check=True)
    return "the tables above"


class Soak(NamedTuple):
    what: str
    run: Callable[[int], str]
    n: int


SOAKS = {
    "arrow": Soak("1,000,000 damaged Arrow bodies", arrow, 1_000_000),
    "csv": Soak("1,000,000 damaged CSV bodies", csv, 1_000),
    "kills": Soak("1,000 kills of a server that is written to and read", kills, 1_000),
    "crashes": Soak("crashes at every operation of the disk, 500 seeds", crashes, 500),
    "models": Soak("5,000 seeds of queries and of trees against the models and DuckDB", models, 5_000),
    "lmerge": Soak("1,000,000 checks of merges of random presentations", lmerge, 1_000_000),
    "bars": Soak("every case of ./eddyctl bench", lambda n: bench(), 1),
    "generate": Soak("datasets of up to 100 million rows made with Spark", lambda n: bench("generate"), 1),
}


def main() -> int:
    if len(sys.argv) < 2:
        for name, soak in SOAKS.items():
            print(f"{name:10} {soak.what}")
        return 0
    name = sys.argv[1]
    if name not in SOAKS:
        near = difflib.get_close_matches(name, SOAKS, 1)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        print(f'error: there is no soak "{name}"\nhint: {hint}there are {", ".join(SOAKS)}', file=sys.stderr)
        return 2
    soak = SOAKS[name]
    print(f"{name}: {soak.run(soak.n)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
