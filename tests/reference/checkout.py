"""A checkout with nothing but the scripts, on a machine whose `python3` is a stand-in: no network, and each misfortune a line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What the scripts need of a machine, python3 apart.
TOOLS = (
    "bash", "env", "dirname", "readlink", "cat", "sed", "grep", "tail", "sleep", "mkdir", "cp", "chmod", "touch", "flock", "awk",
    "mktemp", "rm",
)  # fmt: skip
#: Programs that the stand-in puts beside its python; each says what it was given.
PROGRAMS = ("eddy", "ruff", "mypy", "vulture")

#: A python3 that makes a .venv whose python is itself.
PYTHON = f"""#!/usr/bin/env bash
case "$*" in
    "-m venv --clear "*)
        {{venv}}
        mkdir -p "$4/bin" "$4/lib/python3.11/site-packages/pip"
        touch "$4/lib/python3.11/site-packages/pip/__init__.py"
        cp "$0" "$4/bin/python"
        for program in {" ".join(PROGRAMS)}; do
            printf '#!/usr/bin/env bash\necho "data=$EDDY_DATA $*"\n' >"$4/bin/$program"
            chmod +x "$4/bin/$program"
        done ;;
    "-m pip install "*) {{pip}} ;;
    "-c import venv, ensurepip") {{modules}} ;;
    "-m "*) {{run}} ;;
    *) exec {sys.executable} "$@" ;;
esac
"""


class Checkout:
    """The scripts in a folder of their own, and a machine to run them on."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        (self.root / "scripts").mkdir(parents=True)
        for name in ("serve", "eddyctl", "check", "scripts/bootstrap", "pyproject.toml"):
            shutil.copy(ROOT / name, self.root / name)
        self.path = folder / "bin"
        self.path.mkdir()
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.path / tool).symlink_to(found)

    def install(self, *, venv: str = ":", pip: str = ":", modules: str = ":", run: str = ":") -> None:
        """Put a python3 on the PATH that does these things; `run` is for modules of the project and of its tools."""
        python = self.path / "python3"
        python.write_text(PYTHON.format(venv=venv, pip=pip, modules=modules, run=run))
        python.chmod(0o755)

    def run(self, script: str, *flags: str, cwd: Path | None = None, user: int | None = None) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("EDDY_", "CHECK_"))}
        return subprocess.run(
            [str(self.root / script), *flags], env=clean | {"PATH": str(self.path)}, cwd=cwd or self.root, user=user,
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def serve(self, *flags: str, cwd: Path | None = None, user: int | None = None) -> subprocess.CompletedProcess[str]:
        return self.run("serve", *flags, cwd=cwd, user=user)

    def installs(self) -> list[str]:
        """The extras of each time that pip ran, where `pip` writes its words down."""
        found = self.root / "installs"
        lines = found.read_text().splitlines() if found.exists() else []
        return [line.partition("-e ")[2].removeprefix(str(self.root)) for line in lines]


def failure(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """The sentence and the way out of a script that failed."""
    *_, fact, hint = done.stderr.splitlines()
    assert done.returncode in (1, 2) and done.stdout == ""
    assert fact.startswith("error: ") and hint.startswith("hint: "), done.stderr
    assert done.stderr.count("error: ") == 1 and "Traceback" not in done.stderr
    return fact.removeprefix("error: "), hint.removeprefix("hint: ")
