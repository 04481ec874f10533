"""The workloads of the bars: queries, batches of rows that rotate, and the SQL of each query.

    filters     5 int attributes in [0, 100); each query compares each with probability .5, one of < <= > >=
    floats      the same with uniform float values in [0, 100) and distinct float constants
    selective   `id = c AND x >= lo AND x <= hi`, 10,000 ids, ranges a fifth of the values wide
    intervals   `low <= price AND price <= high`: bounds drawn at random (a third of all rows match), or .1 % apart

Different batches rotate: repeating one lets the branch predictor learn it and flatters by 2-4x.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from filters.values.intervals import Intervals, compare, float_key
from lineage.schema import Type

STREAM = "s"
ATTRIBUTES = 5
DOMAIN = 100
IDS = 10_000
N_BATCHES = 16

_OPS = ("<", "<=", ">", ">=")
_PARAMS = tuple(f"p{i}" for i in range(2 * ATTRIBUTES))

Batch = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Comparison:
    column: str
    op: str
    constant: int | float


Query = tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries are conjunctions of comparisons with constants."""

    columns: dict[str, str]
    queries: list[Query]
    batches: list[Batch]

    @property
    def n_queries(self) -> int:
        return len(self.queries)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.batches[0].values())))


def sql(query: Query) -> tuple[str, dict[str, int | float]]:
    """The text, one object for queries of one shape as in a program, so that its parse is cached, and the parameters."""
    where = " AND ".join(f"{c.column} {c.op} :{name}" for name, c in zip(_PARAMS, query))
    text = f"SELECT * FROM {STREAM}" + (f" WHERE {where}" if where else "")
    return sys.intern(text), {name: c.constant for name, c in zip(_PARAMS, query)}


def intervals_of(workload: Workload, query: Query) -> dict[str, Intervals]:
    """The set of values per attribute, as the engine's filters take it."""
    found: dict[str, Intervals] = {}
    for c in query:
        these = compare(Type(workload.columns[c.column]), c.op, c.constant)
        found[c.column] = found[c.column].intersect(these) if c.column in found else these
    return found


def keys_of(workload: Workload, batch: Batch) -> list[dict[str, int]]:
    """The order keys of every row, the input of a per-tuple filter."""
    columns = []
    for name, declared in workload.columns.items():
        values = batch[name].tolist()
        columns.append([float_key(v) for v in values] if declared == "float" else values)
    return [dict(zip(workload.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def filters(
    n_queries: int, n_rows: int, *, seed: int = 3, floats: bool = False, n_batches: int = N_BATCHES, n_shapes: int | None = None
) -> Workload:
    """Five attributes, each compared with probability .5; `n_shapes` bounds the number of different texts."""
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(ATTRIBUTES)]
    shape = (n_queries, ATTRIBUTES)
    compared = (rng.random(shape) < 0.5).tolist()
    ops = rng.integers(0, len(_OPS), shape).tolist()
    if n_shapes is not None:
        # the shapes are the same for every seed, so newcomers bring no new text
        of_shape = np.random.default_rng(0)
        kept = (of_shape.random((n_shapes, ATTRIBUTES)) < 0.5).tolist()
        kept_ops = of_shape.integers(0, len(_OPS), (n_shapes, ATTRIBUTES)).tolist()
        drawn = rng.integers(0, n_shapes, n_queries).tolist()
        compared, ops = [kept[i] for i in drawn], [kept_ops[i] for i in drawn]
    constants = (rng.uniform(0, DOMAIN, shape) if floats else rng.integers(0, DOMAIN, shape)).tolist()
    queries = [
        tuple(Comparison(names[a], _OPS[ops[q][a]], constants[q][a]) for a in range(ATTRIBUTES) if compared[q][a])
        for q in range(n_queries)
    ]
    batches = [
        {name: rng.uniform(0, DOMAIN, n_rows) if floats else rng.integers(0, DOMAIN, n_rows) for name in names}
        for _ in range(n_batches)
    ]
    return Workload(dict.fromkeys(names, "float" if floats else "int"), queries, batches)


def selective(n_queries: int, n_rows: int, *, seed: int = 5, n_batches: int = N_BATCHES) -> Workload:
    """An id and a range a fifth of the values wide."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, IDS, n_queries).tolist()
    lows = rng.uniform(0, DOMAIN, n_queries).tolist()
    queries: list[Query] = [
        (Comparison("id", "=", i), Comparison("x", ">=", low), Comparison("x", "<=", low + DOMAIN / 5))
        for i, low in zip(ids, lows, strict=True)
    ]
    batches = [{"id": rng.integers(0, IDS, n_rows), "x": rng.uniform(0, DOMAIN, n_rows)} for _ in range(n_batches)]
    return Workload({"id": "int", "x": "float"}, queries, batches)


def intervals(n_queries: int, n_rows: int, *, seed: int = 7, width: float | None = None, n_batches: int = N_BATCHES) -> Workload:
    """Ranges of one price; `width` None draws both bounds at random."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, DOMAIN, n_queries)
    high = rng.uniform(0, DOMAIN, n_queries) if width is None else low + width
    queries: list[Query] = [
        (Comparison("price", ">=", lo), Comparison("price", "<=", hi))
        for lo, hi in zip(np.minimum(low, high).tolist(), np.maximum(low, high).tolist(), strict=True)
    ]
    return Workload({"price": "float"}, queries, [{"price": rng.uniform(0, DOMAIN, n_rows)} for _ in range(n_batches)])


def nested() -> tuple[Workload, Mapping[str, int]]:
    """CACQ's five nested queries: a > 90; a > 90 and b > 70; ... and the thresholds. The best order is a, b, c, d, e."""
    thresholds = {"a": 90, "b": 70, "c": 50, "d": 30, "e": 10}
    comparisons = [Comparison(name, ">", value) for name, value in thresholds.items()]
    queries = [tuple(comparisons[: k + 1]) for k in range(len(comparisons))]
    return Workload(dict.fromkeys(thresholds, "int"), queries, []), thresholds
