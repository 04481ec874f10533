"""Conversion of raw rows to declared types, with a reason for each row that is refused.

A raw table has the source's columns and four of ours: `_file` (its place among the files, from 1), `_block` and `_row` (which
together order the rows of a file as they stood), and `_text` (the line, or the row as JSON, for the quarantine). Cleaning
adds `_us`, the event time, and `_reason`: NULL for a row that is fine, else the first thing that is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lineage.csv_cells import unit_of
from lineage.errors import SchemaError, did_you_mean
from lineage.schema import Schema, Type
from pipeline import csv_sql
from pipeline.source_files import INTEL_COLUMNS, StreamFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The part of a CSV column's values that may be of another type than the rest: these are quarantined.
_STRAY = 0.01
#: The first and the last microsecond of the years 1 to 9999.
_MIN_US, _MAX_US = -62_135_596_800_000_000, 253_402_300_799_999_999
_UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


def read_raw(spark: SparkSession, source: StreamFiles, scratch: Path) -> DataFrame:
    """Return the raw table of a stream's files."""
    paths = [_escaped(link) for link in _linked(source, scratch)]
    ours = [
        "CAST(split_part(_metadata.file_name, '.', 1) AS INT) AS _file",
        "_metadata.file_block_start AS _block",
        "monotonically_increasing_id() AS _row",
    ]
    columns = [f"`{name}`" for name in source.stored]
    if source.format == "parquet":
        return spark.read.parquet(*paths).selectExpr(
            *columns, *ours, f"to_json(struct({', '.join(columns)})) AS _text", "false AS _torn"
        )  # fmt: skip
    if source.format == "csv":
        form = source.form
        columns = [f"`{name}`" for name in source.stored if name != source.made]
        schema = ", ".join(f"{column} STRING" for column in columns) + ", _line STRING"
        lines = spark.read.csv(
            paths, schema, header=not form.names, sep=form.delimiter, quote='"', escape='"', mode="PERMISSIVE",
            columnNameOfCorruptRecord="_line", enforceSchema=True,
        )  # fmt: skip
        text = f"coalesce(_line, to_csv(struct({', '.join(columns)})))"
        parts = [f"{csv_sql.made(form, [f'`{part}`' for part in source.parts])} AS `{source.made}`"] if source.parts else []
        return lines.selectExpr(*columns, *parts, *ours, f"{text} AS _text", "_line IS NOT NULL AS _torn")
    # a text of nothing is a value that is missing; more than one space in a row means that too
    fields = spark.read.text(paths).selectExpr("rtrim(value) AS _text", *ours).selectExpr("*", "split(_text, ' ') AS _fields")
    picked = [f"nullif(try_element_at(_fields, {n}), '') AS {name}" for n, name in enumerate(list(INTEL_COLUMNS)[1:], 3)]
    moment = "concat_ws(' ', try_element_at(_fields, 1), try_element_at(_fields, 2)) AS ts"
    return fields.selectExpr(moment, *picked, "_file", "_block", "_row", "_text", "size(_fields) <> 8 AS _torn")


def _linked(source: StreamFiles, scratch: Path) -> list[Path]:
    """Return links to the files, named by their places, because Spark changes some characters of a file name."""
    folder = scratch / f"files of {source.stream}"
    folder.mkdir()
    links = []
    for n, file in enumerate(source.files, 1):
        # the ending tells whether it is compressed
        link = folder / f"{n}{file.suffix}"
        link.symlink_to(file)
        links.append(link)
    return links


