"""`eddy replay`: into a service it goes on where the one before stopped, whatever stopped it; every row is taken once.

The market that is replayed takes a minute of event time. What the service answers at the end is what an engine answers that was
given all rows at once.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from eddy.client import Client
from pipeline.dataset import Dataset
from pipeline.merge_targets import ServiceMergeTarget
from pipeline.pace import ReplayPace
from pipeline.replay import replay
from pipeline.replay_command import command
from tests.e2e.serving import ROOT, Server, serving, until
from tests.unit.pipeline.streams import market, write_market
from tests.unit.pipeline.test_gateways import COMPLETE, logical
from tests.unit.pipeline.test_gateways import write as write_gateways
from tests.unit.pipeline.test_replay import QUERIES, pushed_at_once

PATIENCE = 120.0
N_TRADES, N_QUOTES = 3000, 2000


def run(folder: Path, *args: str, code: int = 0) -> tuple[str, str]:
    """What the command says, in this process: what it becomes is not the point of every test."""
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, [str(folder), *args])
    assert done.exit_code == code, f"{args} ended with {done.exit_code}:\n{done.stdout}\n{done.stderr}\n{done.exception}"
    return done.stdout, done.stderr


@contextmanager
def started(folder: Path, *args: str, err: int = subprocess.PIPE, **more: str) -> Iterator[subprocess.Popen[str]]:
    """A replay that goes on by itself; it is ended at the end."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EDDY_")}
    env = {**clean, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **more}
    words = [sys.executable, "-m", "api.cli", "replay", str(folder), *args]
    child = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=err, cwd=ROOT, text=True)
    with child:
        try:
            yield child
        finally:
            child.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--ephemeral") as found:
        yield found


@pytest.fixture
def tables() -> dict[str, pa.Table]:
    return market(7, N_TRADES, N_QUOTES)


@pytest.fixture
def dataset(tmp_path: Path, tables: dict[str, pa.Table]) -> Dataset:
    return write_market(tmp_path / "market", tables, chunk_rows=700)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.ndjson"
    path.write_text("".join(json.dumps({"name": name, "sql": sql}) + "\n" for name, sql in QUERIES.items()))
    return path


@contextmanager
def emptied(server: Server) -> Iterator[tuple[Client, tuple[str, ...]]]:
    """The service without what the last test left, and the options for a replay on a timeline that nobody has moved."""
    with Client(server.url) as client:
        for query in client.queries:
            client.cancel(query)
        for stream in client.streams:
            client.drop(stream)
        yield client, ("--url", server.url, "--timeline", f"replay{len(client.stats()['timelines'])}")


def taken(client: Client) -> dict[str, int]:
    return {name: entry["rows"] for name, entry in client.stats()["streams"].items()}


def answers(client: Client) -> dict[str, list[str]]:
    return {name: sorted(map(repr, client.answer(name).to_pylist())) for name in QUERIES}


def test_the_answers_of_a_service_after_a_replay_are_those_of_an_engine(
    server: Server, dataset: Dataset, tables: dict[str, pa.Table], rules: Path
) -> None:
    with emptied(server) as (client, there):
        out, _ = run(dataset.path, "--queries", str(rules), *there, "--json")
        found = json.loads(out)
        assert (found["rows"], found["before"], found["late"]) == (N_TRADES + N_QUOTES, 0, 0)
        assert taken(client) == {"trades": N_TRADES, "quotes": N_QUOTES}
        assert answers(client) == pushed_at_once(tables, dataset)
        # all is there: the next one has nothing to do
        again = json.loads(run(dataset.path, "--queries", str(rules), *there, "--json")[0])
        assert (again["rows"], again["before"]) == (0, N_TRADES + N_QUOTES)


def test_streams_that_were_dropped_are_replayed_anew_on_another_timeline(server: Server, dataset: Dataset) -> None:
    with emptied(server) as (_, there):
        run(dataset.path, *there)
    with emptied(server) as (client, elsewhere):
        _, err = run(dataset.path, *there, code=1)
        assert "past the next row of the dataset (2023-12-31T23:59:0" in err and "--timeline" in err
        assert json.loads(run(dataset.path, *elsewhere, "--json")[0])["rows"] == N_TRADES + N_QUOTES
        assert taken(client) == {"trades": N_TRADES, "quotes": N_QUOTES}


