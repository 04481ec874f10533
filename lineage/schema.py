"""Column types and schemas.

Five column types, all nullable but a stream's time column. Inside the engine every value of every type is one 64-bit
**cell**, so that a page of rows is one `int64[columns, rows]` block and a kernel can take any column:

    int, timestamp   the value (a timestamp is microseconds since 1970 UTC)
    float            its IEEE bits
    bool             0 or 1
    string           its code in the column's dictionary

NULL is a separate byte (1 = NULL); the cell below it is 0. Cells of one column order by `order key`: the cell itself
for int, timestamp and bool, and for floats the bits folded so that integers order like numbers, -0.0 is 0.0 and NaN is
one value above all others (DuckDB's order). Strings order by their text, never by their code.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lineage.errors import SchemaError, did_you_mean

#: The largest and the smallest order key; no cell of an int column is outside.
KEY_MIN = -(2**63)
KEY_MAX = 2**63 - 1


class Type(enum.Enum):
    """The type of a column or expression. NULL is the type of a bare NULL, INTERVAL of an interval literal."""

    INT = "int"
    FLOAT = "float"
    STRING = "string"
    BOOL = "bool"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    NULL = "null"

    @property
    def numeric(self) -> bool:
        return self in (Type.INT, Type.FLOAT)


#: The types that a column can have.
COLUMN_TYPES = frozenset({Type.INT, Type.FLOAT, Type.STRING, Type.BOOL, Type.TIMESTAMP})

#: Microseconds in one unit of a bare number given for a timestamp column; "ns" divides by 1000 instead.
UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}

_TYPE_NAMES = {type_.value for type_ in COLUMN_TYPES}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: Columns of a stream or table.
MAX_COLUMNS = 512


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, type and, for timestamps, the unit in which bare numbers are given."""

    name: str
    type: Type
    #: "s", "ms", "us" or "ns"; only read when `type` is TIMESTAMP
    unit: str = "ms"

    @property
    def declared(self) -> str:
        """The type as a user writes it."""
        if self.type is Type.TIMESTAMP and self.unit != "ms":
            return f"timestamp[{self.unit}]"
        return self.type.value


class Schema:
    """The ordered columns of a stream. Immutable.

    >>> schema = Schema.parse({"sensor": "int", "ts": "timestamp[s]"}, "s")
    >>> schema.names, schema.position("ts"), schema["ts"].unit
    (('sensor', 'ts'), 1, 's')
    """

    __slots__ = ("columns", "names", "_position")

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self.names = tuple(column.name for column in columns)
        self._position = {name: i for i, name in enumerate(self.names)}

    @classmethod
    def parse(cls, declared: Mapping[str, str], owner: str) -> Schema:
        """Read `{name: type}` as users write it; raises `SchemaError` on anything else."""
        if not isinstance(declared, Mapping) or not declared:
            raise SchemaError(f'"{owner}" needs at least one column', hint='columns is a mapping such as {"temp": "float"}')
        if len(declared) > MAX_COLUMNS:
            raise SchemaError(f'"{owner}" has {len(declared)} columns, more than {MAX_COLUMNS}', code="too_many_columns")
        columns = []
        lower: dict[str, str] = {}
        for name, text in declared.items():
            check_name(name, "column")
            if name.lower() in lower:
                raise SchemaError(
                    f'columns "{lower[name.lower()]}" and "{name}" differ only in case', hint="names are not case-sensitive"
                )
            lower[name.lower()] = name
            columns.append(_parse_column(name, text))
        return cls(tuple(columns))

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __getitem__(self, name: str) -> Column:
        return self.columns[self._position[name]]

    def position(self, name: str) -> int:
        return self._position[name]

    def find(self, name: str) -> Column | None:
        """The column of that name in any case, or None: SQL names are not case-sensitive."""
        at = self._position.get(name)
        if at is not None:
            return self.columns[at]
        lowered = name.lower()
        for column in self.columns:
            if column.name.lower() == lowered:
                return column
        return None

    def declared(self) -> dict[str, str]:
        return {column.name: column.declared for column in self.columns}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(self.columns)

    def __repr__(self) -> str:
        return f"Schema({self.declared()})"


def is_name(name: object) -> bool:
    """Whether SQL can write it without quotes."""
    return isinstance(name, str) and _NAME.match(name) is not None and len(name) <= 128


def check_name(name: object, what: str) -> str:
    """A name that SQL can write without quotes; raises `SchemaError` otherwise."""
    if not isinstance(name, str) or not is_name(name):
        raise SchemaError(
            f"{name!r} is not a valid {what} name",
            code="bad_name",
            hint="a letter or _ first, then letters, digits, _; 128 at most",
        )
    return name


def _parse_column(name: str, text: object) -> Column:
    if isinstance(text, str):
        match = re.fullmatch(r"\s*([a-z]+)(?:\[(s|ms|us|ns)\])?\s*", text.lower())
        if match and match[1] in _TYPE_NAMES and (match[2] is None or match[1] == "timestamp"):
            return Column(name, Type(match[1]), match[2] or "ms")
    raise SchemaError(
        f'column "{name}" has the unknown type {text!r}',
        code="unknown_type",
        hint=did_you_mean(str(text), ["int", "float", "string", "bool", "timestamp", "timestamp[s]", "timestamp[us]"]),
    )
