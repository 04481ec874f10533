"""Problem documents of the service as the errors of the engine: same class, code, hint and place."""

from __future__ import annotations

import json
from typing import Any

from lineage.errors import (
    ConflictError,
    EddyError,
    GoneError,
    InUseError,
    LimitError,
    NotFoundError,
    QueryError,
    RowError,
    SchemaError,
    StorageError,
)


class UnreachableError(EddyError):
    """The service cannot be reached."""

    default_code = "unreachable"


#: By the word that a problem document has for it, `kind`.
_KINDS: dict[str, type[EddyError]] = {
    "conflict": ConflictError, "gone": GoneError, "in_use": InUseError, "limit": LimitError, "not_found": NotFoundError,
    "query": QueryError, "row": RowError, "schema": SchemaError, "storage": StorageError,
}  # fmt: skip
#: What a status means where a document says no more, such as one of a proxy.
_STATUSES: dict[int, type[EddyError]] = {
    404: NotFoundError, 409: ConflictError, 410: GoneError, 413: LimitError, 429: LimitError, 503: LimitError,
}  # fmt: skip
#: Bytes of a body that is no problem document that are shown.
_SHOWN = 200


def error_of(status: int, body: bytes) -> EddyError:
    """Return the error of a reply with a status from 400 on."""
    try:
        facts = json.loads(body)
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or not isinstance(facts.get("detail"), str):
        text = body[:_SHOWN].decode(errors="replace").strip()
        return _STATUSES.get(status, EddyError)(
            f"the service answered with status {status}", code=f"status_{status}", detail=text
        )
    return error_from(facts, status)


def error_from(facts: dict[str, Any], status: int) -> EddyError:
    """Return the error of a problem document, or of an entry with the same fields."""
    kind = _KINDS.get(str(facts.get("kind")), _STATUSES.get(status, EddyError))
    place = facts.get("position")
    place = place if isinstance(place, dict) else {}
    said: dict[str, Any] = {"code": str(facts.get("code") or f"status_{status}"), "hint": str(facts.get("hint") or "")}
    if kind is QueryError:
        said |= {"line": place.get("line"), "column": place.get("column"), "excerpt": place.get("excerpt") or ""}
    elif kind is RowError:
        said |= {"row": place.get("row"), "column": place.get("column")}
    error = kind(facts["detail"], **said)
    if isinstance(facts.get("item"), int):
        # of a batch: which one it was
        error.item = facts["item"]  # type: ignore[attr-defined]  # errors have a dict
    return error
