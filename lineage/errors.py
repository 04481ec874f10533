"""The one error tree: every mistake a user can make is an `EddyError` with a stable `code`.

An error states the *fact* (lower case, no full stop), and where it helps the *detail* and a *hint* on what to do.
SQL errors add `line`, `column` and the excerpt; row errors add `row` and `column`. Whoever raises one has changed
nothing yet: the callers check first and act after. Broken invariants are not here; they are `AssertionError`s.
`StorageError` is the one exception: a disk may fail in the middle, and then says what became of the work.
"""

from __future__ import annotations


class EddyError(Exception):
    """Base of all errors a caller can provoke; `str(error)` is fact, place and hint on one line each."""

    default_code = "error"

    def __init__(self, fact: str, *, code: str | None = None, detail: str = "", hint: str = "") -> None:
        self.code = code or self.default_code
        self.fact = fact
        self.detail = detail
        self.hint = hint
        super().__init__(fact)

    def place(self) -> str:
        """Where it happened, as words; empty when the error has no place."""
        return ""

    def __str__(self) -> str:
        lines = [self.fact + (f" ({place})" if (place := self.place()) else "")]
        if self.detail:
            lines.append(self.detail)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class QueryError(EddyError):
    """The text of a query cannot be accepted; `line` and `column` count from 1 and point into that text."""

    default_code = "bad_query"

    def __init__(
        self, fact: str, *, code: str | None = None, detail: str = "", hint: str = "", line: int | None = None,
        column: int | None = None, excerpt: str = "",
    ) -> None:  # fmt: skip
        super().__init__(fact, code=code, detail=detail, hint=hint)
        self.line = line
        self.column = column
        self.excerpt = excerpt

    def place(self) -> str:
        if self.line is None:
            return ""
        near = f", near {self.excerpt!r}" if self.excerpt else ""
        return f"line {self.line}, column {self.column}{near}"


class SchemaError(EddyError):
    """A stream or table definition is not valid."""

    default_code = "bad_schema"


class RowError(EddyError):
    """Rows do not fit their stream; `row` counts from 0 within the call, `column` is the column's name."""

    default_code = "bad_row"

    def __init__(
        self, fact: str, *, code: str | None = None, detail: str = "", hint: str = "", row: int | None = None,
        column: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(fact, code=code, detail=detail, hint=hint)
        self.row = row
        self.column = column

    def place(self) -> str:
        row = [] if self.row is None else [f"row {self.row}"]
        return ", ".join(row if self.column is None else [*row, f'column "{self.column}"'])


class NotFoundError(EddyError):
    """The named stream, table, query or row does not exist."""

    default_code = "not_found"


class InUseError(EddyError):
    """The thing is still read by queries, which the detail lists."""

    default_code = "in_use"


class ConflictError(EddyError):
    """The name is taken, or the engine is not in a state that allows the call."""

    default_code = "conflict"


class GoneError(EddyError):
    """A cursor points before what the result log still holds."""

    default_code = "gone"


class LimitError(EddyError):
    """A bound of the engine was reached; the fact names the bound."""

    default_code = "limit"


class StorageError(EddyError):
    """The data directory cannot be used as asked; `file` is relative to it, `offset` counts bytes from its start."""

    default_code = "storage"

    def __init__(
        self, fact: str, *, code: str | None = None, detail: str = "", hint: str = "", file: str = "", offset: int | None = None
    ) -> None:
        super().__init__(fact, code=code, detail=detail, hint=hint)
        self.file = file
        self.offset = offset

    def place(self) -> str:
        if not self.file:
            return ""
        return self.file if self.offset is None else f"{self.file}, byte {self.offset}"


def did_you_mean(name: str, known: list[str]) -> str:
    """A hint that names the nearest known word, or lists what there is.

    >>> did_you_mean("temprature", ["sensor", "temperature"])
    'did you mean "temperature"?'
    """
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{close[0]}"?'
    if not known:
        return ""
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"there are: {shown}"
