"""A run on disk: CSV, pictures, verdict, report; what is cut off leaves what was there; what cannot be done is said."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import drawing
from experiments.cacq import routing
from experiments.command import SHOWN, chosen_of, described
from experiments.compare import comparison
from experiments.experiment import Row, Setting
from experiments.registry import EXPERIMENTS
from experiments.report import write_report
from experiments.runs import PNG, ROWS, RUN, SVG, read_rows, read_run, run, write_rows
from lineage.errors import EddyError
from tests.unit.experiments.test_merge_verdicts import MERGES_GOOD
from tests.unit.experiments.test_verdicts import GOOD, routing_rows
from tests.unit.pipeline.writing import write_dataset

#: The experiment with rows made up.
MADE_UP = replace(routing.EXPERIMENT, steps=lambda setting: [lambda: routing_rows()[:12], lambda: routing_rows()[12:]])


def test_a_run_keeps_rows_pictures_and_verdict(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    found = run(MADE_UP, Setting(quick=True, seed=5), tmp_path, lambda done, total: told.append((done, total)))
    folder = tmp_path / "routing"
    assert read_rows(folder / ROWS) == routing_rows()
    assert read_run(folder) == found and found.verdict.holds and found.quick and found.seed == 5
    assert (folder / PNG).read_bytes().startswith(b"\x89PNG") and b"<svg" in (folder / SVG).read_bytes()
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["routing"]


def test_the_same_rows_give_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(MADE_UP, Setting(), tmp_path / name)
    for file in (ROWS, PNG, SVG):
        assert (tmp_path / "one/routing" / file).read_bytes() == (tmp_path / "two/routing" / file).read_bytes()


def test_a_run_that_is_cut_off_leaves_the_one_before(tmp_path: Path) -> None:
    run(MADE_UP, Setting(), tmp_path)
    before = (tmp_path / "routing" / RUN).read_bytes()

    def broken(figure: Any, rows: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(replace(MADE_UP, draw=broken), Setting(), tmp_path)
    assert (tmp_path / "routing" / RUN).read_bytes() == before
    # and the next one clears up
    run(MADE_UP, Setting(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["routing"]


@pytest.mark.parametrize("name", [*GOOD, *MERGES_GOOD])
def test_every_picture_can_be_drawn_from_its_rows(name: str, tmp_path: Path) -> None:
    rows = (GOOD | MERGES_GOOD)[name][1]
    full: list[Row] = [dict.fromkeys(SHOWN[name].columns, 1) | row for row in rows]
    drawing.save(SHOWN[name], full, tmp_path / PNG, tmp_path / SVG)
    assert (tmp_path / PNG).stat().st_size > 5000


def test_the_report_is_one_page_with_nothing_beside_it(tmp_path: Path) -> None:
    run(MADE_UP, Setting(quick=True), tmp_path)
    text = write_report(tmp_path, EXPERIMENTS).read_text()
    assert routing.EXPERIMENT.question in text and "holds" in text and "data:image/png;base64," in text
    assert "http://" not in text and "https://" not in text and 'src="' not in text
    assert "eddy experiment run routing --quick" in text
    assert all(parameter.name in text for parameter in routing.EXPERIMENT.parameters)


def test_the_report_says_what_does_not_hold(tmp_path: Path) -> None:
    bad = replace(MADE_UP, steps=lambda setting: [lambda: routing_rows(lottery=2.0)])
    run(bad, Setting(), tmp_path)
    text = write_report(tmp_path, EXPERIMENTS).read_text()
    assert "does not hold" in text and "missed" in text


def test_a_folder_without_results_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(EddyError, match="no results"):
        write_report(tmp_path, EXPERIMENTS)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows: list[Row] = [{"name": "a,b", "n": 3, "x": 0.1, "none": ""}, {"name": 'say "x"', "n": -1, "x": 1e-9, "none": "y"}]
    write_rows(tmp_path / ROWS, rows)
    assert read_rows(tmp_path / ROWS) == rows


def test_every_experiment_says_what_its_columns_and_parameters_are() -> None:
    for experiment in EXPERIMENTS.values():
        assert experiment.figure.startswith(("CACQ", "LMerge")) and experiment.caption and experiment.parameters
        assert json.dumps(described(experiment))
    assert EXPERIMENTS["routing"].steps(Setting(quick=True))


def test_what_to_run_is_said_or_asked_for() -> None:
    own = [one.name for one in chosen_of([], True, Setting())]
    assert "routing" in own and "lab" not in own
    assert {"lab", "news"} <= {one.name for one in chosen_of([], True, Setting(data=Path("somewhere")))}
    assert [one.name for one in chosen_of(["tickets", "routing", "tickets"], False, Setting())] == ["tickets", "routing"]
    for names, all_, fact in (([], False, "which"), (["routing"], True, "which"), (["ruoting"], False, "ruoting")):
        with pytest.raises(EddyError, match=fact):
            chosen_of(names, all_, Setting())


def test_real_data_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(EddyError, match="reads real data"):
        chosen_of(["lab"], False, Setting())
    with pytest.raises(EddyError, match="there is no file"):
        chosen_of(["lab"], False, Setting(data=tmp_path))


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EddyError, match="matplotlib") as caught:
        drawing.need_matplotlib()
    assert "eddy-cq[experiments]" in caught.value.hint


def test_policies_on_a_dataset_give_the_same_results(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [list(range(0, 50_000, 10)), list(range(50_000, 90_000, 10))])
    rules = tmp_path / "rules.sql"
    rules.write_text("-- name: warm\nSELECT sensor FROM readings WHERE temp > 100 AND sensor < 700;\nSELECT temp FROM readings\n")
    experiment = comparison(tmp_path / "data", rules, ["auto", "lottery", "fixed:filter:temp"], 1)
    found = run(experiment, Setting(), tmp_path / "out")
    rows = read_rows(tmp_path / "out/compare" / ROWS)
    assert found.verdict.holds and [row["policy"] for row in rows] == ["auto", "lottery", "fixed:filter:temp"]
    temps = [n / 2 for n in range(5000)] + [n / 2 for n in range(4000)]
    sensors = [*range(5000), *range(4000)]
    warm = sum(temp > 100 and sensor < 700 for temp, sensor in zip(temps, sensors))
    assert {row["results"] for row in rows} == {9000 + warm} and {row["rows"] for row in rows} == {9000}


def test_a_policy_or_dataset_that_is_not_there_is_said(tmp_path: Path) -> None:
    rules = tmp_path / "rules.sql"
    rules.write_text("SELECT temp FROM readings\n")
    with pytest.raises(EddyError, match="no dataset"):
        comparison(tmp_path / "data", rules, ["auto"], 1)
    write_dataset(tmp_path / "data", [[1]])
    with pytest.raises(EddyError, match="lotery"):
        comparison(tmp_path / "data", rules, ["lotery"], 1)


def test_the_command_lists_runs_and_reports(tmp_path: Path) -> None:
    """One process: import is most of its time."""
    script = (
        "import sys; from experiments import command; from tests.unit.experiments import test_runs\n"
        "command.EXPERIMENTS['routing'] = test_runs.MADE_UP\n"
        "out = ['--out', sys.argv[1]]\n"
        "for words in (['list', '--json'], ['run', 'routing', '--json', *out], ['report', *out]):\n"
        "    command.app(words, standalone_mode=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True)
    listed, *told, verdict, report = done.stdout.splitlines()
    assert {one["name"] for one in json.loads(listed)} == set(EXPERIMENTS)
    assert [json.loads(line) for line in told] == [{"experiment": "routing", "done": n, "steps": 2} for n in range(3)]
    assert json.loads(verdict)["holds"] is True
    assert Path(report).is_file()
