"""The contract names what there is: calls with their arguments, errors, words, routes and commands, and nothing that is not.

What the calls do is shown beside the parts that do it; here the page and the code are held against each other, so that neither
can change alone.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import typer

import lineage.errors
from api.app import make_app
from api.base.limits import Limits
from api.cli import app as command_line
from api.core.service import Service
from eddy import Change, EddyError, Engine, QueryError, Receipt
from eddy.catalog.merge_definition import MISSING, ORDERS, POLICIES
from eddy.client import Client
from eddy.preparing import EXPIRY
from eddy.routing import NAMES
from lmerge.streams.properties import CASES
from queries.vocabulary import AGGREGATES
from tests.reference.in_process import in_process
from tests.unit.test_docs import CONTRACT, text_of

V = {"v": "int", "x": "float", "s": "string", "b": "bool", "ts": "timestamp"}
NOT_BUILT = "*Not built yet*"


@cache
def section(number: int) -> str:
    return re.split(r"^## \d+\. ", text_of(CONTRACT), flags=re.MULTILINE)[number]


def cells(text: str, column: int) -> list[str]:
    """A column of the rows of a table, without its head."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return [row[column].strip() for row in rows[1:]]


def calls(text: str) -> dict[str, str]:
    """The calls between backticks: name and arguments."""
    return dict(re.findall(r"`(\w+)\(([^`]*?)\)(?: -> [^`]*)?`", text))


def make() -> Engine:
    engine = Engine()
    for name in "ab":
        engine.create_stream(name, V, time="ts")
    return engine


@pytest.mark.parametrize(("name", "arguments"), calls("\n".join(cells(section(2), 0))).items())
def test_a_call_has_the_arguments_of_the_page(name: str, arguments: str) -> None:
    shown = inspect.signature(
        eval(f"lambda {arguments.replace('stream: rows', '')}: 0") if "{" not in arguments else lambda rows: 0
    )
    there = inspect.signature(getattr(Engine, name)).parameters
    wanted = [(p.name, p.kind, p.default) for p in shown.parameters.values()]
    found = [(p.name, p.kind, p.default) for p in list(there.values())[1:]]
    # `explain` may also be given the parameters of a text
    assert found[: len(wanted)] == wanted and (len(found) == len(wanted) or name == "explain")


def test_every_call_of_the_page_is_one_of_the_engine_and_of_the_client() -> None:
    table = "\n".join(cells(section(2), 0))
    names = {*calls(table), *re.findall(r"`(\w+)`", table)}
    assert len(names) == 25 and not [name for name in names if not hasattr(Engine, name)]
    # what a client has not is what takes a Python function, or looks at the engine's own memory
    assert {name for name in names if not hasattr(Client, name)} == {"on_commit", "register", "check"}


def test_the_options_of_an_engine_are_those_of_the_page() -> None:
    options = inspect.signature(Engine).parameters
    shown = re.search(r"engine = Engine\((.*?)\)", section(2))
    bounds = re.search(r"`Engine\((log_rows=.*?)\)`", section(2))
    assert shown is not None and bounds is not None
    for part in shown[1].split(", "):
        name, _, default = part.partition("=")
        assert options[name].default == eval(default), name
    for name in bounds[1].split(", "):
        assert options[name.strip("=")].kind is inspect.Parameter.KEYWORD_ONLY
        assert name.strip("=") in inspect.signature(Engine.limit).parameters


def test_what_calls_return_has_the_fields_of_the_page() -> None:
    table = section(2)
    for kind in (Receipt, Change):
        shown = re.search(rf"{kind.__name__}\((.*?)\)", table)
        fields = kind._fields if hasattr(kind, "_fields") else tuple(f.name for f in dataclasses.fields(kind))
        assert shown is not None and tuple(shown[1].split(", ")) == tuple(fields)
    query = make().submit("SELECT v FROM a [RANGE 1 SECOND]")
    attributes = re.search(r"a `Query` has `(.*?)`", table)
    assert attributes is not None and all(hasattr(query, name.strip(".()")) for name in attributes[1].split())


def test_the_errors_are_those_of_the_page() -> None:
    listed = re.search(r"Errors: `EddyError.*?LimitError`", section(2), re.DOTALL)
    assert listed is not None
    names = {name.rstrip("-") for name in re.findall(r"[A-Z]\w+-?", listed[0])} - {"Errors", "EddyError"}
    names = {name.removesuffix("Error") + "Error" for name in names}
    there = {kind.__name__ for kind in vars(lineage.errors).values() if isinstance(kind, type) and issubclass(kind, EddyError)}
    assert names == there - {"EddyError", "StorageError"}  # no call of an engine stores anything


