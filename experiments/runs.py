"""A run of an experiment on disk: one folder holds all of it.

    DIR/NAME/rows.csv      what was measured, with every parameter that varies
    DIR/NAME/plot.png .svg the picture
    DIR/NAME/run.json      the setting, how long it took, the verdict

A run is made in a folder beside and takes its place at the end: one that was cut off leaves what was there before.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.drawing import save
from experiments.experiment import Check, Experiment, Row, Setting, Value, Verdict
from lineage.errors import EddyError, NotFoundError

ROWS, RUN, PNG, SVG = "rows.csv", "run.json", "plot.png", "plot.svg"
_PARTIAL = ".partial-"

#: Told before each step and at the end: steps done, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has ended."""

    name: str
    quick: bool
    seed: int
    #: by the clock on the wall
    seconds: float
    verdict: Verdict


def run(experiment: Experiment, setting: Setting, out: Path, progress: Progress = lambda done, total: None) -> FinishedRun:
    """Measure, judge, draw and keep."""
    check_files(experiment, setting)
    began = time.monotonic()
    steps = experiment.steps(setting)
    rows: list[Row] = []
    for n, step in enumerate(steps):
        progress(n, len(steps))
        rows += step()
    progress(len(steps), len(steps))
    verdict = experiment.judge(rows)
    found = FinishedRun(experiment.name, setting.quick, setting.seed, time.monotonic() - began, verdict)
    try:
        _keep(experiment, rows, found, out)
    except OSError as error:
        raise EddyError(
            f"the results cannot be written to {out}", code="cannot_write", detail=error.strerror or str(error),
            hint="--out names another folder",
        ) from None  # fmt: skip
    return found


def check_files(experiment: Experiment, setting: Setting) -> None:
    """Raise unless the real data that an experiment reads is there."""
    if not experiment.files:
        return
    if setting.data is None:
        raise EddyError(
            f"{experiment.name} reads real data", code="no_data", hint=f"--data DIR, a folder with {', '.join(experiment.files)}"
        )
    for name in experiment.files:
        if not (setting.data / name).is_file():
            raise NotFoundError(f"there is no file {setting.data / name}", code="no_data", hint="--data names its folder")


def _keep(experiment: Experiment, rows: Sequence[Row], found: FinishedRun, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for left in out.glob(f".{experiment.name}{_PARTIAL}*"):
        shutil.rmtree(left)
    folder = out / f".{experiment.name}{_PARTIAL}{os.getpid()}"
    folder.mkdir()
    write_rows(folder / ROWS, rows)
    save(experiment, rows, folder / PNG, folder / SVG)
    text = asdict(found) | {"holds": found.verdict.holds}
    (folder / RUN).write_text(json.dumps(text, indent=1) + "\n")
    final = out / experiment.name
    if final.exists():
        shutil.rmtree(final)
    folder.rename(final)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """The CSV; every row has the same columns."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[Row]:
    """The CSV back; numbers are numbers again."""
    with path.open(newline="") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_run(folder: Path) -> FinishedRun:
    """Read the files that `run` wrote."""
    try:
        found: dict[str, Any] = json.loads((folder / RUN).read_text())
        checks = tuple(Check(**check) for check in found["verdict"]["checks"])
        verdict = Verdict(checks, found["verdict"]["note"])
        return FinishedRun(found["name"], found["quick"], found["seed"], found["seconds"], verdict)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EddyError(
            f"{folder} holds no run of an experiment", code="bad_file", detail=str(error), hint="run it again"
        ) from None
