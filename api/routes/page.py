"""The pages: `/` (`api/page/index.html`), until the console takes its place, and `/docs` (`api/page/docs.html`), which shows
what `/openapi.json` says. Each is one file without anything from elsewhere.

Its policy lets the browser run that file's own script and style, known by their hashes, and talk to this server alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response

router = APIRouter()

_FOLDER = Path(__file__).resolve().parent.parent / "page"


@cache
def _read(name: str) -> tuple[bytes, dict[str, str]]:
    """Return a page and its headers: content security policy and ETag."""
    text = (_FOLDER / name).read_bytes()

    def hashes(element: str) -> str:
        bodies = re.findall(rf"<{element}>(.*?)</{element}>".encode(), text, re.DOTALL)
        return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(body).digest()).decode()}'" for body in bodies)

    policy = (
        f"default-src 'none'; script-src {hashes('script')}; style-src {hashes('style')}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    tag = f'"{hashlib.sha256(text).hexdigest()[:16]}"'
    return text, {"Content-Security-Policy": policy, "Cache-Control": "no-cache", "ETag": tag}


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """Streams, queries and live rates."""
    text, headers = _read("index.html")
    return Response(text, headers=headers, media_type="text/html")


@router.get("/docs", include_in_schema=False)
async def docs() -> Response:
    """The calls of the service, with their parameters, bodies and answers."""
    text, headers = _read("docs.html")
    return Response(text, headers=headers, media_type="text/html")
