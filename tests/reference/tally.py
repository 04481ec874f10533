"""What a test run did, in its last lines: how many tests of each kind ran, and how many comparisons they made."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.reference import comparison


class Tally:
    """Counts tests by their folder, and the comparisons of this process and of the workers that it started."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._of_workers = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped:
            self._kinds[report.nodeid.split("/")[1]] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["n_compared"] = comparison.n_compared

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # a worker that died has told nothing
        self._of_workers += getattr(node, "workeroutput", {}).get("n_compared", 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(self._kinds.items()))
        n = comparison.n_compared + self._of_workers
        terminalreporter.write_line(f"ran {kinds or 'no'} tests; {n:,} comparisons with models, oracles and twins")
