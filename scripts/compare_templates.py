"""CPU of a push with N queries that differ in constants only, everybody listening, on two checkouts side by side.

    python scripts/compare_templates.py BEFORE AFTER [--sizes 1,128,1024] [--families alert,slide] [--rounds 7] [--steps 3]

BEFORE and AFTER are checkouts whose kernels are compiled (`python -m eddy.base.compile` there). For each family and
size the two run alternately, each time in a process of its own, so that both see the same machine. What is printed is the best
round of each, in milliseconds of thread CPU a push of 4,096 rows, and the rows that listeners were given. Those are equal unless
a call was cut into several commits in one of them, which shows in the rows between.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FAMILIES = {
    "filter": "SELECT k, v FROM r [RANGE 10 SECONDS] WHERE x > {c}",
    "group": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE 10 SECONDS] WHERE x > {c} GROUP BY k",
    "extremes": "SELECT k, MIN(v) AS l, MAX(x) AS h FROM r [RANGE 10 SECONDS] WHERE x > {c} GROUP BY k",
    "having": "SELECT k, AVG(x) AS m FROM r [RANGE 10 SECONDS] WHERE v < {d} GROUP BY k HAVING AVG(x) > {c}",
    "attributes": "SELECT k, COUNT(*) AS n, AVG(v) AS s FROM r [RANGE 10 SECONDS] WHERE x > {c} AND v < {d} GROUP BY k",
    "arithmetic": "SELECT k, COUNT(*) AS n FROM r [RANGE 10 SECONDS] WHERE x * 2 + v > {c} GROUP BY k",
    "alert": "SELECT AVG(x) AS m FROM r [RANGE 10 SECONDS] WHERE v = {d} HAVING AVG(x) > {c}",
    "alert_two": "SELECT AVG(x) AS m FROM r [RANGE 10 SECONDS] WHERE v = {d} AND x > 20 HAVING AVG(x) > {c}",
    "group_eq": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE 10 SECONDS] WHERE v = {d} GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM r [RANGE 10 SECONDS] WHERE x > {c}",
    "distinct_eq": "SELECT DISTINCT k FROM r [RANGE 10 SECONDS] WHERE v = {d}",
    "slide": "SELECT k, COUNT(*) AS n FROM r [RANGE 10 SECONDS SLIDE 1 SECOND] WHERE x > {c} GROUP BY k",
    "slide_eq": "SELECT k, AVG(x) AS m FROM r [RANGE 10 SECONDS SLIDE 1 SECOND] WHERE v = {d} GROUP BY k",
    "tumble": "SELECT window_end, k, COUNT(*) AS n FROM TUMBLE(r, 5 SECONDS) WHERE x > {c} GROUP BY window_end, k",
    "tumble_eq": "SELECT window_end, AVG(x) AS m FROM TUMBLE(r, 5 SECONDS) WHERE v = {d} GROUP BY window_end",
    "hop": "SELECT window_end, k, COUNT(*) AS n FROM HOP(r, 5 SECONDS, 10 SECONDS) WHERE x > {c} GROUP BY window_end, k",
    "rows": "SELECT AVG(x) AS m FROM r [ROWS 1000] WHERE v = {d}",
    "partitioned": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [PARTITION BY k ROWS 10] WHERE x > {c} GROUP BY k",
    "median": "SELECT k, MEDIAN(x) AS m FROM r [RANGE 10 SECONDS] WHERE v = {d} GROUP BY k",
    "except": "SELECT k FROM r [RANGE 10 SECONDS] WHERE x > {c} EXCEPT SELECT k FROM r [RANGE 10 SECONDS] WHERE v < {d}",
}

#: Runs in the checkout: prints milliseconds a push, rows a push, and milliseconds a submit.
CHILD = """
import sys, time
import numpy as np
from eddy import Engine
text, n, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ROWS, clock = 4096, time.thread_time
def rows(i):
    draw = np.random.default_rng(i)
    ts = np.arange(ROWS) + i * ROWS
    return {"k": draw.integers(0, 100, ROWS), "v": draw.integers(0, 1000, ROWS), "x": draw.random(ROWS) * 100, "ts": ts}
engine = Engine()
engine.create_stream("r", {"k": "int", "v": "int", "x": "float", "ts": "timestamp"}, time="ts")
draw, given = np.random.default_rng(5), [0]
began = clock()
for _ in range(n):
    engine.submit(text.format(c=round(draw.random() * 100, 4), d=int(draw.integers(0, 1000))))
submit = (clock() - began) / n
def take(commit):
    given[0] += len(commit.row_lists()[2])
engine.on_commit(take)
for i in range(4):
    engine.push("r", rows(i))
given[0], batches = 0, [rows(i) for i in range(4, 4 + steps)]
began = clock()
for batch in batches:
    engine.push("r", batch)
print(1e3 * (clock() - began) / steps, given[0] / steps, 1e3 * submit)
"""


def measure(checkout: Path, text: str, size: int, steps: int) -> tuple[float, float, float]:
    """Milliseconds of a push, rows that listeners were given in it, and milliseconds of a submit."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, text, str(size), str(steps)], cwd=checkout, check=True, capture_output=True, text=True
    )
    push, given, submit = map(float, done.stdout.split())
    return push, given, submit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--sizes", default="1,128,1024")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3)
    asked = parser.parse_args()
    print(f"{'family':12s} {'N':>6s} {'before':>9s} {'after':>9s} {'ratio':>7s} {'rows given':>11s} {'submit':>15s}")
    for family in asked.families.split(","):
        for size in map(int, asked.sizes.split(",")):
            rounds = [
                [measure(checkout, FAMILIES[family], size, asked.steps) for checkout in (asked.before, asked.after)]
                for _ in range(asked.rounds)
            ]
            before, after = (min(push for push, _, _ in runs) for runs in zip(*rounds))
            submits = " ".join(f"{min(submit for _, _, submit in runs):7.2f}" for runs in zip(*rounds))
            given = {round(rows, 3) for runs in rounds for _, rows, _ in runs}
            rows = f"{given.pop():11.0f}" if len(given) == 1 else "  DIFFERENT"
            print(f"{family:12s} {size:6d} {before:9.2f} {after:9.2f} {before / after:7.2f} {rows} {submits}", flush=True)


if __name__ == "__main__":
    main()
