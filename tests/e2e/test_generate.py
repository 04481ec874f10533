"""`eddy generate` as a process: what it says, what it writes, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.dataset import Dataset
from tests.e2e.serving import ROOT
from tests.reference.csv_styles import ROWS, styled

#: Seconds for anything, on a busy machine.
PATIENCE = 300.0


def words(*args: str) -> list[str]:
    return [sys.executable, "-m", "api.cli", "generate", *args]


def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(*args),
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.spark
def test_a_market_is_written_and_described(tmp_path: Path) -> None:
    out = tmp_path / "a market"
    options = ("--symbols", "20", "--trades", "3000", "--quotes", "4000", "--articles", "50", "--seed", "5", "--out", str(out))
    done = run("stocks", *options, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    dataset = Dataset.open(out)
    assert {name: stream["rows"] for name, stream in facts["streams"].items()} == {
        name: sum(batch.num_rows for batch in dataset.batches(name)) for name in ("trades", "quotes", "articles")
    }
    assert (facts["streams"]["trades"]["rows"], facts["seed"], dataset.parameters["symbols"]) == (3000, 5, 20)
    assert [path.name for path in tmp_path.iterdir()] == ["a market"]

    again = run("stocks", *options)
    assert again.returncode == 1 and again.stderr.startswith(f"error: {out} exists already\nhint: ")


@pytest.mark.spark
def test_gateways_are_written_with_the_merge_that_they_are_meant_for(tmp_path: Path) -> None:
    out = tmp_path / "gateways"
    options = ("--gateways", "2", "--sensors", "20", "--hours", "0.2", "--missing", "0", "--stalls", "0", "--seed", "5")
    done = run("gateways", *options, "--out", str(out), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    dataset = Dataset.open(out)
    assert list(json.loads(done.stdout)["streams"]) == list(dataset.streams) == ["gw1", "gw2"]
    assert dataset.parameters["merge"] == {"time": "ts", "unique": ["sensor"], "missing": "any", "lateness": 10_000.0}
    replayed = subprocess.run(
        [sys.executable, "-m", "api.cli", "replay", str(out), "--merge", "floor", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert json.loads(replayed.stdout)["rows"] == sum(one.rows for one in dataset.streams.values())


@pytest.mark.spark
@pytest.mark.slow
def test_a_csv_in_a_form_of_its_own_becomes_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "stock.csv").write_bytes(styled("stock.csv"))
    options = (
        "--time",
        "Datum",
        "--time-format",
        "%d.%m.%Y",
        "--decimal",
        ",",
        "--types",
        "Volumen=float",
        "--rename",
        "Kurs=price",
    )
    done = run("from", f"stock={tmp_path}/stock.csv", *options, "--tz", "Europe/Berlin", "--out", str(tmp_path / "d"), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    dataset = Dataset.open(tmp_path / "d")
    columns = {"Datum": "timestamp", "Symbol": "string", "price": "float", "Volumen": "float"}
    assert dict(dataset.stream("stock").columns) == columns and dataset.stream("stock").rows == ROWS
    # midnight of the 2nd of January in Berlin
    assert dataset.stream("stock").first == 1_704_150_000_000_000 and dataset.quarantined == {}


@pytest.mark.spark
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    """Enough rows for minutes; stopped as soon as Spark has begun to write."""
    with subprocess.Popen(
        words("sensors", "--sensors", "5000", "--hours", "480", "--out", str(tmp_path / "d")),
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while not list(tmp_path.glob("d.partial-*/scratch/written/_temporary")):
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        assert not (tmp_path / "d").exists()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out, err) == (130, "", "stopped; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_without_spark_there_is_one_sentence_and_the_way_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("raise ImportError('it is hidden')\n")
    done = run("sensors", "--out", str(tmp_path / "d"), PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    assert done.returncode == 1 and done.stderr.startswith("error: Spark is not installed")
    assert "./eddyctl generate installs it" in done.stderr and [path.name for path in tmp_path.iterdir()] == ["pyspark"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("sensors", "--start", "soon"), '"soon" is not a time'),
        (("sensors", "--hours", "0"), "there is nothing to generate"),
        (("stocks", "--start", "2024-03-05"), "begins on a Monday"),
        (("from", "nothing.csv"), "nothing.csv cannot be read"),
        (("from", "README.md", "--format", "csv", "--tz", "Mars/Olympus"), 'there is no zone "Mars/Olympus"'),
        (("from", "README.md", "--format", "csv", "--types", "x"), '"x" is not column=type'),
        (("from", "nothing.csv", "--columns", "x"), "nothing.csv cannot be read"),
    ],
)
@pytest.mark.slow
def test_mistakes_are_told_before_spark_starts(tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    done = run(*args, "--out", str(tmp_path / "d"), COLUMNS="200")
    assert done.returncode in (1, 2) and said in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