def _escaped(path: Path) -> str:
    """Return a path in which Spark finds no wildcards."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))


def columns_of(
    raw: DataFrame, source: StreamFiles, declared: Mapping[str, str] | None, time: str | None,
    types: Mapping[str, str] | None = None,
) -> tuple[Schema, str]:  # fmt: skip
    """The schema of a stream and its time column: as declared, else by what the values look like, but for `types`."""
    if declared is not None:
        if unknown := [name for name in declared if name not in source.stored]:
            raise SchemaError(
                f'stream "{source.stream}" has no column "{unknown[0]}"', hint=did_you_mean(unknown[0], list(source.stored))
            )
        found = dict(declared)
    elif source.format == "intel":
        found = dict(INTEL_COLUMNS)
    else:
        found = _inferred(raw, source)
    for name, kind in (types or {}).items():
        if name not in found:
            raise SchemaError(f'stream "{source.stream}" has no column "{name}"', hint=did_you_mean(name, list(found)))
        found[name] = kind
    time = source.made or time or _only_time(found, source.stream)
    if time not in found:
        raise SchemaError(f'stream "{source.stream}" has no column "{time}"', hint=did_you_mean(time, list(found)))
    if found[time] in ("int", "float"):
        found[time] = f"timestamp[{_unit(raw, time)}]"
    schema = Schema.parse(found, source.stream)
    if schema[time].type is not Type.TIMESTAMP:
        raise SchemaError(
            f'the time column "{time}" of stream "{source.stream}" is {found[time]}',
            hint="--time names another, --time-format says how times are written",
        )
    return schema, time


def _only_time(found: Mapping[str, str], stream: str) -> str:
    times = [name for name, word in found.items() if word.startswith("timestamp")]
    if len(times) != 1:
        raise SchemaError(
            f'which column of stream "{stream}" is the time is not plain', hint=f"--time is one of {', '.join(times or found)}"
        )
    return times[0]


def _inferred(raw: DataFrame, source: StreamFiles) -> dict[str, str]:
    """Types of columns: of typed ones their own, of text in CSV the narrowest that nearly all values have."""
    words = {"text": "string", "nanoseconds": "timestamp"}
    if source.format == "parquet":
        return {name: words.get(kind, kind) for name, kind in source.stored.items()}
    kinds = (Type.INT, Type.FLOAT, Type.BOOL, Type.TIMESTAMP)
    counts = []
    for name in source.stored:
        word = f"`{name}`"
        value = {kind: csv_sql.typed(word, kind, "ms", source.form, name == source.made) for kind in kinds}
        counts.append(f"count({word}) AS `{name}`")
        counts += [f"count({value[kind]}) AS `{name} {kind.value}`" for kind in kinds]
        counts += [f"count_if({'' if one else 'NOT '}{value[Type.BOOL]}) AS `{name} {one}`" for one in (True, False)]
        counts.append(f"count_if(lower({word}) IN ('true', 'false')) AS `{name} plain`")
    cells = [f"{csv_sql.cell(f'`{name}`', Type.INT, source.form)} AS `{name}`" for name in source.stored]
    row = raw.where("NOT _torn").selectExpr(*cells).selectExpr(*counts).first()
    assert row is not None
    return {name: _narrowest(row, name, [kind.value for kind in kinds]) for name in source.stored}


def _narrowest(counts: Any, name: str, words: list[str]) -> str:
    present = counts[name]
    fitting = [word for word in words if present and counts[f"{name} {word}"] >= (1 - _STRAY) * present]
    both = counts[f"{name} True"] and counts[f"{name} False"]
    if "bool" in fitting and not both and counts[f"{name} plain"] < counts[f"{name} bool"]:
        # words such as F stand for something else unless there are T too
        fitting.remove("bool")
    return next(iter(fitting), "string")


def _unit(raw: DataFrame, time: str) -> str:
    """The unit of bare numbers: the one that puts the least of them into the years from 2001 on, else milliseconds."""
    row = raw.selectExpr(f"min(try_cast(`{time}` AS DOUBLE)) AS least").first()
    least = row["least"] if row is not None and row["least"] is not None else 0
    return unit_of(least)


def clean(raw: DataFrame, source: StreamFiles, schema: Schema, time: str) -> DataFrame:
    """The columns by their types, `_us` and `_reason`, beside `_file _block _row _text`."""
    typed, reasons = [], ["WHEN _torn THEN 'wrong number of fields'"]
    if source.format == "intel":
        reasons.append("WHEN NOT coalesce(try_cast(moteid AS BIGINT) BETWEEN 1 AND 64, true) THEN 'no such mote'")
    for column in schema.columns:
        kind = source.stored[column.name]
        given = f"`{column.name}`"
        value = _converted(given, kind, column.type, column.unit)
        if source.format == "csv":
            given = csv_sql.cell(given, column.type, source.form)
            value = csv_sql.typed(given, column.type, column.unit, source.form, column.name == source.made)
        if value is None:
            raise SchemaError(f'column "{column.name}" of stream "{source.stream}" is {kind}, which is no {column.declared}')
        typed.append(f"{value} AS `{column.name}`")
        stands_for = "a time" if column.type is Type.TIMESTAMP else column.type.value
        if column.name == time:
            reasons.append(f"WHEN {given} IS NULL THEN 'no time'")
        reasons.append(f"WHEN {given} IS NOT NULL AND ({value}) IS NULL THEN '{column.name} is not {stands_for}'")
    return raw.selectExpr(*typed, "_file", "_block", "_row", "_text", f"CASE {' '.join(reasons)} END AS _reason").selectExpr(
        "*", f"unix_micros(`{time}`) AS _us"
    )  # fmt: skip


def _converted(value: str, kind: str, wanted: Type, unit: str) -> str | None:
    """Return the SQL that converts a stored kind to the wanted type, NULL where a value does not fit; None if no value can."""
    if wanted is Type.TIMESTAMP:
        return _as_time(value, kind, unit)
    if wanted is Type.STRING:
        return f"CAST({value} AS STRING)" if kind != "nanoseconds" else None
    if wanted is Type.FLOAT and kind in ("text", "int", "float"):
        return f"try_cast({value} AS DOUBLE)"
    if wanted is Type.INT and kind in ("text", "int"):
        return f"try_cast({value} AS BIGINT)"
    if wanted is Type.INT and kind == "float":
        return f"IF({value} = floor({value}), try_cast({value} AS BIGINT), NULL)"
    if wanted is Type.BOOL and kind in ("text", "bool"):
        return f"try_cast({value} AS BOOLEAN)"
    if wanted is Type.BOOL and kind == "int":
        return f"CASE {value} WHEN 0 THEN false WHEN 1 THEN true END"
    return None


def _as_time(value: str, kind: str, unit: str) -> str | None:
    number = value if kind != "text" else f"try_cast({value} AS DOUBLE)"
    if kind == "nanoseconds":
        us = f"({value} - pmod({value}, 1000L)) div 1000L"
    elif kind == "timestamp":
        us = f"unix_micros(CAST({value} AS TIMESTAMP))"
    elif kind == "int" and unit == "ns":
        us = f"({value} - pmod({value}, 1000L)) div 1000L"
    elif kind == "int":
        us = f"try_multiply(CAST({value} AS BIGINT), {_UNIT_US[unit]}L)"
    elif kind in ("float", "text"):
        factor = "/ 1000.0D" if unit == "ns" else f"* {_UNIT_US[unit]}.0D"
        us = f"try_cast(rint({number} {factor}) AS BIGINT)"
    else:
        return None
    if kind == "text":
        us = f"coalesce({us}, unix_micros(try_cast({value} AS TIMESTAMP)))"
    return f"IF({us} BETWEEN {_MIN_US}L AND {_MAX_US}L, timestamp_micros({us}), NULL)"
