"""The inputs of a query: what each FROM item reads, through which window, and whether they can stand together.

    one stream, any tables     any window; without one the query is a stream
    several streams            each has a window that ends: [RANGE w], [ROWS n] or [NOW]
    tables                     no window, with streams or alone

The streams of one query are of one timeline; the engine, which knows timelines, checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lineage.errors import did_you_mean
from lineage.schema import Schema
from queries.bound import BoundInput, Readable
from queries.literals import param_rows, param_value, param_window
from queries.syntax import ParsedQuery, RowsWindow, Window, WindowParam
from windows.spec import FOREVER, WindowKind, WindowSpec

_CHOICES = "choose [RANGE 5 MINUTES], [ROWS 100] or [NOW]"


def bind_inputs(
    parsed: ParsedQuery,
    lookup: Callable[[str], Readable | None],
    params: Mapping[str, object],
    known_names: Callable[[], list[str]] | None,
) -> tuple[BoundInput, ...]:
    """The inputs in the order of FROM; raises `QueryError` for names, windows and combinations that do not exist."""
    found: list[BoundInput] = []
    offset = 0
    for number, item in enumerate(parsed.from_items):
        readable = lookup(item.name)
        if readable is None:
            hint = did_you_mean(item.name, known_names() if known_names else [])
            raise parsed.error_at_input(number, f'stream "{item.name}" does not exist', "unknown_stream", hint)
        if readable.is_table and item.window_span is not None:
            hint = "only a stream has a window; a table counts as it is"
            raise parsed.error_at_window(number, f'table "{item.name}" takes no window', "table_window", hint)
        window = WindowSpec.unbounded() if readable.is_table else _bind_window(parsed, item.window, readable.schema, params)
        found.append(BoundInput(item.alias or item.name, item.name, readable, window, offset))
        offset += len(readable.schema)
    _check_windows(parsed, found)
    return tuple(found)


def _bind_window(parsed: ParsedQuery, window: Window, schema: Schema, params: Mapping[str, object]) -> WindowSpec:
    if isinstance(window, WindowSpec):
        return window
    source = parsed.source
    if isinstance(window, WindowParam):
        return param_window(source, window, param_value(source, window, window.name, params))
    width = FOREVER if window.width is None else _bind_window(parsed, window.width, schema, params).width_us
    rows = window.rows
    if isinstance(rows, WindowParam):
        rows = param_rows(source, rows, param_value(source, rows, rows.name, params))
    return WindowSpec.newest(rows, _partition(parsed, window, schema), width)


def _partition(parsed: ParsedQuery, window: RowsWindow, schema: Schema) -> list[int]:
    found = []
    for name in window.partition:
        column = schema.find(name.name)
        if column is None:
            fact, hint = f'column "{name.name}" of PARTITION BY does not exist', did_you_mean(name.name, list(schema.names))
            raise parsed.source.error(fact, name.start, name.end, "unknown_column", hint)
        found.append(schema.position(column.name))
    return found


def _check_windows(parsed: ParsedQuery, inputs: list[BoundInput]) -> None:
    streams = [number for number, item in enumerate(inputs) if not item.is_table]
    if len(streams) < 2:
        return
    for number in streams:
        window = inputs[number].window
        if window.is_stream:
            fact = f'stream "{inputs[number].name}" needs a window in a join of streams'
            raise parsed.error_at_input(number, fact, "missing_window", _CHOICES)
        if window.kind is WindowKind.UNBOUNDED:
            fact = "[RANGE UNBOUNDED] cannot stand in a join of streams"
            raise parsed.error_at_window(number, fact, "unbounded_join", f"it would keep every row for ever: {_CHOICES}")
