"""The page at `/`: one file without anything from elsewhere (`api/page/index.html`), until the console takes its place.

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

_FILE = Path(__file__).resolve().parent.parent / "page" / "index.html"


@cache
def _page() -> tuple[bytes, str, str]:
    """The page, its policy and its tag."""
    text = _FILE.read_bytes()

    def hashes(element: str) -> str:
        bodies = re.findall(rf"<{element}>(.*?)</{element}>".encode(), text, re.DOTALL)
        return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(body).digest()).decode()}'" for body in bodies)

    policy = (
        f"default-src 'none'; script-src {hashes('script')}; style-src {hashes('style')}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy, f'"{hashlib.sha256(text).hexdigest()[:16]}"'


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """Streams, queries and live rates."""
    text, policy, tag = _page()
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache", "ETag": tag}
    return Response(text, headers=headers, media_type="text/html")
