"""A service with merged streams that loses its power anywhere: after recovery the same answers, points, leaders and counts."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from api.core.calls import Call
from eddy import Engine
from tests.fault.test_service_crashes import check, prefixes
from tests.reference.gateways import COLUMNS as READING
from tests.reference.gateways import END, GATEWAYS, LATENESS, QUERIES, Gateways, presented, readings

JSON, NDJSON = "application/json", "application/x-ndjson"
COLUMNS = {"a": "int", "b": "string", "ts": "timestamp"}


def script(seed: int, n_calls: int) -> list[Call]:
    """Calls of every kind on two merges, some of them refused."""
    chance = random.Random(seed)
    ends = {"columns": COLUMNS | {"until": "timestamp"}, "time": "ts", "end": "until", "unique": ["a"], "order": "any"}
    late = {"columns": COLUMNS, "time": "ts", "unique": True, "missing": "any", "lateness": 300, "inputs": ["x", "y", "z"]}
    texts = [
        "SELECT a, b FROM m [RANGE 2 SECONDS]", "SELECT b, COUNT(*) AS n FROM u [RANGE 2 SECONDS] GROUP BY b",
        "SELECT m.a FROM m [RANGE 2 SECONDS] m, u [RANGE 2 SECONDS] u WHERE m.a = u.a",
    ]  # fmt: skip
    calls = [
        Call("create_merge", {"name": "m", "definition": ends | {"inputs": ["x", "y"]}}),
        Call("create_merge", {"name": "u", "definition": late}),
        *(Call("submit", {"definition": {"name": f"q{n}", "sql": sql}}) for n, sql in enumerate(texts)),
    ]
    clock = 1000
    for n in range(n_calls):
        clock += chance.choice([0, 50, 200])
        of = chance.choice("xyz")
        rows: list[Any] = [
            {"a": chance.randrange(6), "b": chance.choice("uvw"), "ts": clock - chance.randrange(200)} for _ in range(3)
        ]
        header: dict[str, Any] = {"merge": "u", "input": of, "media": JSON}
        if chance.random() < 0.3:
            header["key"] = f"k{chance.randrange(n + 1)}"
        if chance.random() < 0.2:
            rows.append({"a": "bad", "ts": clock})
            header["bad"] = chance.choice(["skip", "refuse"])
        kind = chance.choices(["push", "lines", "stable", "attach", "detach", "retract"], [6, 6, 3, 1, 1, 1])[0]
        if kind == "push":
            calls.append(Call("push_input", header, orjson.dumps(rows)))
        elif kind == "lines":
            given = [row | {"until": clock + 3000} for row in rows]
            first = {name: rows[0][name] for name in ("a", "ts")}
            given.append({"adjust": first | {"until": clock + chance.choice([500, 1000])}})
            given += [{"stable": clock - 100}] if chance.random() < 0.4 else []
            body = b"\n".join(map(orjson.dumps, given))
            calls.append(Call("push_input", header | {"merge": "m", "media": NDJSON}, body))
        elif kind == "stable":
            calls.append(Call("stable", {"merge": chance.choice("mu"), "input": of, "time": clock}))
        elif kind == "attach":
            calls.append(Call("attach", {"merge": chance.choice("mu"), "input": of, "since": clock}))
        elif kind == "detach":
            calls.append(Call("detach", {"merge": "u", "input": of}))
        else:
            calls.append(Call("retract", {"stream": "m"}, b'{"keys": [1], "time": 1}'))
    return calls


@pytest.mark.parametrize("seed", range(2))
def test_a_merge_is_what_it_was_wherever_its_service_crashes(seed: int) -> None:
    assert check(script(seed, 30), seed, 12, seed + 1, 3 * seed) == 12


def three_gateways(seed: int, missing: str) -> tuple[list[Call], list[Any]]:
    """Calls of three gateways on one merge with queries over it; and the rows that must have entered in the end."""
    chance, model = random.Random(seed), Gateways()
    rows = readings(60)
    definition = {
        "columns": READING, "time": "ts", "lateness": LATENESS, "inputs": list(GATEWAYS), "unique": ["sensor"],
        "missing": missing,
    }  # fmt: skip
    calls = [Call("create_merge", {"name": "m", "definition": definition})]
    calls += [Call("submit", {"definition": {"name": name, "sql": sql.format("m")}}) for name, sql in QUERIES.items()]
    left = {of: presented(rows, chance) for of in GATEWAYS}
    while any(left.values()):
        of = chance.choice([one for one, rest in left.items() if rest])
        n = chance.randrange(1, 20)
        part, left[of] = left[of][:n], left[of][n:]
        model.take(of, part)
        calls.append(Call("push_input", {"merge": "m", "input": of, "media": JSON}, orjson.dumps(part)))
    calls.append(Call("stable", {"merge": "m", "input": "gw2", "time": END}))
    model.say("gw2", END)
    kept = model.in_time if missing == "any" else model.decided
    return calls, [row for row in rows if row["ts"] in kept]


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["any", "leader"])
def test_three_gateways_give_what_a_plain_stream_gives_at_every_crash_point(missing: str) -> None:
    seed = 1
    calls, union = three_gateways(seed, missing)
    with Engine() as engine:
        engine.create_stream("p", READING, time="ts", lateness=LATENESS)
        for name, sql in QUERIES.items():
            engine.submit(sql.format("p"), name=name)
        engine.push("p", union)
        engine.advance(END)
        plain = {name: sorted(map(repr, engine.answer(name).to_pylist())) for name in QUERIES}
    last = list(prefixes(calls))[-1]["answers"]
    assert {name: sorted(map(repr, rows)) for name, (_, _, rows, _) in last.items()} == plain
    # whoever comes back goes on to the same end: each point of the disk, by a kill or a loss of power
    assert check(calls, seed, 100_000, 2, 5) > len(calls)
