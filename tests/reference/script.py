"""A run as plain data: the set-up (streams, engine options) and its steps, and the same as text to paste."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.reference.functions import FUNCTIONS
from tests.reference.payload import encode
from tests.reference.values import Row
from tests.reference.workload import MS, Spec


@dataclass(frozen=True)
class StreamPlan:
    name: str
    columns: dict[str, str]
    time: str | None
    lateness_us: int
    late: str
    timeline: str
    keep_us: int | None = None
    key: tuple[str, ...] = ()
    end: str | None = None


@dataclass(frozen=True)
class TablePlan:
    name: str
    columns: dict[str, str]
    key: tuple[str, ...]
    retroactive: bool


@dataclass(frozen=True)
class Push:
    """One push of one stream, or one push_many; `form` is how the rows are written."""

    batches: dict[str, list[Row]]
    form: str
    many: bool


@dataclass(frozen=True)
class Retract:
    stream: str
    keys: list[tuple[Any, ...]]
    time: int


@dataclass(frozen=True)
class Advance:
    time: int
    timeline: str


@dataclass(frozen=True)
class Tick:
    """The engine's clock moves on: only streams without a time column see it."""

    now: int


@dataclass(frozen=True)
class Upsert:
    table: str
    rows: list[Row]


@dataclass(frozen=True)
class Delete:
    table: str
    keys: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Submit:
    label: int
    spec: Spec
    history: str = "new"
    emit: str = "commit"


@dataclass(frozen=True)
class Replace:
    """Another text for the running query with that label; nothing if it is not running."""

    label: int
    spec: Spec


@dataclass(frozen=True)
class Crowd:
    """Many queries at once: enough of them make the engine lay them out in other ways."""

    members: list[Submit]


@dataclass(frozen=True)
class Leave:
    """Cancel those of these queries that are there."""

    labels: list[int]


@dataclass(frozen=True)
class Act:
    """cancel, pause or resume the query with that label; nothing if it is not in a state for it."""

    verb: str
    label: int


Step = Push | Retract | Advance | Tick | Upsert | Delete | Submit | Replace | Crowd | Leave | Act


@dataclass(frozen=True)
class Script:
    streams: list[StreamPlan]
    policy: str
    batch_rows: int
    steps: list[Step] = field(default_factory=list)
    tables: list[TablePlan] = field(default_factory=list)
    #: names of the functions of `functions.py` that queries may call
    functions: tuple[str, ...] = ()


def with_events(script: Script) -> Script:
    """The same with changes by instant for every query."""

    def event(step: Step) -> Step:
        if isinstance(step, Crowd):
            return Crowd([replace(member, emit="event") for member in step.members])
        return replace(step, emit="event") if isinstance(step, Submit) else step

    return replace(script, steps=[event(step) for step in script.steps])


def without_functions(script: Script) -> Script:
    """The same without the queries that call functions of the user."""

    def calls(step: Step) -> bool:
        return isinstance(step, Submit | Replace) and any(f"{name}(" in step.spec.sql for name in FUNCTIONS)

    steps = [
        Crowd([member for member in step.members if not calls(member)]) if isinstance(step, Crowd) else step
        for step in script.steps
    ]
    return replace(script, steps=[step for step in steps if not calls(step)], functions=())


def as_python(script: Script) -> str:
    """The script as calls that can be pasted after `from eddy import Engine`."""
    lines = [f"engine = Engine(policy={script.policy!r}, batch_rows={script.batch_rows})"]
    columns = {stream.name: stream.columns for stream in script.streams}
    for s in script.streams:
        options = f", time={s.time!r}, lateness=timedelta(microseconds={s.lateness_us}), late={s.late!r}, timeline={s.timeline!r}"
        options += "" if s.keep_us is None else f", keep=timedelta(microseconds={s.keep_us})"
        lines.append(f"engine.create_stream({s.name!r}, {s.columns}{options if s.time else ''})")
    for name in script.functions:
        lines.append(f"engine.register({name!r}, {name}, returns={FUNCTIONS[name].returns!r})")
    for t in script.tables:
        columns[t.name] = t.columns
        lines.append(f"engine.create_table({t.name!r}, {t.columns}, key={list(t.key)}, retroactive={t.retroactive})")
    for step in script.steps:
        match step:
            case Push(batches, form, many):
                sent = {name: encode(rows, columns[name], form) for name, rows in batches.items()}
                lines += [f"engine.push_many({sent})"] if many else [f"engine.push({n!r}, {p})" for n, p in sent.items()]
            case Advance(time, timeline):
                lines.append(f"engine.advance({time / MS}, timeline={timeline!r})  # {time} us")
            case Retract(stream, keys, time):
                lines.append(f"engine.retract({stream!r}, {keys}, {time / MS})  # {time} us")
            case Tick(now):
                lines.append(f"now = {now}  # us, read by the engine's clock")
            case Upsert(table, rows):
                lines.append(f"engine.upsert({table!r}, {encode(rows, columns[table], 'dicts')})")
            case Delete(table, keys):
                lines.append(f"engine.delete({table!r}, {keys})")
            case Submit(label, spec, history, emit):
                asked = "" if history == "new" else f", history={history!r}"
                asked += "" if emit == "commit" else f", emit={emit!r}"
                lines.append(f"q{label} = engine.submit({spec.sql!r}, params={spec.params or None}{asked})")
            case Replace(label, spec):
                lines.append(f"engine.replace(q{label}, {spec.sql!r}, params={spec.params or None})")
            case Crowd(members):
                lines += [f"q{m.label} = engine.submit({m.spec.sql!r}, params={m.spec.params or None})" for m in members]
            case Leave(labels):
                lines += [f"engine.cancel(q{label})" for label in labels]
            case Act(verb, label):
                lines.append(f"engine.{verb}(q{label})")
    return "\n".join(lines)
