"""Damaged Arrow bodies through the door and into an engine, in children that may die.

    python -m tests.reference.arrow_fuzz --count 1000000

A child takes a range of seeds. What pyarrow or the engine does to it is counted by its parent: signals, exceptions that are no
refusals, and how much memory it took at most beyond what it had. Each body that is taken is pushed and an answer read. Each that
is refused is given to a second engine as well, which must be what it was in the end.
"""

from __future__ import annotations

import argparse
import collections
import json
import mmap
import os
import struct
import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

from api.wire.bodies import ARROW, parse_bundle, parse_rows
from eddy import EddyError, Engine
from tests.reference.arrow_bodies import COLUMNS, Seedling, mutated, seedlings
from tests.reference.peaks import limit_memory, resident
from tests.unit.eddy.digest import digest

#: Bytes that a body may have: what a child takes is measured against it.
BODY_BYTES = 16 << 20
#: Bodies of one child.
PART = 5000
#: Columns of the answers that are read.
_READ = ("ts", "int64", "float32", "bool", "string", "string_view", "coded8", "time_text", "days_coded")
#: One in so many bodies is screened as well, as `?bad=skip` does.
SCREENED = 16


@dataclass
class Tally:
    """What became of bodies."""

    count: int = 0
    taken: int = 0
    refused: int = 0
    #: seeds by what happened
    faults: dict[str, list[int]] = field(default_factory=dict)
    #: bytes beyond what a child had at first, at most
    peak: int = 0
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)


def make_engine() -> Engine:
    """An engine with two streams that have a column for each of all kinds."""
    engine = Engine()
    for name in "st":
        engine.create_stream(name, COLUMNS, time="ts")
        engine.submit(f"SELECT {', '.join(_READ)} FROM {name} [ROWS 2]", name=f"q{name}")
    return engine


def push(engine: Engine, given: Seedling, room: int | None = BODY_BYTES) -> None:
    """Bring a body to an engine as the service does, and read what came of it."""
    if given.bundle:
        engine.push_many(parse_bundle(given.body, ARROW, lambda stream: len(COLUMNS), room))
    else:
        engine.push("s", parse_rows(given.body, ARROW, len(COLUMNS), room))


def run(first: int, count: int, *, loud: bool = False) -> Tally:
    """Try the bodies of some seeds, in children; aloud, what has become of them is told after each."""
    engine = make_engine()
    for seedling in seedlings():
        # whatever is made once is made before children are measured
        one(engine, engine, seedling, True)
    tally = Tally()
    at = first
    while at < first + count:
        last = min(at + PART, first + count)
        at = _child(at, last, tally)
        if loud:
            faults = sum(map(len, tally.faults.values()))
            print(f"seed {at}: {tally.count} bodies, {faults} faults, peak {tally.peak >> 20} MiB", file=sys.stderr, flush=True)
    return tally


def _child(first: int, last: int, tally: Tally) -> int:
    """Try seeds in a child; gives the seed to go on with, which is not the last one if the child died."""
    current = mmap.mmap(-1, 8)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            report = json.dumps(_work(first, last, current)).encode()
            while report:
                report = report[os.write(writing, report) :]
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    said = b""
    while piece := os.read(reading, 1 << 16):
        said += piece
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if status == 0 and said:
        found = json.loads(said)
        tally.count += last - first
        tally.taken += found["taken"]
        tally.refused += found["refused"]
        tally.peak = max(tally.peak, found["peak"])
        tally.outcomes.update(found["outcomes"])
        for fault, seeds in found["faults"].items():
            tally.faults.setdefault(fault, []).extend(seeds)
        return last
    (seed,) = struct.unpack("<q", current[:8])
    fault = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
    tally.faults.setdefault(fault, []).append(seed)
    tally.count += seed - first + 1
    return int(seed) + 1


def _work(first: int, last: int, current: mmap.mmap) -> dict[str, Any]:
    """What a child does."""
    engine, untouched = make_engine(), make_engine()
    before = digest(untouched)
    base = limit_memory()
    outcomes: collections.Counter[str] = collections.Counter()
    faults: dict[str, list[int]] = {}
    for seed in range(first, last):
        current[:8] = struct.pack("<q", seed)
        found = one(engine, untouched, mutated(seed), seed % SCREENED == 0)
        outcomes[found] += 1
        if found.startswith("fault"):
            faults.setdefault(found, []).append(seed)
    if digest(untouched) != before:
        faults["a refusal has changed the engine"] = [first]
    taken = outcomes.pop("taken", 0)
    return {"taken": taken, "refused": last - first - taken, "peak": resident() - base, "faults": faults, "outcomes": outcomes}


def one(engine: Engine, untouched: Engine, given: Seedling, screened: bool) -> str:
    """What becomes of one body: "taken", the code of its refusal, or a fault."""
    try:
        try:
            push(engine, given)
            engine.answer("qs").to_pylist()
            if screened and not given.bundle:
                engine.screen("s", parse_rows(given.body, ARROW, len(COLUMNS), BODY_BYTES))
            return "taken"
        except EddyError as error:
            refusal = error
        try:
            push(untouched, given)
            return "fault: taken the second time"
        except EddyError as error:
            if str(error) != str(refusal):
                return "fault: refused in other words"
        if screened and not given.bundle:
            try:
                engine.screen("s", parse_rows(given.body, ARROW, len(COLUMNS), BODY_BYTES))
            except EddyError:
                pass
        return refusal.code
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"fault: {type(error).__name__} at {os.path.basename(where.filename)}:{where.lineno}: {str(error)[:80]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=20_000, help="how many bodies")
    options = parser.parse_args()
    tally = run(options.first, options.count, loud=True)
    print(
        f"{tally.count:,} bodies: {tally.taken:,} taken, {tally.refused:,} refused, "
        f"peak {tally.peak / 2**20:.0f} MiB beyond the base"
    )
    for code, n in tally.outcomes.most_common():
        print(f"{n:>10,} {code}")
    for fault, seeds in sorted(tally.faults.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):>10,} FAULT {fault}, first seeds {seeds[:5]}")
    return 1 if tally.faults or tally.peak > 4 * BODY_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