def test_the_counters_of_the_page_are_there() -> None:
    engine = make()
    query = engine.submit("SELECT v FROM a [RANGE 1 SECOND] WHERE v > 1")
    engine.push("a", {"v": [1, 2], "ts": [1, 1]})
    found = engine.stats()
    assert {"rows_in", "rows_out", "tickets", "cost_ns", "selectivity"} <= set(found["modules"]["filter:a.v"])
    assert {"late", "expired"} <= set(found["streams"]["a"])
    assert found["queries"][query.name] == engine.stats(query) and engine.stats(query)["results"] == 1
    assert {"own_bytes", "shared_bytes", "errors"} <= set(engine.stats(query))
    assert {"matched", "refused", "waiting", "above", "late"} <= set(engine.trace("a", 0))


def test_words_of_policies_and_expiry_are_those_of_the_page() -> None:
    policies, expiry = (re.findall(r"`([a-z:+<>,.-]+)`", part) for part in section(5).split("\n* ")[1:3])
    assert policies[0] == "policy" and set(policies[1:]) == set(NAMES)
    assert expiry[0] == "expiry" and set(expiry[1:]) == set(EXPIRY)


def test_words_of_merges_are_those_of_the_page() -> None:
    text = section(5).split("\n* ")[3]
    assert "not built yet" not in text.lower()
    listed = [re.findall(r"`([A-Za-z0-9:-]+)`", part) for part in re.split(r"[;.]\s", text)]
    words = {found[0]: set(found[1:]) for found in listed if found}
    assert words["case"] == {"auto", *CASES}
    assert words["policy"] == {"fraction:f", *POLICIES}
    assert words["missing"] == set(MISSING)
    assert words["order"] == {order for order in ORDERS if order is not None}


GRAMMAR = re.findall(r"[A-Z_]{2,}", re.split(r"\n    aggr", section(4))[0].split("expr, p:")[1])
#: How a word of the grammar is written, where it is not a function of one number.
WRITTEN = {
    "AND": "v > 1 AND v < 3", "OR": "v > 1 OR v < 3", "NOT": "NOT b", "BETWEEN": "v BETWEEN 1 AND 2", "IN": "v IN (1, 2)",
    "IS": "v IS NULL", "NULL": "v IS NOT NULL", "LIKE": "s LIKE 'a%'", "CASE": "CASE WHEN b THEN 1 ELSE 2 END",
    "CAST": "CAST(v AS float)", "COALESCE": "COALESCE(v, 1)", "NULLIF": "NULLIF(v, 2)", "GREATEST": "GREATEST(v, 1)",
    "LEAST": "LEAST(v, 1)", "POWER": "POWER(x, 2)", "LOWER": "LOWER(s)", "UPPER": "UPPER(s)", "LENGTH": "LENGTH(s)",
    "SUBSTR": "SUBSTR(s, 1, 2)", "TRIM": "TRIM(s)", "REPLACE": "REPLACE(s, 'a', 'b')", "POSITION": "POSITION('a' IN s)",
    "SPLIT_PART": "SPLIT_PART(s, 'a', 1)", "EXTRACT": "EXTRACT(hour FROM ts)", "DATE_TRUNC": "DATE_TRUNC('hour', ts)",
    "STRFTIME": "STRFTIME(ts, '%Y')", "EPOCH_MS": "EPOCH_MS(ts)", "INTERVAL": "ts - INTERVAL '1' HOUR",
}  # fmt: skip


def test_the_language_has_every_word_of_the_page() -> None:
    words = [word for word in GRAMMAR if word != "UTC"]
    assert len(words) > 35 and set(WRITTEN) <= set(words)
    written = [f"{WRITTEN.get(word, f'{word}(x)')} AS c{k}" for k, word in enumerate(words)]
    symbols = "v = 1,v <> 1,v < 1,v <= 1,v > 1,v >= 1,v + 1,v - 1,v * 2,v / 2,v % 2,s || 'a',:p,v::float".split(",")
    written += [f"{text} AS s{k}" for k, text in enumerate(symbols)]
    engine = make()
    query = engine.submit(f"SELECT {', '.join(written)} FROM a [RANGE 1 SECOND]", params={"p": 7})
    engine.push("a", [{"v": 1, "x": 1.0, "s": "abc", "b": True, "ts": 5}])
    (row,) = query.answer().to_pylist()
    assert row["s12"] == 7 and row["s9"] == 0.5 and [name for name, value in row.items() if value is None] == []


