"""Definitions of merged streams: what their users write, checked and with every option written out (semantics 36)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from eddy.base.description import MergedStream
from eddy.catalog.definitions import ARRIVAL, MAIN, stream_definition
from eddy.merges.cases import declared_case
from lineage.errors import SchemaError, did_you_mean
from lineage.schema import Schema, check_name
from lineage.times import duration_us

#: Inputs of one merge at most.
MAX_INPUTS = 64
POLICIES = ("stable", "first", "leader", "highest", "unfrozen", "half-frozen")
ORDERS = (None, "strict", "ordered", "any")
MISSING = ("leader", "any")


def merge_definition(
    name: str,
    columns: Mapping[str, str],
    *,
    time: str,
    inputs: Any = ("gw1", "gw2"),
    unique: Any = False,
    missing: str = "leader",
    key: Any = None,
    end: Any = None,
    case: str = "auto",
    policy: str = "stable",
    order: str | None = None,
    lateness: Any = 0,
    lag: Any = 0,
    timeline: str = MAIN,
    keep: Any = None,
) -> MergedStream:
    """Check the options of a merged stream, and return it as its users see it."""
    if time is None:
        raise SchemaError(f'merge "{name}" has no time column', code="no_time", hint="rows are merged by their times: time=...")
    if timeline == ARRIVAL:
        raise SchemaError(f'timeline "{ARRIVAL}" is for streams without a time column')
    stream = stream_definition(name, columns, time, lateness, "adjust", timeline, keep, key, end)
    identity = _identity(stream.columns, name, unique, (stream.time, stream.end))
    _check_word("missing", missing, MISSING)
    _check_word("order", order, ORDERS)
    _check_policy(policy)
    if identity is None and (missing == "any" or policy != "stable"):
        what = f'missing="{missing}"' if missing == "any" else f'policy="{policy}"'
        fact = f"{what} needs rows that can be told apart"
        raise SchemaError(fact, code="needs_unique", hint="unique=True, or the columns that name an event: unique=[..]")
    if stream.lateness_us and order is not None:
        fact = f'lateness is for inputs without a declared order, not for order="{order}"'
        raise SchemaError(fact, code="bad_option", hint="leave out lateness, or order")
    chosen = declared_case(case, order, identity is not None, stream.end is not None, policy, missing)
    return MergedStream(
        **{one.name: getattr(stream, one.name) for one in fields(stream)},
        inputs=_inputs(name, inputs), unique=identity, missing=missing, case=chosen.case, policy=policy, order=order,
        lag_us=duration_us(lag),
    )  # fmt: skip


def _identity(
    columns: Mapping[str, str], merge: str, unique: Any, apart: tuple[str | None, str | None]
) -> tuple[str, ...] | None:  # fmt: skip
    """The columns beside the time that name an event; None if equal rows are several events."""
    time, end = apart
    if unique is False:
        return None
    if unique is True:
        return tuple(name for name in columns if name not in apart)
    if not isinstance(unique, list | tuple) or not unique:
        raise SchemaError(f"unique is {unique!r}", code="bad_unique", hint='False, True, or columns such as ["sensor"]')
    schema = Schema.parse(columns, merge)
    found: list[str] = []
    for name in unique:
        column = schema.find(name) if isinstance(name, str) else None
        if column is None:
            hint = did_you_mean(str(name), list(schema.names))
            raise SchemaError(f'column "{name}" of unique does not exist in "{merge}"', code="bad_unique", hint=hint)
        if column.name == end:
            fact = f'"{end}" is the end of a row, which is no part of what an event is'
            raise SchemaError(fact, code="bad_unique", hint="leave it out: inputs may differ in it for a while")
        if column.name in found:
            raise SchemaError(f'column "{column.name}" is twice in unique', code="bad_unique", hint="name each column once")
        if column.name != time:
            found.append(column.name)
    return tuple(found)


def _inputs(merge: str, inputs: Any) -> tuple[str, ...]:
    if not isinstance(inputs, list | tuple) or not inputs:
        raise SchemaError(f'merge "{merge}" has no inputs', code="bad_inputs", hint='inputs=("gw1", "gw2")')
    if len(inputs) > MAX_INPUTS:
        raise SchemaError(f'merge "{merge}" has {len(inputs)} inputs, more than {MAX_INPUTS}', code="bad_inputs")
    for name in inputs:
        check_name(name, "input")
    if len({name.lower() for name in inputs}) < len(inputs):
        raise SchemaError(f'an input of merge "{merge}" is named twice', code="bad_inputs", hint="names are not case-sensitive")
    return tuple(inputs)


def _check_word(option: str, given: Any, words: tuple[str | None, ...]) -> None:
    if given not in words:
        named = " or ".join("None" if word is None else f'"{word}"' for word in words)
        raise SchemaError(f"{option} is {given!r}", code="bad_option", hint=named)


def _check_policy(policy: Any) -> None:
    if isinstance(policy, str) and policy.startswith("fraction:"):
        try:
            share = float(policy.removeprefix("fraction:"))
        except ValueError:
            share = 0.0
        if 0 < share <= 1:
            return
        raise SchemaError(f"policy is {policy!r}", code="bad_option", hint='a share of the inputs such as "fraction:0.5"')
    _check_word("policy", policy, (*POLICIES, "fraction:f"))
