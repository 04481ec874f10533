"""The built-in functions: the name a user writes, the canonical operator, and the types it takes.

Conditional functions (COALESCE, NULLIF, GREATEST, LEAST) and those whose first argument names a part of a time (EXTRACT,
DATE_TRUNC) have rules of their own in the binder; the rest is this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from lineage.schema import Type
from queries.operand_parser import RESERVED
from queries.vocabulary import AGGREGATES, FUNCTIONS, OPERANDS


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of a built-in function: one set of types each; the first `required` must be given."""

    op: str
    takes: tuple[frozenset[Type], ...]
    required: int
    #: None: the type of the first argument
    returns: Type | None
    usage: str


_NUMBER = frozenset((Type.INT, Type.FLOAT))
_INT = frozenset((Type.INT,))
_STRING = frozenset((Type.STRING,))
_TIMESTAMP = frozenset((Type.TIMESTAMP,))


def _signature(usage: str, takes: tuple[frozenset[Type], ...], returns: Type | None, required: int | None = None) -> Signature:
    op = usage.split("(")[0].lower()
    return Signature(op, takes, len(takes) if required is None else required, returns, usage)


_SIGNATURES = [
    _signature("ABS(number)", (_NUMBER,), None),
    _signature("ROUND(number [, digits])", (_NUMBER, _INT), None, required=1),
    _signature("FLOOR(number)", (_NUMBER,), Type.FLOAT),
    _signature("CEIL(number)", (_NUMBER,), Type.FLOAT),
    _signature("SQRT(number)", (_NUMBER,), Type.FLOAT),
    _signature("POWER(number, number)", (_NUMBER, _NUMBER), Type.FLOAT),
    _signature("EXP(number)", (_NUMBER,), Type.FLOAT),
    _signature("LN(number)", (_NUMBER,), Type.FLOAT),
    _signature("LOWER(text)", (_STRING,), Type.STRING),
    _signature("UPPER(text)", (_STRING,), Type.STRING),
    _signature("LENGTH(text)", (_STRING,), Type.INT),
    _signature("SUBSTR(text, from [, count])", (_STRING, _INT, _INT), Type.STRING, required=2),
    _signature("TRIM(text)", (_STRING,), Type.STRING),
    _signature("LTRIM(text)", (_STRING,), Type.STRING),
    _signature("RTRIM(text)", (_STRING,), Type.STRING),
    _signature("REPLACE(text, what, by)", (_STRING, _STRING, _STRING), Type.STRING),
    _signature("POSITION(what IN text)", (_STRING, _STRING), Type.INT),
    _signature("SPLIT_PART(text, separator, n)", (_STRING, _STRING, _INT), Type.STRING),
    _signature("STRFTIME(timestamp, 'format')", (_TIMESTAMP, _STRING), Type.STRING),
    _signature("EPOCH_MS(timestamp)", (_TIMESTAMP,), Type.INT),
]

SIGNATURES = {signature.op: signature for signature in _SIGNATURES}
SIGNATURES |= {"ceiling": SIGNATURES["ceil"], "pow": SIGNATURES["power"], "substring": SIGNATURES["substr"]}

#: Functions with a rule of their own, with how to write them.
SPECIAL = {
    "coalesce": "COALESCE(a, b, ...)",
    "nullif": "NULLIF(a, b)",
    "greatest": "GREATEST(a, b, ...)",
    "least": "LEAST(a, b, ...)",
    "extract": "EXTRACT(hour FROM ts)",
    "date_trunc": "DATE_TRUNC('hour', ts)",
}
_BUILT_IN = {*SIGNATURES, *SPECIAL, "cast", "try_cast", "interval"}


def is_reserved(name: str) -> bool:
    """Whether a registered function cannot have that name: it is built in, or refused by name.

    >>> is_reserved("Abs"), is_reserved("count"), is_reserved("risky")
    (True, True, False)
    """
    upper = name.upper()
    return name.lower() in _BUILT_IN or any(upper in words for words in (AGGREGATES, FUNCTIONS, OPERANDS, RESERVED))