def test_aggregates_are_those_of_the_page() -> None:
    shown = re.search(r"aggr   : ([A-Z ]+),", section(4))
    assert shown is not None and tuple(shown[1].split()) == AGGREGATES
    written = ", ".join(f"{name}(v) FILTER (WHERE v > 1) AS c{k}" for k, name in enumerate(AGGREGATES))
    engine = make()
    query = engine.submit(f"SELECT {written}, COUNT(DISTINCT v) AS d FROM a [RANGE 1 SECOND]")
    engine.push("a", {"v": [1, 2, 2], "ts": [5, 5, 5]})
    (row,) = query.answer().to_pylist()
    assert row["c0"] == 2 and row["d"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.v FROM a [NOW] LEFT JOIN b [NOW] ON a.v = b.v", "SELECT a.v FROM a [NOW] RIGHT JOIN b [NOW] ON a.v = b.v",
        "SELECT a.v FROM a [NOW] FULL JOIN b [NOW] ON a.v = b.v", "SELECT a.v FROM a [NOW] ASOF JOIN b [NOW] ON a.v = b.v",
        "SELECT v FROM a [NOW] WHERE EXISTS (SELECT v FROM b [NOW])", "SELECT v FROM a [NOW] WHERE v IN (SELECT v FROM b [NOW])",
        "SELECT v FROM a [NOW] WHERE v > ANY (SELECT 1 FROM b)", "SELECT v FROM a [NOW] WHERE v > ALL (SELECT v FROM b [NOW])",
        "SELECT (SELECT MAX(v) FROM b [NOW]) AS m FROM a [NOW]", "SELECT v FROM a [NOW] ORDER BY v LIMIT 5 PER s",
        "SELECT v FROM a [NOW] LIMIT 5", "SELECT v FROM SESSION(a, 1 MINUTE)", "SELECT QUANTILE(v, 0.5) AS q FROM a [NOW]",
        "SELECT LAG(v) OVER () AS p FROM a", "SELECT LEAD(v) OVER () AS p FROM a", "SELECT ROW_NUMBER() OVER () AS p FROM a",
        "SELECT RANK() OVER () AS p FROM a [NOW]",
    ],
)  # fmt: skip
def test_what_is_not_built_yet_is_refused_by_name_as_something_that_comes(text: str) -> None:
    with pytest.raises(QueryError) as error:
        make().submit(text)
    assert error.value.code == "not_supported" and error.value.fact.endswith("is not supported yet")
    assert error.value.line == 1 and error.value.column > 1 and error.value.hint


@cache
def routes() -> dict[str, set[str]]:
    """The methods of each path, with {} for what is named in it."""
    found = {"/": {"GET"}, "/docs": {"GET"}, "/openapi.json": {"GET"}, "/v1/ws": {"WS"}}  # not in the document
    for path, methods in make_app(Service(None, Limits())).openapi()["paths"].items():
        found[re.sub(r"\{.*?\}", "{}", path)] = {method.upper() for method in methods}
    return found


def test_every_route_of_the_page_is_served_and_every_one_that_is_served_is_on_the_page() -> None:
    text = "\n".join(cells(section(6), 0)).replace("`../rows/delete`", "`/v1/tables/{t}/rows/delete`")
    text = re.sub(r"(`GET /v1/queries/\{q\}`) `/plan` `/stats`", r"\1 `/v1/queries/{q}/plan` `/v1/queries/{q}/stats`", text)
    text = re.sub(r"`(POST /v1/queries/\{q\})/pause` `/resume`", r"`\1/pause` `\1/resume`", text)
    shown = {re.sub(r"\{\w\}", "{}", path) for path in re.findall(r"(?<=[ `])(/[\w/{}.]*)", re.sub(r" \{\w+[,:].*?\}", "", text))}
    there = {path for path in routes() if not path.startswith("/v1/experiments/")}
    assert shown == there
    for verb, path in re.findall(r"`(PUT|GET|POST|DELETE|PATCH|WS) (/[\w/{}.]*)", text):
        assert verb in routes()[re.sub(r"\{\w\}", "{}", path)], (verb, path)


def test_parameters_of_the_page_are_those_of_the_routes() -> None:
    paths = {
        re.sub(r"\{.*?\}", "{}", path): found for path, found in make_app(Service(None, Limits())).openapi()["paths"].items()
    }
    shown = re.findall(r"(GET|POST|DELETE)? ?(/v1/[\w/{}]*)\?([\w=&-]+)`", section(6))
    assert len(shown) == 4
    for verb, path, words in shown:
        there = {entry["name"] for entry in paths[re.sub(r"\{\w\}", "{}", path)][verb.lower() or "get"]["parameters"]}
        assert {word.split("=")[0] for word in words.split("&")} <= there


