"""Runs of experiments as child processes of the service, one at a time.

    queued for nothing      while one runs, another is refused (409)
    progress                the child says on its output, a JSON object a line, how many of its steps are done, and the verdict
    cancel, stop            the child is killed, with all that it started; it also ends by itself when this process is gone
    results                 files in a folder of this process's own, gone when it ends; the newest `experiment_runs` are kept

The service may not import `experiments`: it asks the child for the list as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from api.base.limits import Limits
from eddy import ConflictError, EddyError, NotFoundError

#: The folder that holds our packages.
_ROOT = Path(__file__).resolve().parent.parent
PROGRAM = (sys.executable, "-m", "experiments")
#: Seconds that the list may take: a Python has to start, and may have to compile kernels.
LIST_SECONDS = 120.0
#: Bytes of a line, and of what a child says of a failure, at most.
_LINE = 1 << 20
_WORDS = 4000
#: How much of the machine a child yields to the engine.
_NICE = 10

#: Files of a run and their media types.
FILES = {"rows.csv": "text/csv", "plot.png": "image/png", "plot.svg": "image/svg+xml", "run.json": "application/json"}


@dataclass(slots=True)
class ExperimentRun:
    """One run, in progress or finished."""

    id: int
    name: str
    quick: bool
    seed: int
    folder: Path
    state: str = "running"
    done: int = 0
    steps: int | None = None
    #: the verdict as the child gives it; None until then
    verdict: dict[str, Any] | None = None
    #: why it failed
    error: str | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def facts(self) -> dict[str, Any]:
        """Return the run as clients see it."""
        verdict = None if self.verdict is None else {"holds": self.verdict["holds"], **self.verdict["verdict"]}
        return {
            "id": self.id, "experiment": self.name, "quick": self.quick, "seed": self.seed, "state": self.state,
            "done": self.done, "steps": self.steps, "verdict": verdict, "error": self.error,
            "files": [f"/v1/experiments/runs/{self.id}/{name}" for name in FILES] if self.state == "done" else [],
        }  # fmt: skip


class ExperimentRuns:
    """All runs of one service; used by the event loop's thread only."""

    def __init__(self, limits: Limits, program: Sequence[str] = PROGRAM) -> None:
        self._limits = limits
        self._program = tuple(program)
        self._runs: dict[int, ExperimentRun] = {}
        self._next = 1
        self._folder: Path | None = None
        self._listing: asyncio.Task[list[dict[str, Any]]] | None = None
        self._stopped = False

    # ---- looking

    async def listed(self) -> list[dict[str, Any]]:
        """Return the known experiments; the child process is asked once."""
        if self._listing is None or (self._listing.done() and (self._listing.cancelled() or self._listing.exception())):
            self._listing = asyncio.ensure_future(self._ask())
        # whoever asks may go away, the answer is for all
        return await asyncio.shield(self._listing)

    async def _ask(self) -> list[dict[str, Any]]:
        child = await self._spawn("list", "--json")
        try:
            async with asyncio.timeout(LIST_SECONDS):
                said, complaint = await child.communicate()
        except TimeoutError:
            raise EddyError("the list of experiments took too long", code="experiments_failed") from None
        finally:
            await _end(child)
        if child.returncode:
            raise EddyError("there is no list of experiments", code="experiments_failed", detail=_last_words(complaint))
        found: list[dict[str, Any]] = orjson.loads(said)
        return found

    def get(self, id_: int) -> ExperimentRun:
        """Return the run with a number."""
        found = self._runs.get(id_)
        if found is None:
            raise NotFoundError(f"there is no run {id_}", code="unknown_run", hint="GET /v1/experiments/runs shows them")
        return found

    def all(self) -> list[ExperimentRun]:
        """Return the runs, the newest first."""
        return list(self._runs.values())[::-1]

    def file(self, id_: int, name: str) -> bytes:
        """Return the bytes of a result file of a finished run."""
        found = self.get(id_)
        if found.state != "done":
            raise ConflictError(f"run {id_} is {found.state}", code="not_done", hint="it has results when its state is done")
        return (found.folder / found.name / name).read_bytes()

    # ---- running

    async def start(self, name: str, quick: bool, seed: int) -> ExperimentRun:
        """Start an experiment; raise if one is running."""
        listed = {one["name"]: one for one in await self.listed()}
        if name not in listed:
            hint = f"one of {', '.join(listed)}"
            raise NotFoundError(f'there is no experiment "{name[:80]}"', code="unknown_experiment", hint=hint)
        if listed[name]["files"]:
            hint = f"eddy experiment run {name} --data DIR, where the data is"
            raise EddyError(f"{name} reads real data, which a service does not have", code="no_data", hint=hint)
        if importlib.util.find_spec("matplotlib") is None:
            hint = f"./eddyctl experiment run {name}, where the service runs, installs it; or the extra eddy-cq[experiments] does"
            raise EddyError("experiments draw with matplotlib, which is not installed", code="not_installed", hint=hint)
        if self._stopped:
            raise ConflictError("the service stops", code="stopping")
        busy = next((run for run in self._runs.values() if run.state == "running"), None)
        if busy is not None:
            hint = f"wait for it, or DELETE /v1/experiments/runs/{busy.id}"
            raise ConflictError(f"run {busy.id} of {busy.name} is under way", code="experiment_running", hint=hint)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="eddy-experiments-"))
        run = ExperimentRun(self._next, name, quick, seed, self._folder / str(self._next))
        self._next += 1
        self._runs[run.id] = run
        # none of the others runs: the oldest go
        for old in list(self._runs)[: max(0, len(self._runs) - self._limits.experiment_runs)]:
            self._forget(old)
        run.task = asyncio.ensure_future(self._watch(run))
        return run

    async def _watch(self, run: ExperimentRun) -> None:
        words = ["run", run.name, "--json", "--attended", "--out", str(run.folder), "--seed", str(run.seed)]
        try:
            child = await self._spawn(*words, *(["--quick"] if run.quick else []))
            try:
                async with asyncio.timeout(self._limits.experiment_seconds):
                    await self._listen(run, child)
            finally:
                await _end(child)
        except TimeoutError:
            run.state, run.error = "failed", f"it took more than {self._limits.experiment_seconds:g} s"
        except asyncio.CancelledError:
            run.state = "cancelled"
        except (OSError, ValueError, LookupError) as error:
            run.state, run.error = "failed", f"its process cannot be followed: {error}"

    async def _listen(self, run: ExperimentRun, child: asyncio.subprocess.Process) -> None:
        """Read the child's messages until it ends."""
        assert child.stdout is not None and child.stderr is not None
        complaining = asyncio.ensure_future(_tail(child.stderr))
        try:
            while line := await child.stdout.readline():
                said = orjson.loads(line)
                if "verdict" in said:
                    run.verdict = said
                else:
                    run.done, run.steps = said["done"], said["steps"]
            code, complaint = await child.wait(), await complaining
        finally:
            complaining.cancel()
        if code or run.verdict is None:
            run.state, run.error = "failed", _last_words(complaint) or f"its process ended with {code}"
        else:
            run.state = "done"

    async def _spawn(self, *words: str) -> asyncio.subprocess.Process:
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            *self._program, *words, stdin=pipe, stdout=pipe, stderr=pipe, limit=_LINE, start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, child.pid, _NICE)
        return child

    async def cancel(self, id_: int) -> None:
        """End a run if it is in progress, and forget it."""
        run = self.get(id_)
        await _cancel(run.task)
        self._forget(id_)

    def _forget(self, id_: int) -> None:
        # two may cancel at once
        run = self._runs.pop(id_, None)
        if run is not None:
            shutil.rmtree(run.folder, ignore_errors=True)

    async def stop(self) -> None:
        """End the current run and remove all result files."""
        self._stopped = True
        for run in self._runs.values():
            await _cancel(run.task)
        await _cancel(self._listing)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


async def _cancel(task: asyncio.Task[Any] | None) -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])


async def _end(child: asyncio.subprocess.Process) -> None:
    """Kill a child and its own children; do nothing if it has ended."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end, so that its writer never blocks, and return the last bytes."""
    kept = b""
    while some := await stream.read(_LINE):
        kept = (kept + some)[-_WORDS:]
    return kept


def _last_words(said: bytes) -> str:
    """Return the error message of a child on one line."""
    return " ".join(said.decode(errors="replace").split())[-_WORDS:]
