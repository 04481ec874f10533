"""Bounds of an engine's logs: rows of a stream, bytes of a timeline (kept by `eddy/history/retention.py`)."""

from __future__ import annotations

from dataclasses import dataclass

from lineage.errors import EddyError

#: Rows of one stream that the log holds. 262,144 rows of five columns are 12 MB: they stay in the last cache level.
LOG_ROWS = 262_144
#: Bytes that the log of one timeline holds: twenty streams of such rows.
LOG_BYTES = 256 << 20


@dataclass(slots=True)
class LogBounds:
    """The bounds of all logs of one engine; a single shared object."""

    rows: int
    bytes: int

    def check(self) -> None:
        """Raise unless both bounds are whole numbers in their ranges."""
        for name, value, most in (("log_rows", self.rows, 30), ("log_bytes", self.bytes, 50)):
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1 << most:
                raise EddyError(f"{name} is {value!r}", code="bad_option", hint=f"a whole number from 1 to 2**{most}")