def test_heads_and_problems_are_as_the_page_says() -> None:
    with in_process(Limits()) as service:
        service.put("/v1/streams/s", json={"columns": {"v": "int", "ts": "timestamp"}, "time": "ts"})
        sql = {"sql": "SELECT v FROM s [RANGE 1 HOUR]"}
        made = service.post("/v1/queries", json={**sql, "name": "p"}), service.put("/v1/queries/q", json=sql)
        assert [(one.status_code, one.headers["location"]) for one in made] == [(201, "/v1/queries/p"), (201, "/v1/queries/q")]
        again = service.put("/v1/queries/q", json=sql)
        assert again.status_code == 200 and "location" not in again.headers
        service.post("/v1/streams/s/rows", json={"v": 1, "ts": 1000})
        answer = service.get("/v1/queries/q/answer")
        assert {"time", "seq", "columns", "rows"} <= set(answer.json())
        assert (answer.headers["eddy-time"], answer.headers["eddy-seq"]) == (answer.json()["time"], str(answer.json()["seq"]))
        known = {"If-None-Match": answer.headers["etag"]}
        assert service.get("/v1/queries/q/answer", headers=known).status_code == 304
        service.post("/v1/streams/s/rows", json={"v": 2, "ts": 1000})
        assert service.get("/v1/queries/q/answer", headers=known).status_code == 200
        problem = service.post("/v1/queries", json={"sql": "SELECT w FROM s"})
        assert problem.headers["content-type"] == "application/problem+json" and problem.status_code == 422
        assert {"code", "kind", "hint", "position", "request_id"} <= set(problem.json())


@pytest.mark.parametrize(
    ("sql", "history", "commits"),
    [
        ("SELECT v FROM a [RANGE 1 SECOND]", "new", 0), ("SELECT v FROM a [RANGE 1 SECOND]", "window", 1),
        ("SELECT k FROM t", "new", 1), ("SELECT v FROM q", "new", 1), ("SELECT COUNT(*) AS n FROM a [RANGE 1 SECOND]", "new", 1),
        ("SELECT v, COUNT(*) AS n FROM a [RANGE 1 SECOND] GROUP BY v", "new", 0),
    ],
)  # fmt: skip
def test_a_submit_is_a_commit_where_the_query_may_have_rows_at_once(sql: str, history: str, commits: int) -> None:
    engine = make()
    engine.create_table("t", {"k": "int"}, key="k")
    engine.submit("SELECT v FROM a [RANGE 1 SECOND]", name="q")
    before = engine.seq
    engine.submit(sql, history=history)
    assert engine.seq - before == commits


def test_the_commands_are_those_of_the_page() -> None:
    shown: set[str] = set()
    listed = re.search(r"`eddy (serve.*?)`", section(7), re.DOTALL)
    assert listed is not None
    for part in " ".join(listed[1].split()).split(" | "):
        noun, _, verbs = part.partition(" ")
        # the commands of an experiment are another program's
        shown.update([noun] if not verbs or noun == "experiment" else [f"{noun} {verb}" for verb in verbs.split("/")])
    group: Any = typer.main.get_command(command_line)
    there: set[str] = set()
    for name, command in group.commands.items():
        there.update(f"{name} {verb}" for verb in command.commands) if hasattr(command, "commands") else there.add(name)
    assert shown == there


def test_what_is_not_built_yet_is_not_there() -> None:
    rows = dict(zip(cells(section(8), 0), cells(section(8), 1), strict=True))
    built = {name for name, text in rows.items() if NOT_BUILT not in text}
    assert built == {"checks", "merged streams"}, "what else is built says so in its own section"
    later = {name for text in rows.values() if NOT_BUILT in text for name in calls(text.split(NOT_BUILT)[1])}
    later -= {"push", "push_many", "register"}  # these get more arguments
    assert {"plan", "switch", "skip_before", "register_aggregate"} <= later
    assert not [name for name in later if hasattr(Engine, name)]
    for call, argument in (("push_many", "until"), ("register", "worker")):
        assert argument not in inspect.signature(getattr(Engine, call)).parameters
    assert "/v1/queries/preview" not in routes() and "GET" not in routes()["/v1/streams/{}/rows"]


def test_times_and_numbers_come_out_as_the_page_says() -> None:
    engine = make()
    query = engine.submit("SELECT ts, v FROM a [RANGE 1 SECOND]")
    engine.push("a", {"ts": np.array([5], "datetime64[s]"), "v": [1]})
    table = query.answer()
    assert str(table.schema.field("ts").type) == "timestamp[us, tz=UTC]"
    assert table.schema.metadata == {b"time": b"1970-01-01T00:00:05Z", b"seq": b"1"}
    (change,) = query.changes(0)
    assert json.dumps(change.time.isoformat()) == '"1970-01-01T00:00:05+00:00"' and change.row["ts"] == change.time
