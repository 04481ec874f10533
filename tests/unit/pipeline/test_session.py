"""Spark starts quietly, on whatever Java there is, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.session import SparkError, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]

#: Starts a session in the folder of its argument, and another one after it.
_SESSION = """
import os, signal, sys
from pathlib import Path
from pipeline.session import spark_session
before = signal.getsignal(signal.SIGINT)
with spark_session(Path(sys.argv[1]), master="local[1]") as spark:
    print(spark.range(1000).selectExpr("sum(id)").first()[0], os.environ["JAVA_HOME"])
assert signal.getsignal(signal.SIGINT) is before and "JAVA_HOME" not in os.environ
"""


@pytest.mark.spark
def test_a_session_runs_on_the_bundled_java_and_prints_nothing(tmp_path: Path) -> None:
    """No Java on the PATH: only the programs that Spark's launcher calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "env", "uname", "readlink", "ps", "grep", "sed", "cat"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    run = subprocess.run(
        [sys.executable, "-c", _SESSION, str(tmp_path / "scratch")],
        env={**environment, "PATH": str(programs)}, cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"499500 {tmp_path}/scratch/java\n"


@pytest.mark.spark
def test_times_are_utc_and_temporary_files_are_in_their_place(spark: SparkSession) -> None:
    row = spark.sql("SELECT CAST(TIMESTAMP '1970-01-01 00:00:01' AS BIGINT) AS s").first()
    assert row is not None and row["s"] == 1
    conf = spark.sparkContext.getConf()
    scratch = Path(conf.get("spark.local.dir")).parent
    assert conf.get("spark.sql.warehouse.dir").removeprefix("file:") == str(scratch / "warehouse")
    assert (scratch / "spark.log").is_file()
    assert not (ROOT / "spark-warehouse").exists()


@pytest.mark.spark
def test_ctrl_c_is_the_sessions_while_it_runs(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def test_without_spark_the_way_to_install_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SparkError, match="Spark is not installed") as caught, spark_session(tmp_path):
        raise AssertionError("unreachable")
    assert caught.value.code == "no_spark" and "./eddyctl generate installs it" in caught.value.hint
