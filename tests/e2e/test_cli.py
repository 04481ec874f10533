"""The command line against a real server: each command as a process of its own, with its words and exit code."""

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
import pyarrow.parquet as pq
import pytest

from eddy.client import Client
from tests.e2e.serving import ROOT, Server, serving

# every test starts processes
pytestmark = pytest.mark.slow

#: Seconds for anything, on a busy machine.
PATIENCE = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--ephemeral") as found:
        yield found


class Eddy:
    """The command line of a service."""

    #: timelines that were used: each test has its own clock
    n_timelines = 0

    def __init__(self, url: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("EDDY_")}
        self.env = {**clean, "EDDY_URL": url, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}

    def words(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "api.cli", *args]

    def __call__(self, *args: str, code: int = 0, given: bytes | None = None) -> tuple[str, str]:
        """What a command says on stdout and stderr; fails unless it ends with the code."""
        done = subprocess.run(self.words(*args), env=self.env, input=given, capture_output=True, timeout=PATIENCE, cwd=ROOT)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == code, f"{args} ended with {done.returncode}:\n{out}\n{err}"
        assert "Traceback" not in err
        return out, err

    def json(self, *args: str, given: bytes | None = None) -> Any:
        """The one JSON value that a command says."""
        out, err = self(*args, "--json", given=given)
        assert err == "" and out.count("\n") == 1
        return json.loads(out)

    @property
    def timeline(self) -> str:
        return f"t{Eddy.n_timelines}"

    def make_readings(self) -> None:
        """The stream of most tests, on a timeline that no other test has moved."""
        Eddy.n_timelines += 1
        self("stream", "add", *READINGS, "--timeline", self.timeline)

    @contextmanager
    def start(self, *args: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on by itself; it is ended at the end."""
        child = subprocess.Popen(self.words(*args), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
        with child:
            try:
                yield child
            finally:
                child.kill()

    def on_a_terminal(self, *args: str) -> str:
        """What a command shows on a terminal, without its colours."""
        leader, follower = pty.openpty()
        child = subprocess.Popen(
            self.words(*args), env={**self.env, "TERM": "xterm"}, stdin=follower, stdout=follower, stderr=follower, cwd=ROOT
        )
        os.close(follower)
        text = b""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    piece = os.read(leader, 65536)
                except OSError:  # the other side has gone
                    break
                text += piece
        os.close(leader)
        assert child.wait(PATIENCE) == 0, text.decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())


@pytest.fixture
def eddy(server: Server) -> Iterator[Eddy]:
    """A service without streams, tables and queries."""
    yield Eddy(server.url)
    with Client(server.url) as client:
        while queries := client.find_queries():
            client.cancel(queries[-1])
        for name in [*client.streams, *client.tables]:
            client.drop(name)


READINGS = ("readings", "sensor:int", "temp:float", "room:string", "ts:timestamp", "--time", "ts")
HOT = "SELECT sensor, temp FROM readings [RANGE 5 MINUTES] WHERE temp > 30"


def line_of(child: subprocess.Popen[bytes]) -> str:
    """The next line that a process says."""
    assert child.stdout is not None
    ready = select.select([child.stdout], [], [], PATIENCE)[0]
    assert ready, "nothing was said in time"
    return child.stdout.readline().decode()


# ---- streams and tables


def test_streams_are_added_listed_and_dropped(eddy: Eddy) -> None:
    said = 'stream "readings": sensor:int temp:float room:string ts:timestamp\n'
    assert eddy("stream", "add", *READINGS)[0] == said
    assert eddy("stream", "add", *READINGS)[0] == said, "an equal one is fine"
    facts = eddy.json(
        "stream", "add", "keyed", "k:int", "ts:timestamp", "--time", "ts", "--key", "k", "--lateness", "500", "--keep", "60000"
    )
    assert (facts["key"], facts["lateness"], facts["keep"]) == (["k"], 500.0, 60000.0)
    assert [stream["name"] for stream in eddy.json("stream", "list")] == ["readings", "keyed"]
    lines = eddy("stream", "list")[0].splitlines()
    assert lines[0] == "name\ttime\ttimeline\tkey\tcolumns" and lines[1].startswith("readings\tts\tmain\t\tsensor:int")
    assert eddy("stream", "drop", "readings", "keyed") == ("", "")
    assert eddy.json("stream", "list") == []


def test_tables_are_added_listed_and_dropped(eddy: Eddy) -> None:
    assert eddy("table", "add", "sensors", "sensor:int", "room:string", "--key", "sensor", "--retroactive")[0] == (
        'table "sensors": sensor:int room:string\n'
    )
    assert eddy.json("table", "list") == [
        {"name": "sensors", "columns": {"sensor": "int", "room": "string"}, "key": ["sensor"], "retroactive": True}
    ]
    assert eddy("table", "list")[0].splitlines()[1] == "sensors\tsensor\tyes\tsensor:int room:string"
    assert eddy("table", "drop", "sensors") == ("", "")


def test_merges_are_added_fed_by_input_shown_and_dropped(eddy: Eddy, tmp_path: Path) -> None:
    columns = ("sensor:int", "temp:float", "ts:timestamp", "--time", "ts", "--timeline", "floor")
    options = ("--input", "gw1", "--input", "gw2", "--unique", "sensor", "--missing", "any", "--lateness", "500")
    said = eddy("merge", "add", "floor", *columns, *options)[0]
    assert said == 'merge "floor" of gw1, gw2, case R3: sensor:int temp:float ts:timestamp\n'
    assert [one["inputs"] for one in eddy.json("merge", "list")] == [["gw1", "gw2"]]
    file = tmp_path / "rows.csv"
    file.write_text("sensor,temp,ts\n1,20.5,1970-01-01T00:00:01Z\n1,20.5,1970-01-01T00:00:01Z\n2,19,1970-01-01T00:00:02Z\n")
    pushed = eddy("push", "floor", str(file), "--input", "gw1")[0]
    assert pushed.startswith('2 rows into stream "floor", 1 duplicate; settled before 1970-01-01T00:00:01.500000Z, leader gw1')
    lines = b'{"sensor": 2, "temp": 25, "ts": 2000}\n{"sensor": 3, "temp": 1.5, "ts": 2500}\n{"stable": 3000}\n'
    assert eddy.json("push", "floor", "-", "--format", "ndjson", "--input", "gw2", given=lines)["leader"] == "gw2"
    told = eddy("merge", "show", "floor")[0]
    assert "leader: gw2" in told
    assert "contradiction: temp of sensor=2 at 1970-01-01T00:00:02Z: 19.0, gw2 says 25.0\n" in told
    assert eddy.json("merge", "show", "floor")["inputs"]["gw1"]["duplicates"] == 1
    eddy("merge", "detach", "floor", "gw1")
    eddy("merge", "attach", "floor", "gw3", "--since", "1970-01-01T00:00:03Z")
    assert list(eddy.json("merge", "show", "floor")["inputs"]) == ["gw2", "gw3"]
    refused = eddy("push", "floor", str(file), code=1)[1]
    assert refused == 'error: "floor" is a merged stream\nhint: eddy push floor FILE --input I gives it the rows of one input\n'
    assert "merge add" in eddy("push", "floor", str(file), "--input", "gw2", "--create", code=2)[1]
    eddy("merge", "drop", "floor")
    assert eddy.json("merge", "list") == []


def test_on_a_terminal_lists_are_tables(eddy: Eddy) -> None:
    eddy.make_readings()
    shown = eddy.on_a_terminal("stream", "list")
    assert "┃ name" in shown and "│ readings" in shown and "\t" not in shown


# ---- queries


def test_a_query_is_added_shown_replaced_paused_resumed_and_cancelled(eddy: Eddy, server: Server) -> None:
    eddy.make_readings()
    assert eddy("query", "add", HOT.replace("30", ":low"), "--name", "hot", "--param", "low=30", "--tag", "t")[0] == (
        'query "hot" (relation): sensor, temp\n'
    )
    eddy("push", "readings", "-", given=b"sensor,temp,ts\n1,31.5,1000\n2,4.0,1000\n")
    shown = eddy("query", "show", "hot", "--plan")[0]
    assert shown.startswith("hot: relation, running, update pattern weakest\n  SELECT sensor, temp FROM")
    assert "answer at commit" in shown and "sensor\ttemp\n1\t31.5\n" in shown and '"shared_with"' in shown
    facts = eddy.json("query", "show", "hot")
    assert (facts["answer"]["rows"], facts["answer"]["n_rows"], facts["stats"]["results"]) == (
        [{"sensor": 1, "temp": 31.5}],
        1,
        1,
    )
    assert [query["params"] for query in eddy.json("query", "list", "--tag", "t", "--sort", "-own_bytes")] == [{"low": 30}]
    assert eddy("query", "list")[0].splitlines()[1].startswith("hot\trunning\trelation\tt\t")
    eddy("query", "replace", "hot", HOT.replace("> 30", "< 30"))
    assert eddy.json("query", "show", "hot")["answer"]["rows"] == [{"sensor": 2, "temp": 4.0}]
    eddy("query", "pause", "hot")
    assert eddy.json("query", "list", "--state", "paused")[0]["name"] == "hot"
    eddy("query", "resume", "hot")
    assert eddy("query", "cancel", "hot") == ("", "") and eddy.json("query", "list") == []


@pytest.mark.parametrize("kind", ["ndjson", "csv", "sql"])
def test_queries_of_a_file_are_added_and_cancelled_by_tag(eddy: Eddy, tmp_path: Path, kind: str) -> None:
    eddy.make_readings()
    texts = [f"SELECT sensor FROM readings WHERE temp > {n}" for n in range(1200)]
    lines = {
        "ndjson": [json.dumps({"sql": sql, "name": f"r{n}"}) for n, sql in enumerate(texts)],
        "csv": ["name,sql", *(f"r{n},{sql}" for n, sql in enumerate(texts))],
        "sql": [f"-- name: r{n}\n{sql};" for n, sql in enumerate(texts)],
    }[kind]
    path = tmp_path / f"rules.{kind}"
    path.write_text("\n".join(lines))
    assert eddy("query", "add", "--file", str(path), "--tag", "rules")[0] == "1200 queries started\n"
    found = eddy.json("query", "list", "--tag", "rules")
    assert len(found) == 1200 and found[-1]["name"] == "r1199" and found[-1]["sql"] == texts[-1]
    assert eddy("query", "cancel", "--tag", "rules")[0] == "1200 queries cancelled\n"


def test_a_file_with_a_bad_query_is_refused_with_its_line_or_started_in_part(eddy: Eddy, tmp_path: Path) -> None:
    eddy.make_readings()
    path = tmp_path / "rules.sql"
    path.write_text("SELECT sensor FROM readings;\n\nSELECT nope FROM readings;\n")
    out, err = eddy("query", "add", "--file", str(path), code=1)
    assert (out, err) == (
        "",
        'error: rules.sql, line 3: column "nope" does not exist in stream "readings"\n'
        "  at line 1, column 8, near 'nope'\n"
        "hint: there are: sensor, temp, room, ts\n",
    )
    assert eddy.json("query", "list") == []
    out, err = eddy("query", "add", "--file", str(path), "--partial", code=1)
    assert out == "1 queries started, 1 refused\n" and "rules.sql, line 3" in err


def test_watch_shows_changes_with_their_sign(eddy: Eddy) -> None:
    eddy.make_readings()
    eddy("query", "add", HOT, "--name", "hot")
    eddy("push", "readings", "-", given=b'{"sensor": 1, "temp": 31.5, "ts": 1000}\n{"sensor": 2, "temp": 40.0, "ts": 400000}\n')
    assert eddy("query", "watch", "hot", "--since", "0", "--no-follow")[0] == ("+ 1970-01-01T00:06:40Z  sensor=2  temp=40.0\n")
    out, _ = eddy("query", "watch", "hot", "--no-follow", "--json")
    change = json.loads(out)
    assert list(change) == ["query", "seq", "time", "sign", "row"] and change["row"] == {"sensor": 2, "temp": 40.0}


def test_watch_follows_and_ctrl_c_ends_it_quietly(eddy: Eddy, server: Server) -> None:
    eddy.make_readings()
    eddy("query", "add", HOT, "--name", "hot", "--tag", "t")
    with eddy.start("query", "watch", "--tag", "t") as child, Client(server.url) as client:
        client.push("readings", [{"sensor": 1, "temp": 31.5, "ts": 1000}])
        assert line_of(child) == "+ 1970-01-01T00:00:01Z  hot  sensor=1  temp=31.5\n"
        client.advance(1_000_000, eddy.timeline)
        assert line_of(child) == "- 1970-01-01T00:05:01Z  hot  sensor=1  temp=31.5\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) == 130
        assert child.stderr is not None and child.stderr.read() == b""


def test_watch_goes_on_after_a_restart_of_the_service(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path / "data")) as first:
        eddy = Eddy(first.url)
        eddy.make_readings()
        eddy("query", "add", HOT, "--name", "hot")
        with eddy.start("query", "watch", "hot", "--json") as child:
            eddy("push", "readings", "-", given=b"sensor,temp,ts\n1,31.5,1000\n")
            assert json.loads(line_of(child))["row"]["sensor"] == 1
            assert first.stop() == 0
            with serving("--data", str(tmp_path / "data"), port=first.port):
                eddy("push", "readings", "-", given=b"sensor,temp,ts\n2,32.5,1000\n")
                assert json.loads(line_of(child))["row"]["sensor"] == 2
                child.send_signal(signal.SIGINT)
                assert child.wait(PATIENCE) == 130


def test_a_reader_of_the_output_that_goes_away_is_no_mistake(eddy: Eddy, server: Server) -> None:
    eddy.make_readings()
    with Client(server.url) as client:
        client.submit("SELECT sensor, temp, room FROM readings [RANGE 5 MINUTES]", name="all")
        client.push("readings", {"sensor": list(range(20_000)), "room": ["x" * 20] * 20_000, "ts": [1000] * 20_000})
    with eddy.start("query", "watch", "all", "--no-follow") as child:
        assert line_of(child).startswith("+ ")
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.wait(PATIENCE) == 0 and child.stderr.read() == b""


# ---- rows


@pytest.mark.parametrize("kind", ["csv", "ndjson", "arrow", "parquet"])
def test_a_file_is_pushed_into_a_stream_that_is_made_for_it(eddy: Eddy, tmp_path: Path, kind: str) -> None:
    n_rows = 25_000
    columns = {
        "sensor": list(range(n_rows)),
        "temp": [n / 2 for n in range(n_rows)],
        "ts": [1_700_000_000 + n for n in range(n_rows)],
    }
    table = pa.table(columns)
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    elif kind == "csv":
        path.write_text("sensor,temp,ts\n" + "".join(f"{n},{n / 2},{1_700_000_000 + n}\n" for n in range(n_rows)))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    out, err = eddy("push", "rows", str(path), "--create", "--time", "ts")
    assert (out, err) == ('stream "rows": sensor:int temp:float ts:timestamp[s]\n25000 rows into stream "rows"\n', "")
    told = {"stream": "rows", "accepted": 25000, "late": 24999, "expired": 0, "rejected": 0}
    told |= {"nulls": {}} if kind == "csv" else {}
    assert eddy.json("push", "rows", str(path), "--create") == told


def test_a_file_of_another_time_is_told_of_timelines_and_a_second_push_of_it_looks_so(eddy: Eddy, tmp_path: Path) -> None:
    eddy.make_readings()
    newest = 1_700_000_000_000
    eddy("push", "readings", "-", given=f"sensor,temp,ts\n1,20.5,{newest}\n".encode())
    eddy("stream", "add", "older", "sensor:int", "ts:timestamp", "--time", "ts", "--timeline", eddy.timeline)
    eddy("query", "add", "SELECT sensor FROM older [RANGE 1 HOUR]", "--name", "of_older")
    path = tmp_path / "older.csv"
    path.write_text("sensor,ts\n" + "".join(f"{n},{newest - 86_400_000 + n}\n" for n in range(100)))
    out, err = eddy("push", "older", str(path))
    assert out == '100 rows into stream "older", 100 expired\n'
    assert "no query will ever show any of these rows" in err and "--timeline NAME" in err and "late" not in err
    out, err = eddy("push", "older", str(path))
    assert out == '100 rows into stream "older", 99 late, 100 expired\n'
    assert "it looks as if this file was pushed before" in err
    _, err = eddy("push", "older", str(path), "--create", "--timeline", "another", code=1)
    assert 'stream "older" exists with another timeline' in err and "push into a new one" in err
    path.write_text("sensor,ts\n" + "".join(f"{n},{newest + 60_000 * (n % 2)}\n" for n in range(20_000)))
    out, err = eddy("push", "older", str(path))
    assert out == '20000 rows into stream "older", 5000 late\n', "the second part begins behind the first"
    assert err.startswith(
        "late: 5000 rows are older than the time that the stream had reached when they came; they count at that"
    )


def test_rows_come_from_standard_input_in_any_format(eddy: Eddy) -> None:
    eddy.make_readings()
    sink = pa.BufferOutputStream()
    table = pa.table({"sensor": [1], "ts": [1000]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    for given in (b"sensor,ts\n1,1000\n", b'{"sensor": 1, "ts": 1000}\n', sink.getvalue().to_pybytes()):
        assert eddy("push", "readings", "-", given=given)[0] == '1 rows into stream "readings"\n'
    assert eddy("push", "readings", "-", "--format", "ndjson", given=b"")[0] == '0 rows into stream "readings"\n'


def test_a_row_that_does_not_fit_is_named_by_its_place_in_the_file(eddy: Eddy, tmp_path: Path) -> None:
    eddy.make_readings()
    path = tmp_path / "rows.csv"
    path.write_text("sensor,ts\n" + "1,1000\n" * 10_007 + "x,1000\n")
    out, err = eddy("push", "readings", str(path), code=1)
    assert (out, err) == (
        "",
        'error: "x" is not an int: the 10000 rows of earlier parts were taken\n  at row 10007, column "sensor"\n'
        "hint: NULL is an empty cell, NA or -; null=x (--null) if that is meant\n",
    )
    out, err = eddy("push", "readings", str(path), "--bad", "skip")
    assert out == '10007 rows into stream "readings", 1 rejected\n' and err == ""


def test_on_a_terminal_a_push_has_a_bar(eddy: Eddy, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("sensor\n" + "1\n" * 25_000)
    shown = eddy.on_a_terminal("push", "rows", str(path), "--create")
    assert '25000 rows into stream "rows"' in shown and re.search("[━╸╺]", shown) and "rows/s" in shown


# ---- looking inside


def test_trace_says_why_and_why_not(eddy: Eddy) -> None:
    eddy.make_readings()
    eddy("query", "add", HOT, "--name", "hot")
    eddy("query", "add", "SELECT sensor FROM readings WHERE temp < 40", "--name", "mild")
    eddy("push", "readings", "-", given=b"sensor,temp,ts\n1,20.5,1000\n")
    assert eddy("trace", "readings", "0")[0] == (
        "row 0 of readings at 1970-01-01T00:00:01Z\n  sensor=1  temp=20.5  room=  ts=1970-01-01T00:00:01Z\n"
        "✓ mild\n✗ hot: temp > 30.0 is not true, temp is 20.5\n"
    )
    said = eddy("trace", "readings", '{"sensor": 2, "temp": null, "ts": 0}', "--query", "hot")[0]
    assert said.startswith("this row, not pushed, of readings at 1970-01-01T00:00:00Z, late\n")
    assert said.endswith("✗ hot: temp > 30.0 is not true, temp is NULL\n")
    assert eddy.json("trace", "readings", "0", "--query", "mild")["matched"] == ["mild"]


def test_top_shows_rates_the_queue_and_the_largest_queries(eddy: Eddy) -> None:
    eddy.make_readings()
    eddy("query", "add", HOT, "--name", "hot")
    out, _ = eddy("top", "--json", "-n", "2", "--every", "0.1")
    looks = [json.loads(line) for line in out.splitlines()]
    assert len(looks) == 2 and looks[0]["largest"][0]["name"] == "hot" and looks[0]["queue"]["calls"] == 0
    assert looks[1]["streams"][0]["name"] == "readings" and looks[1]["streams"][0]["rows_per_s"] == 0.0
    shown = eddy("top", "--every", "0.1")[0].splitlines()
    assert shown[0].startswith("commit ") and shown[1].startswith("stream\trows/s") and shown[-1].startswith("hot\t")
    assert re.search(r"^ hot +\d+ B  SELECT sensor", eddy.on_a_terminal("top", "-n", "1", "--every", "0.1"), re.MULTILINE)


# ---- mistakes

GOLDEN = [
    (
        ["query", "add", "SELECT sensor\nFROM readings WHERE tmp > 3"],
        'error: column "tmp" does not exist in stream "readings"\n  at line 2, column 21, near \'tmp\'\n'
        'hint: did you mean "temp"?\n',
    ),
    (["query", "show", "hott"], "error: query 'hott' does not exist\nhint: did you mean \"hot\"?\n"),
    (["query", "cancel", "nope"], "error: query 'nope' does not exist\nhint: there are: hot\n"),
    (["stream", "drop", "readings"], 'error: stream "readings" is read by 1 queries; queries: hot\nhint: cancel them first\n'),
    (["stream", "drop", "nope"], 'error: stream "nope" does not exist\nhint: there are: readings\n'),
    (["table", "drop", "readings"], 'error: table "readings" does not exist\nhint: "readings" is a stream: push gives it rows\n'),
    (["stream", "add", "s", "a:number"],
     "error: column \"a\" has the unknown type 'number'\nhint: there are: int, float, string, "
     "bool, timestamp, timestamp[s], timestamp[us]\n"),
    (["stream", "add", "readings", "a:int"], 'error: stream "readings" exists with another definition\nhint: drop it first\n'),
    (["push", "nope", "README.md"],
     'error: the format of "README.md" is not known\nhint: --format is one of csv, ndjson, arrow, parquet\n'),
    (["push", "readings", "nowhere.csv"], "error: nowhere.csv cannot be read: No such file or directory\n"),
    (["trace", "readings", "99"], 'error: row 99 of stream "readings" is not held; 0 rows were accepted\n'),
    (["stream", "list", "--url", "http://127.0.0.1:9"],
     "error: the service cannot be reached: [Errno 111] Connection refused\nhint: is it running? eddy serve starts one\n"),
    (["stream", "list", "--url", "nonsense"],
     'error: "nonsense" is not the address of a service\nhint: such as http://127.0.0.1:8000\n'),
]  # fmt: skip


def test_mistakes_are_one_to_three_lines_and_end_with_1(eddy: Eddy) -> None:
    eddy.make_readings()
    eddy("query", "add", HOT, "--name", "hot")
    for args, said in GOLDEN:
        out, err = eddy(*args, code=1)
        assert (out, err) == ("", said), args


@pytest.mark.parametrize(
    "args",
    [
        ["query", "add"], ["query", "watch"], ["query", "cancel"], ["stream", "add", "s"], ["stream", "add", "s", "a"],
        ["trace", "readings", "x"], ["query", "add", "SELECT 1", "--param", "x"], ["push", "s", "-", "--time", "ts"],
        ["query", "watch", "q", "--since", "yesterday"], ["push", "s", "-", "--bad", "maybe"], ["table", "add", "t", "a:int"],
        ["nonsense"],
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_2(eddy: Eddy, args: list[str]) -> None:
    out, err = eddy(*args, code=2)
    assert out == "" and "Usage" in err


@pytest.mark.parametrize(
    "command",
    [
        "stream add", "stream list", "stream drop", "table add", "table list", "table drop", "query add", "query list",
        "query show", "query watch", "query replace", "query pause", "query resume", "query cancel", "push", "trace", "top",
    ],
)  # fmt: skip
def test_each_command_has_help_with_its_options(eddy: Eddy, command: str) -> None:
    said = eddy(*command.split(), "--help")[0]
    assert "--url" in said and "--token" in said and "EDDY_URL" in said


def test_tokens_are_sent(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    eddy = Eddy("")
    secret = eddy("token", "add", "ops", "--role", "admin", "--token-file", str(tokens))[0].strip()
    with serving("--ephemeral", "--token-file", str(tokens)) as guarded:
        assert eddy("stream", "list", "--url", guarded.url, "--token", secret, "--json")[0] == "[]\n"
        assert eddy("stream", "list", "--url", guarded.url, code=1)[1].startswith("error: ")
        eddy.env["EDDY_TOKEN"] = secret
        assert eddy("stream", "list", "--url", guarded.url, "--json")[0] == "[]\n"
