"""The cost of a plan per unit of time, in rows handled (U 5.4.1), by which plans and strategies are chosen.

    operator             cost of processing                       with negative tuples
    select, union        lambda1 + lambda2                        twice
    join, intersect      lambda1 N2 + lambda2 N1                  twice
    delta-star           lambda1 No / 2                           twice
    distinct             lambda1 No / 2, and a look at N1 for each result that ends      twice
    group-by             2 lambda1 C                              the same: every row changes its group twice either way
    minus                2 lambda1 log2 d1 + 2 lambda2 log2 d2, and a look at N1 / d1 rows for each premature end

lambda: rows a unit of time into an input or out; N: rows alive; d: distinct values; C: cost of recomputing one aggregate. The
paper prints lambda1 N1 + lambda2 N2 for the join; a row probes the state of the *other* input (U 2.1), which is what is counted
here. The two agree where the inputs are alike.

The upkeep of a state is the second part. It depends on the structure, as U 2.3.3 and 5.3.2 describe it:

    structure                 insertions            scheduled ends          premature ends (rate lambda-)
    list    (direct)          lambda                N / eager               lambda- N / 2
    hash    (negative)        lambda                lambda                  lambda-
    fifo    (update-pattern)  lambda                lambda                  lambda- N / 2
    calendar by end           lambda N / 2k         lambda                  lambda- N / 2k
    calendar by insertion     lambda                lambda + N / (k lazy)   lambda- N / 2k

k: partitions; eager, lazy: how often due rows are looked for. The negative approach also keeps every base window, to know when
to send: 2 lambda more for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lineage.errors import EddyError, did_you_mean
from windows import patterns

OPERATORS = ("select", "union", "join", "intersect", "distinct", "delta-star", "group-by", "minus")
STRUCTURES = ("list", "hash", "fifo", "calendar by end", "calendar by insertion")


@dataclass(frozen=True, slots=True)
class Load:
    """The expected rates and sizes of one operator, with an entry for each input."""

    #: rows that come, a unit of time
    rates: tuple[float, ...]
    #: rows alive
    sizes: tuple[float, ...]
    output_rate: float = 0.0
    output_size: float = 0.0
    #: distinct values alive
    distinct: tuple[float, ...] = (1.0, 1.0)
    #: results that end before they are scheduled to, a unit of time
    premature_rate: float = 0.0
    #: recomputing one aggregate
    aggregate_cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The parameters of states: partitions, and how often due rows are looked for."""

    partitions: int = 10
    eager_interval: float = 1.0
    lazy_interval: float = 1.0


def processing_cost(operator: str, load: Load, *, negative: bool) -> float:
    """Return the cost of processing arrivals and, under `negative`, the ends that arrive."""
    if operator not in OPERATORS:
        raise EddyError(f'there are no costs of "{operator}"', code="bad_option", hint=did_you_mean(operator, list(OPERATORS)))
    first, second = _both(load.rates)
    size, other = _both(load.sizes)
    twice = 2.0 if negative else 1.0
    match operator:
        case "select" | "union":
            return twice * (first + second)
        case "join" | "intersect":
            return twice * (first * other + second * size)
        case "delta-star":
            return twice * first * load.output_size / 2
        case "distinct":
            return twice * (first * load.output_size / 2 + load.output_rate * size / max(1.0, load.output_size))
        case "group-by":
            return 2 * first * load.aggregate_cost
    values, others = _both(load.distinct)
    counts = 2 * first * math.log2(max(1.0, values)) + 2 * second * math.log2(max(1.0, others))
    return counts + load.premature_rate * size / max(1.0, values)


def upkeep_cost(structure: str, rate: float, size: float, upkeep: Upkeep, *, premature_rate: float = 0.0) -> float:
    """Return the cost of insertions into one state and of its ends."""
    part = size / upkeep.partitions
    match structure:
        case "list":
            return rate + size / upkeep.eager_interval + premature_rate * size / 2
        case "hash":
            return rate + rate + premature_rate
        case "fifo":
            return rate + rate + premature_rate * size / 2
        case "calendar by end":
            return rate * max(1.0, part / 2) + rate + premature_rate * part / 2
        case "calendar by insertion":
            return rate + rate + part / upkeep.lazy_interval + premature_rate * part / 2
    raise EddyError(f'there is no structure "{structure}"', code="bad_option", hint=did_you_mean(structure, list(STRUCTURES)))


def structure_of(expiry: str, pattern: str, *, lazy: bool, frequent_premature: bool = False) -> str:
    """Return the structure in which a strategy keeps rows of a pattern (U 5.3.2); `lazy`: the operator need not react to ends."""
    if expiry == "negative":
        return "hash"
    if expiry == "direct":
        return "list"
    if expiry != "update-pattern":
        raise EddyError(
            f'the paper has no costs of "{expiry}"', code="bad_option", hint='"negative", "direct" or "update-pattern"'
        )
    if pattern in (patterns.MONOTONIC, patterns.WEAKEST):
        return "fifo"
    if pattern == patterns.STRICT and frequent_premature:
        return "hash"
    return "calendar by insertion" if lazy else "calendar by end"


#: The operators that need not react to ends.
_LAZY = ("join", "intersect")
#: Those that keep their results as well.
_KEEPS_OUTPUT = ("distinct", "delta-star", "minus")


def operator_cost(
    expiry: str, operator: str, input_patterns: Sequence[str], load: Load, upkeep: Upkeep, *, frequent_premature: bool = False
) -> float:
    """Return the cost of processing and upkeep of one operator under `negative`, `direct` or `update-pattern`."""
    cost = processing_cost(operator, load, negative=expiry == "negative")
    if operator in ("select", "union"):
        return cost
    if operator != "delta-star":
        for pattern, rate, size in zip(input_patterns, load.rates, load.sizes):
            structure = structure_of(expiry, pattern, lazy=operator in _LAZY, frequent_premature=frequent_premature)
            cost += upkeep_cost(structure, rate, size, upkeep)
    if operator in _KEEPS_OUTPUT:
        pattern = patterns.STRICT if operator == "minus" or patterns.STRICT in input_patterns else patterns.WEAK
        structure = structure_of(expiry, pattern, lazy=False, frequent_premature=frequent_premature)
        cost += upkeep_cost(structure, load.output_rate, load.output_size, upkeep, premature_rate=load.premature_rate)
    return cost


def _both(values: tuple[float, ...]) -> tuple[float, float]:
    return values[0], values[1] if len(values) > 1 else 0.0
