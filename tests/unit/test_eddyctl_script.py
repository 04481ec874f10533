"""`./eddyctl` installs what a command needs when it is first used, and says how much that is before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reference.checkout import Checkout, failure

#: Words of pip, and of its packages what the scripts look for.
PIP = """
    echo "$@" >>installs
    for name in pyspark matplotlib; do mkdir -p "${0%/bin/python}/lib/python3.11/site-packages/$name"; done
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    found = Checkout(tmp_path)
    found.install(pip=PIP)
    return found


@pytest.mark.parametrize(
    ("command", "extra", "said"),
    [
        (
            "generate sensors --out d",
            "[spark]",
            "Spark, with a Java for it, is among the packages: 500 MB to download and 700 MB",
        ),
        ("bench generate", "[spark]", "500 MB to download"),
        ("bench", "[spark]", "500 MB to download"),
        ("replay d --master local[1] --out o", "[spark]", "500 MB to download"),
        ("experiment run --all --quick", "[experiments]", "matplotlib is among the packages: 25 MB to download and 100 MB"),
        ("experiment compare DIR", "[experiments]", "25 MB to download"),
    ],
)
def test_the_first_use_installs_the_extra_and_says_how_much_it_is(
    checkout: Checkout, command: str, extra: str, said: str
) -> None:
    first, second = (checkout.run("eddyctl", *command.split()) for _ in range(2))
    assert first.returncode == 0 and first.stdout == f"data= {command}\n", "then the command runs"
    assert said in first.stderr and first.stderr.index(said) < first.stderr.index("installing packages")
    assert second.stdout == first.stdout and second.stderr == ""
    assert checkout.installs() == [extra]


@pytest.mark.parametrize(
    "command",
    ["query list", "generate", "generate sensors --help", "replay DIR", "bench filters", "experiment list", "experiment -h"],
)
def test_what_needs_no_extra_installs_none(checkout: Checkout, command: str) -> None:
    done = checkout.run("eddyctl", *command.split())
    assert done.stdout == f"data= {command}\n" and "is among" not in done.stderr
    assert checkout.installs() == [""]


def test_a_package_that_is_there_is_not_announced_when_all_is_installed_again(checkout: Checkout) -> None:
    checkout.run("eddyctl", "generate", "sensors")
    (checkout.root / "pyproject.toml").write_text("another")
    done = checkout.run("eddyctl", "generate", "sensors")
    assert "installing packages" in done.stderr and "is among" not in done.stderr


def test_what_the_check_has_installed_is_enough(checkout: Checkout) -> None:
    checkout.run("check")
    for command in ("generate sensors", "experiment run --all"):
        assert checkout.run("eddyctl", *command.split()).stderr == ""
    assert checkout.installs() == ["[dev,experiments,spark]"]


def test_without_a_network_it_says_so_and_the_command_does_not_run(checkout: Checkout) -> None:
    checkout.install(pip="echo 'ERROR: No matching distribution (from versions: none)' >&2; exit 1")
    fact, hint = failure(checkout.run("eddyctl", "generate", "sensors"))
    assert fact == "the package registry cannot be reached" and hint.startswith("check the network")
