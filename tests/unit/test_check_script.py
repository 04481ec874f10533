"""`./check`: what each way to check runs, and what it says of the time that took."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reference.checkout import Checkout, failure
from tests.soak import SOAKS

#: A run writes down what it was asked to do, and whether it is a long one.
RUN = 'echo "$@ long=${CHECK_LONG-}" >>ran'
PYTEST = "-m pytest -q"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    found = Checkout(tmp_path)
    found.install(pip='echo "$@" >>installs', run=RUN)
    return found


def chosen_by(checkout: Checkout) -> list[str]:
    lines = (checkout.root / "ran").read_text().splitlines()
    return [line.removeprefix(PYTEST).strip() for line in lines if line.startswith(PYTEST)]


@pytest.mark.parametrize(
    ("flags", "ran", "installed", "budget"),
    [
        ("", ["-n 2 --dist worksteal -m not spark long=", "-m spark long="], "[dev,experiments,spark]", 24),
        ("--quick", ["-n 2 --dist worksteal -m not slow and not spark long="], "[dev,experiments]", 8),
        ("--long", ["-n 2 --dist worksteal -m not spark long=1", "-m spark long=1"], "[dev,experiments,spark]", 90),
        ("--quick -- -k x", ["-n 2 --dist worksteal -m not slow and not spark -k x long="], "[dev,experiments]", 8),
    ],
)
def test_a_way_to_check_runs_its_tests_and_says_what_they_took(
    checkout: Checkout, flags: str, ran: list[str], installed: str, budget: int
) -> None:
    done = checkout.run("check", *flags.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert chosen_by(checkout) == ran and checkout.installs() == [installed]
    lines = done.stdout.splitlines()
    steps = [line for line in lines if line.startswith("-- ")]
    first = [step[3:].partition(":")[0] for step in steps[:6]]
    assert first == ["set-up", "format", "lint", "types", "dead code", "kernels"]
    assert all(step.endswith(" CPU minutes") for step in steps)
    assert lines[-1].startswith("all checks passed: ") and lines[-1].endswith(f" CPU minutes of {budget}")


def test_time_on_the_processor_is_that_of_all_children(checkout: Checkout) -> None:
    checkout.install(run='case "$2" in pytest) for ((i = 0; i < 400000; i++)); do :; done ;; esac')
    done = checkout.run("check", "--quick")
    (tests,) = (line for line in done.stdout.splitlines() if line.startswith("-- tests, quick: ok"))
    assert float(tests.split()[-3]) > 0


def test_a_run_far_above_its_budget_says_so_and_passes(checkout: Checkout) -> None:
    (checkout.path / "awk").unlink()
    for hundredths, said in ((960, False), (961, True)):
        (checkout.path / "awk").write_text(f"#!/usr/bin/env bash\necho {hundredths}\n")
        (checkout.path / "awk").chmod(0o755)
        done = checkout.run("check", "--quick")
        assert done.returncode == 0 and ("note: that is more than 1.2 times" in done.stdout) == said


def test_a_step_that_fails_ends_the_check(checkout: Checkout) -> None:
    checkout.install(run='[ "$2" != pytest ]')
    done = checkout.run("check", "--quick")
    assert done.returncode == 1 and "-- tests, quick: FAILED" in done.stdout and "passed" not in done.stdout


def test_words_that_choose_tests_of_one_step_alone_are_fine(checkout: Checkout) -> None:
    checkout.install(run='[ "$2" != pytest ] || [ "${*: -1}" != spark ] || exit 5')
    assert checkout.run("check").returncode == 0
    checkout.install(run='[ "$2" != pytest ] || exit 5')
    (checkout.root / ".venv" / "bin" / "python").write_text((checkout.path / "python3").read_text())
    assert checkout.run("check").returncode == 1, "no test was chosen at all"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--fast", 'unknown option "--fast"'),
        ("tests/unit", 'unknown option "tests/unit"'),
        ("--quick --long", "--quick and --long are two ways to check"),
        ("--soak arrow -- -x", "a soak is one program, not tests to choose from"),
    ],
)
def test_options_that_are_none_are_refused_before_anything_is_done(checkout: Checkout, flags: str, said: str) -> None:
    fact, hint = failure(checkout.run("check", *flags.split()))
    assert fact == said and hint.startswith("./check [--quick | --long | --soak [NAME]]")
    assert not (checkout.root / ".venv").exists()


def test_a_soak_runs_alone_and_says_of_which_commit_its_figure_is(checkout: Checkout) -> None:
    (checkout.path / "git").write_text("#!/usr/bin/env bash\necho 123abc-dirty\n")
    (checkout.path / "git").chmod(0o755)
    done = checkout.run("check", "--soak", "kills")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "commit 123abc-dirty"
    assert (checkout.root / "ran").read_text() == "-m tests.soak kills long=\n"
    assert checkout.installs() == ["[dev,experiments]"]
    checkout.run("check", "--soak")
    assert (checkout.root / "ran").read_text().endswith("-m tests.soak long=\n"), "it lists them"


@pytest.mark.parametrize(
    "name",
    ["arrow", pytest.param("models", marks=pytest.mark.slow)]
    + [pytest.param(name, marks=pytest.mark.long) for name in ("csv", "kills", "crashes")],
)
def test_a_soak_of_the_smallest_size_comes_to_its_figure(name: str) -> None:
    assert SOAKS[name].run(1)
