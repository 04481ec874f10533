"""Logs on standard error, a line an event: text for people, or JSON for machines.

    2026-01-31T12:00:00.000Z info eddy.server: serving url=http://127.0.0.1:8000
    {"time": "2026-01-31T12:00:00.000Z", "level": "info", "logger": "eddy.server", "message": "serving", "url": ..}

Facts are fields (`extra={..}`), not words in the message. Nothing is logged for each row, and no header or secret ever.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from api.base.jsons import to_json

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def _time(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields that the caller gave as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _PLAIN}


class TextFormatter(logging.Formatter):
    """Formats a log record as a line of text for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}{fields}"
        # a message that came from outside must not look like two
        line = line.replace("\r", "\\r").replace("\n", "\\n")
        return line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


class JsonFormatter(logging.Formatter):
    """Formats a log record as a line of JSON for machines."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        facts |= {"message": record.getMessage(), **_fields(record)}
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        return to_json(facts).decode()


def set_up(format_: str, level: str) -> None:
    """Send all logs of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format_ == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # it writes a line for every request that is not HTTP, which anybody can send
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
