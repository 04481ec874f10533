"""`./serve` on machines that are not ready: each failure is one sentence and a way out; the second run sets up nothing.

The scripts run in a checkout of their own with a `python3` that is put first on the PATH, so no test needs a network, and each
misfortune is one line of that stand-in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.checkout import Checkout, failure


@pytest.fixture
def checkout() -> Iterator[Checkout]:
    # not tmp_path: other users may not look into it
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Checkout(Path(folder))


def test_the_first_run_sets_up_and_the_second_does_not(checkout: Checkout) -> None:
    checkout.install(pip='echo "$@" >>installs')
    first, second = checkout.serve("--port", "9000"), checkout.serve()
    assert first.returncode == second.returncode == 0
    assert "first run: setting up" in first.stderr and "installing packages" in first.stderr
    assert second.stderr == "", "nothing is said, because nothing is done"
    assert first.stdout == f"data={checkout.root}/data/eddy serve --port 9000\n", "flags are passed on"
    assert len(checkout.installs()) == 1


def test_serving_installs_neither_spark_nor_the_test_tools(checkout: Checkout) -> None:
    checkout.install(pip='echo "$@" >>installs')
    checkout.serve()
    assert checkout.installs() == [""], "no extras"


def test_a_set_of_extras_covers_its_parts_and_spark_is_announced(checkout: Checkout) -> None:
    checkout.install(pip='echo "$@" >>installs')
    said = []
    for extras in ("dev", "dev spark", "dev", ""):
        done = subprocess.run(
            ["bash", "-c", f". scripts/bootstrap && bootstrap {extras}"], env={"PATH": str(checkout.path)}, cwd=checkout.root,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    # what is there after the second is enough for the others
    assert checkout.installs() == ["[dev]", "[dev,spark]"]
    assert ["is among the packages" in text for text in said] == [False, True, False, False] and said[2:] == [
        "",
        "",
    ]


def test_it_works_from_any_directory_and_through_a_link(checkout: Checkout) -> None:
    checkout.install()
    elsewhere = checkout.path.parent / "elsewhere"
    elsewhere.mkdir()
    assert checkout.serve(cwd=elsewhere).stdout == f"data={checkout.root}/data/eddy serve\n"
    (elsewhere / "link").symlink_to(checkout.root / "serve")
    done = subprocess.run([elsewhere / "link"], env={"PATH": str(checkout.path)}, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"data={checkout.root}/data/eddy serve\n" and list(elsewhere.iterdir()) == [elsewhere / "link"]


def test_a_data_directory_in_the_environment_is_kept(checkout: Checkout) -> None:
    checkout.install()
    done = subprocess.run(
        [checkout.root / "serve"],
        env={"PATH": str(checkout.path), "EDDY_DATA": "/mine"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "data=/mine serve\n"


def test_without_python_it_says_so(checkout: Checkout) -> None:
    assert failure(checkout.serve()) == ("python3 is not on the PATH", "install Python 3.11 or later")


def test_an_old_python_is_named(checkout: Checkout) -> None:
    python = checkout.path / "python3"
    python.write_text('#!/usr/bin/env bash\ncase "$*" in *platform*) echo 3.9.2 ;; *) exit 1 ;; esac\n')
    python.chmod(0o755)
    assert failure(checkout.serve()) == ("python3 is 3.9.2, older than 3.11", "put a newer python3 first on the PATH")


def test_a_python_without_venv_is_told_where_to_get_it(checkout: Checkout) -> None:
    checkout.install(modules="exit 1")
    fact, hint = failure(checkout.serve())
    assert fact == "python3 has no venv module" and "apt-get install python3-venv" in hint


def test_a_venv_that_cannot_be_made_says_why(checkout: Checkout) -> None:
    checkout.install(venv='echo "Error: it rains" >&2; exit 1')
    assert failure(checkout.serve())[0] == "python3 -m venv failed: Error: it rains"


@pytest.mark.parametrize("step", ["venv", "pip"])
def test_a_full_disk_is_called_that(checkout: Checkout, step: str) -> None:
    full = 'echo "OSError: [Errno 28] No space left on device" >&2; exit 1'
    checkout.install(**{step: full})
    fact, hint = failure(checkout.serve())
    assert fact == "the disk is full" and "free 2 GB" in hint


def test_a_registry_out_of_reach_is_called_that_and_not_named(checkout: Checkout) -> None:
    refused = "WARNING: Retrying (Retry(total=4)) after connection broken: Failed to establish https://secret.example/simple"
    checkout.install(pip=f"echo '{refused}' >&2; exit 1")
    fact, hint = failure(checkout.serve())
    assert fact == "the package registry cannot be reached" and "network" in hint
    log = (checkout.root / ".venv" / "install.log").read_text()
    assert "Retrying" in log and "secret" not in log


def test_any_other_failure_of_pip_shows_what_it_said(checkout: Checkout) -> None:
    checkout.install(pip="echo 'error: no wheel for this moon phase' >&2; exit 1")
    done = checkout.serve()
    assert done.returncode == 1 and "moon phase" in done.stderr and "hint: the lines above say why" in done.stderr


def test_an_install_that_failed_is_tried_again(checkout: Checkout) -> None:
    checkout.install(pip="exit 1")
    assert checkout.serve().returncode == 1
    checkout.install()
    shutil.copy(checkout.path / "python3", checkout.root / ".venv" / "bin" / "python")
    assert checkout.serve().returncode == 0


def _stranger(checkout: Checkout) -> int | None:
    """A user who may not write in the checkout: nobody, where tests run as root."""
    if os.geteuid() == 0:
        return 65534
    for folder in (checkout.root, *(path for path in checkout.root.rglob("*") if path.is_dir())):
        folder.chmod(0o555)
    return None


def _restore(checkout: Checkout) -> None:
    for folder in (checkout.root, *(path for path in checkout.root.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def test_a_checkout_that_cannot_be_written_is_one_sentence(checkout: Checkout) -> None:
    checkout.install()
    user = _stranger(checkout)
    try:
        fact, hint = failure(checkout.serve(user=user))
    finally:
        _restore(checkout)
    assert fact == f"this user may not write in {checkout.root}" and "checkout of your own" in hint


def test_a_checkout_that_somebody_else_has_set_up_can_be_used(checkout: Checkout) -> None:
    # pytest's own python may be out of reach of other users: this one answers by itself
    checkout.install()
    assert checkout.serve().returncode == 0
    python = checkout.root / ".venv" / "bin" / "python"
    python.write_text(f"#!/usr/bin/env bash\necho {(checkout.root / '.venv' / 'installed-run').read_text().strip()}\n")
    user = _stranger(checkout)
    try:
        done = checkout.serve(user=user)
    finally:
        _restore(checkout)
    assert done.returncode == 0 and done.stderr == "", done.stderr