def test_ctrl_c_says_where_it_stopped_and_the_same_command_goes_on_from_there(
    server: Server, dataset: Dataset, tables: dict[str, pa.Table], rules: Path
) -> None:
    with emptied(server) as (client, there):
        with started(dataset.path, "--queries", str(rules), *there, "--speed", "5x") as child:
            until(lambda: sum(taken(client).values()) > 100, PATIENCE, "rows arrive")
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=PATIENCE)
            assert child.returncode == 130, err
        before = sum(taken(client).values())
        assert 100 < before < N_TRADES + N_QUOTES
        assert "the same command goes on from there" in err and "of 5,000, 2023-12-31T23:59:" in err
        found = json.loads(run(dataset.path, "--queries", str(rules), *there, "--json")[0])
        assert (found["before"], found["rows"]) == (before, N_TRADES + N_QUOTES - before)
        assert answers(client) == pushed_at_once(tables, dataset)


@pytest.mark.long
def test_kills_of_the_replay_and_of_the_service_lose_nothing_and_double_nothing(
    tmp_path: Path, dataset: Dataset, tables: dict[str, pa.Table], rules: Path
) -> None:
    server = Server("--data", str(tmp_path / "data"))
    try:
        server.wait_ready()
        port, url = server.port, server.url
        args = ("--queries", str(rules), "--url", url, "--speed", "30x")
        client = Client(url)
        for kill in range(3):
            with started(dataset.path, *args) as child:
                before = sum(taken(client).values()) if kill else 0
                until(lambda: "trades" in client.streams, PATIENCE, "the streams are there")
                until(lambda before=before: sum(taken(client).values()) > before + 300, PATIENCE, "rows arrive")  # type: ignore[misc]
                child.kill()
        with started(dataset.path, *args, "--json") as child:
            before = sum(taken(client).values())
            until(lambda: sum(taken(client).values()) > before + 300, PATIENCE, "rows arrive")
            server.kill()
            server.close()
            # the replay waits for it
            server = Server("--data", str(tmp_path / "data"), port=port)
            server.wait_ready()
            out, err = child.communicate(timeout=PATIENCE)
            assert child.returncode == 0, err
        found = json.loads(out)
        assert found["before"] + found["rows"] == N_TRADES + N_QUOTES
        assert taken(client) == {"trades": N_TRADES, "quotes": N_QUOTES}
        assert answers(client) == pushed_at_once(tables, dataset)
        client.close()
    finally:
        server.close()


@pytest.mark.parametrize("cut", [1, 2, 50, 51, 52])
def test_gateways_become_the_inputs_of_a_merge_and_a_replay_that_was_cut_off_goes_on(
    server: Server, tmp_path: Path, cut: int
) -> None:
    gateways = write_gateways(tmp_path / "d", COMPLETE, 5)

    class CutOff(Client):
        """A client that ends the process, as it were, at a push."""

        pushes = 0

        def push(self, *args: Any, **options: Any) -> Any:
            self.pushes += 1
            if self.pushes == cut:
                raise KeyboardInterrupt
            return super().push(*args, **options)

    with emptied(server) as (client, there):
        timeline = there[-1]
        with CutOff(server.url) as ending, pytest.raises(KeyboardInterrupt):
            target = ServiceMergeTarget(ending, gateways, "floor", timeline)
            replay(gateways, target, ReplayPace(None), span_us=target.options.span_us)
        found = json.loads(run(gateways.path, "--merge", "floor", *there, "--json")[0])
        total = sum(one.rows for one in gateways.streams.values())
        assert found["before"] + found["rows"] == total and (found["before"] > 0) == (cut > 1)
        inputs = client.stats()["streams"]["floor"]["merge"]["inputs"]
        assert {of: one["rows"] for of, one in inputs.items()} == {of: one.rows for of, one in gateways.streams.items()}
        assert client.stats()["streams"]["floor"]["rows"] == len(logical(5))
        # all is there: the next one has nothing to do
        assert json.loads(run(gateways.path, "--merge", "floor", *there, "--json")[0])["rows"] == 0


def test_only_gateways_become_inputs(dataset: Dataset) -> None:
    _, err = run(dataset.path, "--merge", "floor", code=1)
    assert "not meant to be merged" in err and "eddy generate gateways" in err


