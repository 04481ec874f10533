"""The table of strict functions: canonical `op` -> how to compute it.

A strict function gets all its arguments computed, none of them of type NULL, and gives NULL where any is NULL.
What must not compute all its arguments (AND, CASE ..) or treats NULL as a value (IN, GREATEST ..) is in
`filters/expressions/evaluate.py`. An `op` is in exactly one of the two tables; a name in neither is a mistake of the binder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from filters.expressions import number_functions, text_functions, time_functions
from filters.values import comparisons
from filters.values.casts import cast
from filters.values.distinct_calls import map_distinct
from filters.values.vector import Frame, Vector
from lineage.schema import Type

#: `(type of the result, arguments, frame that counts errors) -> result`
Function = Callable[[Type, Sequence[Vector], Frame], Vector]


def _per_distinct(function: Callable[..., Any]) -> Function:
    def lifted(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
        return map_distinct(type, function, args, frame)

    return lifted


def _comparison(op: str) -> Function:
    def compared(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
        return comparisons.compare(op, args)

    return compared


FUNCTIONS: dict[str, Function] = {
    "+": number_functions.add,
    "-": number_functions.subtract,
    "*": number_functions.multiply,
    "/": number_functions.divide,
    "%": number_functions.modulo,
    "neg": number_functions.negate,
    "abs": number_functions.absolute,
    "round": number_functions.round_half_away,
    "floor": number_functions.floor,
    "ceil": number_functions.ceil,
    "sqrt": number_functions.square_root,
    "power": number_functions.power,
    "exp": number_functions.exponential,
    "ln": number_functions.logarithm,
    "||": _per_distinct(text_functions.concatenate),
    "lower": _per_distinct(text_functions.lower),
    "upper": _per_distinct(text_functions.upper),
    "length": _per_distinct(len),
    "substr": _per_distinct(text_functions.substr),
    "trim": _per_distinct(text_functions.trim),
    "ltrim": _per_distinct(text_functions.ltrim),
    "rtrim": _per_distinct(text_functions.rtrim),
    "replace": _per_distinct(text_functions.replace),
    "position": _per_distinct(text_functions.position),
    "split_part": _per_distinct(text_functions.split_part),
    "like": _per_distinct(text_functions.like),
    "strftime": _per_distinct(time_functions.strftime),
    "epoch_ms": time_functions.epoch_ms,
    "cast": cast,
    **{op: _comparison(op) for op in comparisons.OPERATORS},
    **{f"extract:{part}": partial(time_functions.extract, part) for part in time_functions.EXTRACT_PARTS},
    **{f"date_trunc:{unit}": partial(time_functions.date_trunc, unit) for unit in time_functions.TRUNC_UNITS},
}
