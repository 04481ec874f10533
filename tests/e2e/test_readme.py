"""The blocks of README and guide for command line and client do what they say, as pasted; only the address is another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.serving import ROOT, serving
from tests.unit.test_docs import GUIDE, README, blocks


def found_blocks() -> list[tuple[str, str, int, bool]]:
    """The blocks of both documents."""
    return blocks(README.read_text()) + blocks(GUIDE.read_text())


def client_blocks() -> list[tuple[int, str, str, str]]:
    """(line, language, text, what it prints) of the blocks that need a service and are not for curl."""
    found = found_blocks()
    result = []
    for (language, body, line, _), (after, shown, _, directly) in zip(found, found[1:]):
        wanted = "eddy.client" in body if language == "python" else language == "bash" and "./eddyctl " in body
        if wanted and after == "text" and directly:
            result.append((line, language, body, shown))
    return result


def test_every_block_prints_what_the_documents_say(tmp_path: Path) -> None:
    found = client_blocks()
    assert [language for _, language, _, _ in found] == ["bash", "python"]
    assert sum("eddy.client" in body for language, body, _, _ in found_blocks() if language == "python") == 1
    command = tmp_path / "eddyctl"
    command.write_text(f'#!/usr/bin/env bash\nexec "{sys.executable}" -m api.cli "$@"\n')
    command.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EDDY_")}
    with serving("--ephemeral") as server:
        env = {**clean, "EDDY_URL": server.url, "PYTHONPATH": str(ROOT)}
        for line, language, text, shown in found:
            words = ["bash", "-e", "-c", text] if language == "bash" else [sys.executable, "-c", text]
            done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
            assert (done.stdout, done.stderr, done.returncode) == (shown, "", 0), f"block at line {line}"
