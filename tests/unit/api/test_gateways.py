"""Three gateways that send the same readings over HTTP, each in its own order, some twice, some not at all: one stream."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.reference.gateways import COLUMNS, END, GATEWAYS, LATENESS, QUERIES, Gateways, presented, readings
from tests.reference.in_process import InProcess, in_process


def answers(service: InProcess, stream: str) -> dict[str, list[Any]]:
    found = {name: service.get(f"/v1/queries/{name}_{stream}/answer").json()["rows"] for name in QUERIES}
    return {name: sorted(map(repr, rows)) for name, rows in found.items()}


@pytest.mark.parametrize("missing", ["any", "leader"])
@pytest.mark.parametrize("seed", range(2))
def test_three_gateways_give_one_stream_without_duplicates(missing: str, seed: int) -> None:
    chance = random.Random(seed)
    rows = readings(400)
    left = {of: presented(rows, chance) for of in GATEWAYS}
    n_sent = {of: len(sent) for of, sent in left.items()}
    model, totals = Gateways(), {of: [0, 0, 0] for of in GATEWAYS}
    with in_process() as service:
        definition = {"columns": COLUMNS, "time": "ts", "timeline": "a", "lateness": LATENESS}
        merge = definition | {"inputs": list(GATEWAYS), "unique": ["sensor"], "missing": missing}
        assert service.put("/v1/merges/m", json=merge).status_code == 201
        assert service.put("/v1/streams/p", json=definition | {"timeline": "b"}).status_code == 201
        for name, sql in QUERIES.items():
            for stream in "mp":
                assert service.put(f"/v1/queries/{name}_{stream}", json={"sql": sql.format(stream)}).status_code == 201
        while any(left.values()):
            of = chance.choice([one for one, rest in left.items() if rest])
            n = chance.randrange(1, 40)
            part, left[of] = left[of][:n], left[of][n:]
            receipt = service.post(f"/v1/merges/m/inputs/{of}/rows", json=part).json()
            counts = receipt["accepted"], receipt["duplicate"], receipt["settled"]
            assert sum(counts) == len(part) and counts == model.take(of, part)
            totals[of] = [total + count for total, count in zip(totals[of], counts, strict=True)]
        assert service.post("/v1/merges/m/inputs/gw2/stable", json={"time": END}).json()["leader"] == "gw2"
        model.say("gw2", END)
        kept = model.in_time if missing == "any" else model.decided
        assert 300 < len(kept) <= 400
        union = [row for row in rows if row["ts"] in kept]
        assert service.post("/v1/streams/p/rows", json=union).json()["accepted"] == len(union)
        assert service.post("/v1/timelines/b/advance", json={"time": END}).is_success
        assert answers(service, "m") == answers(service, "p")
        shown = service.get("/v1/queries/all_m/answer").json()["rows"]
        assert len(shown) == len({row["ts"] for row in shown}) == len(kept), "none comes twice"
        inputs = service.get("/v1/merges/m").json()["state"]["inputs"]
        for of in GATEWAYS:
            assert [inputs[of]["rows"], inputs[of]["duplicates"], inputs[of]["settled"]] == [n_sent[of], *totals[of][1:]]
        assert sum(one["new"] for one in inputs.values()) == len(model.in_time)
