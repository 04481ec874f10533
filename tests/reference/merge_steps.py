"""Random scripts over a merged stream: the engine beside the naive model and beside a plain stream of the rows that entered.

After every step are compared: the receipt, the rows that entered and their order, the clock, and the answers of queries of many
kinds; at the end the changes of each query by instant.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from eddy import EddyError, Engine, MergeReceipt
from eddy.state.dump import dump_state, load_state
from tests.reference.merge_model import BEGINNING, End, Enter, MergeModel, Options
from tests.reference.merge_models import model_of

MS = 1_000
COLUMNS = {"k": "int", "v": "float", "g": "string", "ts": "timestamp[us]"}
END = {"until": "timestamp[us]"}
NAMES = ("a", "b", "c", "d")
POLICIES = ("stable", "stable", "first", "leader", "highest", "unfrozen", "half-frozen", "fraction:0.5", "fraction:1")

#: Over the merged stream, over the plain one, and over others beside it.
QUERIES = (
    "SELECT k, v FROM m [RANGE 20 MILLISECONDS]",
    "SELECT k, COUNT(*) AS n, SUM(k) AS s, LAST(v) AS l FROM m [RANGE 30 MILLISECONDS] GROUP BY k",
    "SELECT k, v, g FROM m [ROWS 4]",
    "SELECT k, v FROM m [PARTITION BY k ROWS 2]",
    "SELECT DISTINCT g FROM m [RANGE 15 MILLISECONDS]",
    "SELECT m.k, o.x FROM m [RANGE 20 MILLISECONDS], o [RANGE 20 MILLISECONDS] WHERE m.k = o.k",
    "SELECT COUNT(*) AS n FROM m [RANGE 20 MILLISECONDS SLIDE 5 MILLISECONDS]",
    "SELECT k FROM m [RANGE 20 MILLISECONDS] EXCEPT SELECT k FROM o [RANGE 10 MILLISECONDS]",
    "SELECT k, v, g FROM m [RANGE UNBOUNDED] WHERE k > 1",
    "SELECT m.k, tb.w FROM m [RANGE 25 MILLISECONDS], tb WHERE m.k = tb.k",
    "ISTREAM (SELECT k, COUNT(*) AS n FROM m [RANGE 20 MILLISECONDS] GROUP BY k)",
    "SELECT k, v, g, ts FROM m",
)


def draw_options(rng: random.Random) -> Options:
    """Options that `create_merge` takes, of every case."""
    unique: tuple[str, ...] | None = rng.choice([("k", "v", "g"), ("k", "v", "g"), ("k",), ("k", "g"), None])
    end = rng.choice([None, None, "until"])
    order = rng.choice([None, None, None, "any", "strict", "ordered"])
    policy = rng.choice(POLICIES) if unique is not None else "stable"
    return Options(
        NAMES[: rng.randint(1, 3)], unique, end=end, missing=rng.choice(["leader", "any"]) if unique else "leader",
        policy=policy, order=order, lateness=rng.choice([0, 5 * MS, 20 * MS]) if order is None else 0,
        lag=rng.choice([0, 0, 0, 3 * MS]),
    )  # fmt: skip


class MergeScript:
    """One random run."""

    def __init__(self, seed: int, options: Options | None = None, *, reloads: bool = False) -> None:
        self.rng = random.Random(seed)
        self.options = options or draw_options(self.rng)
        self.reloads = reloads
        self.met: Counter[str] = Counter()
        self.center = 100 * MS
        self.pool: list[dict[str, Any]] = []
        self.clock = BEGINNING
        #: ends of rows that the plain stream has still to be told
        self.planned: list[tuple[int, int, int]] = []
        self.engine, self.plain = Engine(batch_rows=self.rng.choice([1, 3, 4096])), Engine()
        self._create()
        self.model: MergeModel = model_of(self.options, self.case)
        self.queries = [self._submit(sql) for sql in QUERIES]
        self.seq = self.engine.seq

    # ---- set-up

    def _create(self) -> None:
        options = self.options
        columns = COLUMNS | (END if options.end else {})
        whole = options.unique is not None and len(options.unique) == 3
        unique: Any = False if options.unique is None else True if whole else list(options.unique)
        made = self.engine.create_merge(
            "m", columns, time="ts", inputs=options.inputs, unique=unique, missing=options.missing, end=options.end,
            policy=options.policy, order=options.order, lateness=options.lateness / MS, lag=options.lag / MS, keep=10_000,
        )  # fmt: skip
        self.case = made.case
        self.plain.create_stream("m", columns | {"no": "int"}, time="ts", key="no", end=options.end, keep=10_000)
        for engine in (self.engine, self.plain):
            engine.create_stream("o", {"k": "int", "x": "int", "ts": "timestamp[us]"}, time="ts")
            engine.create_table("tb", {"k": "int", "w": "string"}, key="k")
            engine.upsert("tb", {"k": [0, 1, 2], "w": ["p", "q", "r"]})
        self.plain.create_stream("c", {"x": "int", "ts": "timestamp[us]"}, time="ts")

    def _submit(self, sql: str) -> str:
        name = f"q{len(self.engine.queries)}_"
        for engine in (self.engine, self.plain):
            engine.submit(sql, name=name, emit="event")
        return name

    # ---- rows

    def _row(self) -> dict[str, Any]:
        rng = self.rng
        self.center += rng.choice([0, 0, 1, MS, 2 * MS, 4 * MS])
        row = {"k": rng.randint(0, 3), "v": rng.choice([0.5, 1.5, -0.0, 0.0, None]), "g": rng.choice(["x", "y", None])}
        row["ts"] = self.center - rng.choice([0, 0, MS, 3 * MS, 9 * MS])
        if self.options.end:
            row["until"] = rng.choice([None, row["ts"] + 1, row["ts"] + 5 * MS, row["ts"] + 20 * MS])
        return row

    def _rows(self, name: str) -> list[dict[str, Any]]:
        rng, found = self.rng, []
        for _ in range(rng.choice([0, 1, 1, 2, 4, 8])):
            if not self.pool or rng.random() < 0.4:
                self.pool = [*self.pool[-12:], self._row()]
            row = dict(rng.choice(self.pool[-12:]))
            if rng.random() < 0.1:
                row["v"] = 7.5
            if self.options.end and rng.random() < 0.3:
                row["until"] = row["ts"] + rng.choice([1, 2 * MS, 15 * MS])
            found.append(row)
        of = self.model.inputs[name]
        if self.options.order in ("strict", "ordered") and rng.random() < 0.9:
            found.sort(key=lambda row: row["ts"])
            last = of.last
            kept = []
            for row in found:
                if row["ts"] > last or (self.options.order == "ordered" and row["ts"] == last):
                    kept.append(row)
                    last = row["ts"]
            found = kept
        if rng.random() < 0.9:
            found = [row for row in found if row["ts"] >= of.said]
        return found

    # ---- steps

    def step(self) -> None:
        steps = [
            (60, self.push), (14, self.say), (10, self.adjust), (3, self.advance), (3, self.attach), (3, self.detach),
            (6, self.other), (3 if self.reloads else 0, self.reload),
        ]  # fmt: skip
        self.rng.choices([do for _, do in steps], [weight for weight, _ in steps])[0]()
        self.compare()

    def _input(self) -> str | None:
        return self.rng.choice(sorted(self.model.inputs)) if self.model.inputs else None

    def push(self) -> None:
        name = self._input()
        if name is None:
            return
        rows = self._rows(name)
        refused = self.model.refused(name, rows)
        if refused is not None:
            self.refuse(lambda: self.engine.push("m", rows, input=name), row=refused)
            return
        columns: Any = {key: [row[key] for row in rows] for key in (rows[0] if rows else {"ts": 0})}
        receipt = self.engine.push("m", columns if self.rng.random() < 0.5 else rows, input=name)
        steps, counts = self.model.push(name, rows)
        self.met.update(counts)
        self.show(steps, BEGINNING)
        settled = counts["settled"] + counts["ignored"]
        self.check_receipt(receipt, counts["new"] + counts["known"], counts["repeated"], settled)

    def say(self) -> None:
        name = self._input()
        if name is None:
            return
        time = self.center + self.rng.choice([-20, -8, -4, -2, 0, 1]) * MS
        joined = self.model.inputs[name].joined
        receipt = self.engine.stable("m", name, time / MS)
        self.show(self.model.say(name, time), time - self.options.lag if joined else BEGINNING)
        self.check_receipt(receipt, 0, 0, 0)

    def adjust(self) -> None:
        name = self._input()
        if name is None or not self.pool:
            return
        row = dict(self.rng.choice(self.pool))
        time = row["ts"]
        unique = self.options.unique or ("k", "v", "g")
        given = {key: row[key] for key in (*unique, "ts")}
        end = time
        old: int | None = time + 1
        if self.options.end:
            end = given["until"] = self.rng.choice([time, time + 1, time + 4 * MS, time + 30 * MS])
            if self.options.unique is None:
                old = given["old_until"] = self.rng.choice([row["until"], row["until"], time + 2 * MS])
        if self.case in ("R0", "R1", "R2"):
            self.refuse(lambda: self.engine.adjust("m", [given], input=name))
            return
        of = self.model.inputs[name]
        if end < of.said or not self.model.can_adjust(name, given, time, old):
            self.refuse(lambda: self.engine.adjust("m", [given], input=name), row=0)
            return
        receipt = self.engine.adjust("m", [given], input=name)
        steps, outcome = self.model.adjust(name, given, time, old, end)
        self.met[f"adjust {outcome}"] += 1
        self.show(steps, BEGINNING)
        self.check_receipt(receipt, outcome == "changed", 0, outcome == "settled")

    def advance(self) -> None:
        time = max(self.center + self.rng.choice([-10, -3, 0]) * MS, self.clock)
        self.engine.advance(time / MS)
        self.show(self.model.advance(time), time)

    def attach(self) -> None:
        free = [name for name in NAMES if name not in self.model.inputs]
        if not free:
            return
        name = self.rng.choice(free)
        since = self.rng.choice([None, self.center - 5 * MS, self.center, self.center + 5 * MS])
        self.engine.attach("m", name, since=None if since is None else since / MS)
        self.model.attach(name, since)

    def detach(self) -> None:
        name = self._input()
        if name is not None and self.rng.random() < 0.7:
            self.engine.detach("m", name)
            self.model.detach(name)

    def other(self) -> None:
        """A row of another stream of the timeline, which the merged one may lag behind."""
        time = max(self.center + self.rng.choice([-2, 0, 0, 3]) * MS, self.clock)
        rows = [{"k": self.rng.randint(0, 3), "x": self.rng.randint(0, 9), "ts": time}]
        self.engine.push("o", rows)
        self.show([], time)
        self.plain.push("o", rows)
        self.clock = max(self.clock, time)

    def reload(self) -> None:
        self.engine = load_state([bytes(part) for part in dump_state(self.engine)])

    def refuse(self, call: Any, row: int | None = None) -> None:
        """A call that raises and changes nothing."""
        before = self.engine.seq
        try:
            call()
        except EddyError as error:
            self.met[f"refused {error.code}"] += 1
            assert row is None or getattr(error, "row", None) == row
            assert self.engine.seq == before
        else:
            raise AssertionError("the call should be refused")

    # ---- comparison

    def show(self, steps: list[Enter | End], clock: int) -> None:
        """Give the plain stream what the model says, in the order in which it takes effect, up to a clock."""
        before = self.clock
        entered = [step for step in steps if isinstance(step, Enter)]
        for order, step in enumerate(steps):
            if isinstance(step, End):
                self.met["end" if step.time is None else "end planned"] += 1
                self.planned.append((BEGINNING if step.time is None else step.time, order, step.number))
        self.planned.sort()
        after = max([before, clock, *(step.time for step in entered)])
        rest = list(entered)
        while self.planned and self.planned[0][0] <= after:
            at = self.planned[0][0]
            # what ends at one instant and one place ends at once: ISTREAM counts it as one event
            bound = min((step.time for step in rest if step.time >= at), default=after)
            together = [one for one in self.planned if one[0] <= bound and max(one[0], before) == max(at, before)]
            self.planned = [one for one in self.planned if one not in together]
            numbers = [number for _, _, number in together]
            self._give([step for step in rest if step.time < at])
            rest = [step for step in rest if step.time >= at]
            self._tick(at)
            self.plain.retract("m", numbers, 0)
        self._give(rest)
        self._tick(after)
        self.entered = [(max(step.time, before), step.row) for step in entered]

    def _give(self, entered: list[Enter]) -> None:
        if entered:
            self.plain.push("m", [step.row | {"no": step.number} for step in entered])
            self.clock = max(self.clock, *(step.time for step in entered))

    def _tick(self, time: int) -> None:
        if time > self.clock:
            self.plain.push("c", [{"x": 0, "ts": time}])
            self.clock = time

    def check_receipt(self, receipt: MergeReceipt, accepted: int, duplicate: int, settled: int) -> None:
        model = self.model
        assert receipt[:3] == (accepted, duplicate, settled)
        assert receipt.leader == (None if model.leader is None else model.leader.name)
        point = None if receipt.settled_before is None else round(receipt.settled_before.timestamp() * 1e6)
        assert point == (None if model.stable == BEGINNING else model.stable)

    def compare(self) -> None:
        self.engine.check()
        told = self.engine.changes(self.queries[-1], since=self.seq)
        shown = [(round(change.time.timestamp() * 1e6), plain_row(change.row)) for change in told]
        entered = getattr(self, "entered", [])
        lived = [(start, {name: row[name] for name in COLUMNS}) for start, row in entered if _alive(row, start)]
        assert shown == lived, "the rows that entered, in their order"
        self.entered, self.seq = [], self.engine.seq
        self.met["entered"] += len(entered)
        now = self.engine.times()["main"]
        assert (BEGINNING if now is None else round(now.timestamp() * 1e6)) == self.clock
        for name in self.queries:
            ours, theirs = (sorted(map(value_of, engine.answer(name).to_pylist())) for engine in (self.engine, self.plain))
            assert ours == theirs, name
        stats = self.engine.stats()["streams"]["m"]["merge"]
        counted = {name: entry["contradictions"] for name, entry in stats["inputs"].items()}
        if self.model.counts_contradictions:
            assert counted == {name: of.contradictions for name, of in self.model.inputs.items()}
        assert stats["gaps"]["count"] == len(self.model.gaps)

    def compare_changes(self) -> None:
        """The changes of every query, by instant."""
        for name in self.queries:
            found = []
            for engine in (self.engine, self.plain):
                net: Counter[Any] = Counter()
                for change in engine.changes(name, since=0):
                    net[(change.time, value_of(change.row))] += change.sign
                found.append({key: n for key, n in net.items() if n})
            assert found[0] == found[1], name


def value_of(row: dict[str, Any]) -> str:
    """A row as a text, equal for equal rows: -0.0 is 0.0."""
    return repr({name: 0.0 if value == 0 else value for name, value in row.items()})


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"ts": round(row["ts"].timestamp() * 1e6)}


def _alive(row: dict[str, Any], start: int) -> bool:
    return row.get("until") is None or row["until"] > start


def run(seed: int, n_steps: int, options: Options | None = None, *, reloads: bool = False) -> MergeScript:
    """Run the script of a seed."""
    script = MergeScript(seed, options, reloads=reloads)
    for _ in range(n_steps):
        script.step()
    script.compare_changes()
    return script