def test_rows_of_somebody_else_are_not_taken_for_the_beginning_of_the_dataset(server: Server, dataset: Dataset) -> None:
    with emptied(server) as (client, there):
        client.create_stream("trades", dataset.streams["trades"].columns, time="ts", timeline=there[-1])
        client.push("trades", [{"ts": "2023-12-31T23:00:00Z", "symbol": "S1"}])
        _, err = run(dataset.path, *there, code=1)
        assert "holds rows that are not of this dataset" in err and "hint: drop it first" in err
        client.push("trades", [{"ts": "2024-01-01T00:00:00Z", "symbol": "S1"}])
        _, err = run(dataset.path, *there, code=1)
        assert "is at 2024-01-01T00:00:00Z, past the next row of the dataset" in err


def test_a_query_that_is_there_with_another_text_is_not_taken_for_the_same(
    server: Server, dataset: Dataset, tmp_path: Path
) -> None:
    with emptied(server) as (_, there):
        for text, code in (("SELECT ts, price FROM trades", 0), ("SELECT ts FROM trades", 1)):
            rules = tmp_path / "rules.ndjson"
            rules.write_text(json.dumps({"name": "dear", "sql": text}))
            _, err = run(dataset.path, "--queries", str(rules), *there, code=code)
        assert 'query "dear" is there with another text' in err


def test_without_a_service_an_engine_takes_the_rows_and_results_are_counted(dataset: Dataset, rules: Path) -> None:
    out, err = run(dataset.path, "--queries", str(rules))
    assert err == "" and out.startswith("5,000 rows in ")
    counts = {line.split()[1]: int(line.split()[0].replace(",", "")) for line in out.split("\n")[2:] if line}
    assert set(counts) == set(QUERIES) and all(counts.values())
    found = json.loads(run(dataset.path, "--queries", str(rules), "--speed", "600x", "--json")[0])
    assert found["results"] == counts
    assert found["seconds"] > 0.08  # a minute at 600x


def test_a_paced_replay_keeps_to_the_clock(dataset: Dataset) -> None:
    start = time.monotonic()
    found = json.loads(run(dataset.path, "--speed", "60x", "--json")[0])
    assert 0.9 < found["seconds"] <= time.monotonic() - start


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--speed", "quick"), '"quick" is no speed'),
        (("--url", "http://127.0.0.1:9"), "the service cannot be reached"),
        (("--queries", "{bad}"), 'query "replay_1": column "nope" does not exist'),
        (("--master", "local[1]"), "takes --master, --queries and --out"),
        (("--out", "somewhere"), "takes --master, --queries and --out"),
    ],
)
def test_mistakes_are_told_in_a_few_lines(dataset: Dataset, tmp_path: Path, args: tuple[str, str], words: str) -> None:
    bad = tmp_path / "bad.sql"
    bad.write_text("SELECT nope FROM trades;")
    out, err = run(dataset.path, *(arg.replace("{bad}", str(bad)) for arg in args), code=1)
    assert out == "" and err.startswith("error: ") and words in err and err.count("\n") <= 4


@pytest.mark.slow
def test_ctrl_c_of_a_replay_into_an_engine_says_that_nothing_is_kept(dataset: Dataset) -> None:
    leader, follower = pty.openpty()
    with started(dataset.path, "--speed", "2x", err=follower, TERM="xterm") as child:
        os.close(follower)
        seen = b""
        deadline = time.monotonic() + PATIENCE
        while not re.search(rb"rows/s +2023-12-31T23:59:[0-9.]+Z +lag [0-9.]+ s", seen):
            assert time.monotonic() < deadline and child.poll() is None, seen.decode(errors="replace")
            if select.select([leader], [], [], 0.1)[0]:
                seen += os.read(leader, 65536)
        child.send_signal(signal.SIGINT)
        seen = b""
        while select.select([leader], [], [], PATIENCE)[0]:
            try:
                seen += os.read(leader, 65536)
            except OSError:  # the other side has gone
                break
        assert (child.wait(PATIENCE), child.communicate()[0]) == (130, "")
    os.close(leader)
    assert "stopped after row " in seen.decode() and "begins anew" in seen.decode() and "Traceback" not in seen.decode()


@pytest.mark.slow
def test_a_folder_that_is_no_dataset_and_a_damaged_file_are_told(dataset: Dataset, tmp_path: Path) -> None:
    assert "there is no dataset" in run(tmp_path / "nowhere", code=1)[1]
    assert "is no dataset" in run(tmp_path, code=1)[1]
    path = dataset.path / "quotes" / "chunk=000001.parquet"
    path.write_bytes(path.read_bytes()[:500])
    _, err = run(dataset.path, code=1)
    assert "chunk=000001.parquet cannot be read" in err and "stopped after row" in err
