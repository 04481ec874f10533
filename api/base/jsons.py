"""The JSON encoder of the service: times are ISO 8601 with a Z; NaN and infinities are null."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def to_json(value: Any) -> bytes:
    """Encode a value as JSON."""
    return orjson.dumps(value, option=_OPTIONS)


def to_line(value: Any) -> bytes:
    """Encode a value as JSON with a newline at the end."""
    return orjson.dumps(value, option=_OPTIONS | orjson.OPT_APPEND_NEWLINE)


def json_response(
    value: Any, status: int = 200, *, media: str = "application/json", headers: dict[str, str] | None = None
) -> Response:  # fmt: skip
    """Return an HTTP response whose body is a value as JSON."""
    return Response(to_json(value), status, headers, media)
