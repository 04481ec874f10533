"""Access tokens, their roles, and the role that each route needs.

    device    brings rows, and nothing else; it may be bound to one input of a merged stream
    reader    looks at everything, changes nothing
    writer    both, and defines streams, tables and queries
    admin     also says how the service itself works

The file holds hashes only, so nobody gets in with what it says. A secret is 256 random bits, which no dictionary has: one round
of SHA-256 is enough, and a request costs one lookup. The file is replaced as a whole, never changed, and read again when it
has changed, so a token that was dropped is refused within `LOOK_SECONDS`.

Browsers cannot set headers of an EventSource or a WebSocket, so for these two alone a secret is also taken from `?token=`; it
is cut out before anything else sees the address, and addresses are not logged.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from api.base.refusals import ForbiddenError
from eddy import ConflictError, EddyError, NotFoundError

_log = logging.getLogger("eddy.tokens")

ROLES = ("device", "reader", "writer", "admin")
#: Anybody may, token or not.
OPEN = "open"
#: Who has a token, whatever its role.
ANY = "any"
#: What each role may do.
_HAS = {
    "device": {"device", ANY},
    "reader": {"reader", ANY},
    "writer": {"device", "reader", "writer", ANY},
    "admin": {"device", "reader", "writer", "admin", ANY},
}
#: Seconds after which the file is looked at again.
LOOK_SECONDS = 1.0
#: Tokens of one file.
MAX_TOKENS = 10_000
_NAME = re.compile(r"[\w.@-]{1,64}")

#: The role that each route needs. What is not here needs admin.
ROUTES: dict[tuple[str, str], str] = {
    ("GET", "/"): OPEN,
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/metrics"): "reader",
    ("WS", "/v1/ws"): ANY,
    ("GET", "/v1/limits"): "reader",
    ("GET", "/v1/streams"): "reader",
    ("GET", "/v1/streams/{stream}"): "reader",
    ("PUT", "/v1/streams/{stream}"): "writer",
    ("DELETE", "/v1/streams/{stream}"): "writer",
    ("GET", "/v1/merges"): "reader",
    ("GET", "/v1/merges/{merge}"): "reader",
    ("PUT", "/v1/merges/{merge}"): "writer",
    ("DELETE", "/v1/merges/{merge}"): "writer",
    ("PUT", "/v1/merges/{merge}/inputs/{input}"): "writer",
    ("DELETE", "/v1/merges/{merge}/inputs/{input}"): "writer",
    ("POST", "/v1/merges/{merge}/inputs/{input}/rows"): "device",
    ("POST", "/v1/merges/{merge}/inputs/{input}/stable"): "device",
    ("GET", "/v1/tables"): "reader",
    ("GET", "/v1/tables/{table}"): "reader",
    ("PUT", "/v1/tables/{table}"): "writer",
    ("DELETE", "/v1/tables/{table}"): "writer",
    ("POST", "/v1/rows"): "device",
    ("POST", "/v1/streams/{stream}/rows"): "device",
    ("POST", "/v1/streams/{stream}/rows/retract"): "device",
    ("POST", "/v1/tables/{table}/rows"): "device",
    ("POST", "/v1/tables/{table}/rows/delete"): "device",
    ("POST", "/v1/timelines/{timeline}/advance"): "writer",
    ("GET", "/v1/queries"): "reader",
    ("POST", "/v1/queries"): "writer",
    ("DELETE", "/v1/queries"): "writer",
    ("POST", "/v1/queries/batch"): "writer",
    ("POST", "/v1/queries/validate"): "reader",
    ("GET", "/v1/queries/{query}"): "reader",
    ("PUT", "/v1/queries/{query}"): "writer",
    ("DELETE", "/v1/queries/{query}"): "writer",
    ("POST", "/v1/queries/{query}/pause"): "writer",
    ("POST", "/v1/queries/{query}/resume"): "writer",
    ("GET", "/v1/queries/{query}/plan"): "reader",
    ("GET", "/v1/queries/{query}/stats"): "reader",
    ("GET", "/v1/queries/{query}/answer"): "reader",
    ("GET", "/v1/queries/{query}/changes"): "reader",
    ("GET", "/v1/changes"): "reader",
    ("POST", "/v1/trace"): "reader",
    ("GET", "/v1/eddy"): "reader",
    ("PATCH", "/v1/eddy"): "admin",
    ("GET", "/v1/experiments"): "reader",
    ("GET", "/v1/experiments/runs"): "reader",
    ("POST", "/v1/experiments/runs"): "writer",
    ("GET", "/v1/experiments/runs/{run}"): "reader",
    ("DELETE", "/v1/experiments/runs/{run}"): "writer",
    ("GET", "/v1/experiments/runs/{run}/{file}"): "reader",
}


#: What a token that is bound to an input may use.
OF_INPUT = ("/v1/merges/{merge}/inputs/{input}/rows", "/v1/merges/{merge}/inputs/{input}/stable")


class ApiRoute(NamedTuple):
    """The route of a request: its method, path template and needed role, never text of the client."""

    method: str
    template: str
    role: str


#: What no route of ours is.
NO_ROUTE = ApiRoute("other", "other", "admin")
#: Routes without parameters by their path, the others by their number of segments.
_PLAIN = {(method, path): ApiRoute(method, path, role) for (method, path), role in ROUTES.items() if "{" not in path}
_SHAPES = {
    (method, n): [
        (path.split("/"), ApiRoute(verb, path, role))
        for (verb, path), role in ROUTES.items()
        if verb == method and path.count("/") == n and "{" in path
    ]
    for method, n in {(method, path.count("/")) for method, path in ROUTES}
}


def route_of(method: str, path: str) -> ApiRoute:
    """Return the route of a call; `WS` is the method of a WebSocket."""
    plain = _PLAIN.get((method, path))
    if plain is not None:
        return plain
    shapes = _SHAPES.get((method, path.count("/")))
    if shapes is not None:
        words = path.split("/")
        for shape, route in shapes:
            if all(part == word or (word and part.startswith("{")) for part, word in zip(shape, words)):
                return route
    return NO_ROUTE


class TokenFileError(EddyError):
    """The token file cannot be used."""

    default_code = "bad_token_file"


def may(role: str, needed: str) -> bool:
    """Return whether a role may use a route that needs `needed`."""
    return needed == OPEN or needed in _HAS[role]


def expect(role: str, needed: str) -> None:
    """Raise unless a role may use a route that needs `needed`."""
    if not may(role, needed):
        who = " or ".join(one for one in ROLES if needed in _HAS[one])
        raise ForbiddenError(f"the token's role is {role}", hint=f"this takes a token with the role {who}")


@dataclass(frozen=True, slots=True)
class AccessToken:
    """One token, without its secret."""

    name: str
    role: str
    #: SHA-256 of the secret, in hexadecimal
    hash: str
    #: when it was made, ISO 8601
    created: str
    #: "merge/input": the one input that it brings rows and points of; None: whatever its role may
    input: str | None = None


def expect_input(token: AccessToken, route: ApiRoute, path: str) -> None:
    """Raise if a token is bound to an input, and a request is not for the rows or the point of that input."""
    if token.input is None:
        return
    words = path.split("/")
    if route.template not in OF_INPUT or f"{words[3]}/{words[5]}".lower() != token.input.lower():
        merge, _, of = token.input.partition("/")
        raise ForbiddenError(
            f'the token is for input "{of}" of merge "{merge}" alone', hint=f"POST /v1/merges/{merge}/inputs/{of}/rows or /stable"
        )


def digest(secret: str) -> str:
    """Return the hash of a secret."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


# ---- the file


def read_tokens(path: Path) -> dict[str, AccessToken]:
    """Return the tokens of a file by name; none if there is no file."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TokenFileError(f"the token file {path} cannot be read", detail=error.strerror or "", hint="see its mode") from None
    try:
        entries = orjson.loads(text)["tokens"]
        tokens = [AccessToken(**entry) for entry in entries]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        tokens = None
    if tokens is None or not all(token.role in ROLES and len(token.hash) == 64 for token in tokens):
        raise TokenFileError(f"{path} is no token file", hint="`eddy token add --token-file NEW` makes one")
    return {token.name: token for token in tokens}


def write_tokens(path: Path, tokens: Iterable[AccessToken]) -> None:
    """Replace a token file; its readers see the old one or the new one, whole."""
    text = orjson.dumps({"tokens": [asdict(token) for token in tokens]}, option=orjson.OPT_INDENT_2)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        beside.unlink(missing_ok=True)
        fact = f"the token file {path} cannot be written"
        raise TokenFileError(fact, detail=error.strerror or "", hint="--token-file names a place you may write to") from None


def add_token(path: Path, name: str, role: str, input: str | None = None) -> str:
    """Add a token and return its secret, which is stored nowhere; `input` as in `AccessToken`."""
    if role not in ROLES:
        raise EddyError(f'there is no role "{role}"', code="bad_option", hint=f"one of {', '.join(ROLES)}")
    if not _NAME.fullmatch(name):
        raise EddyError(f'a token cannot be called "{name[:80]}"', code="bad_name", hint="up to 64 letters, digits and . _ @ -")
    if input is not None and (role != "device" or len(input.split("/")) != 2 or not all(input.split("/"))):
        fact = f'the token cannot be bound to "{input[:80]}"' if role == "device" else f"a token of a {role} is bound to no input"
        raise EddyError(fact, code="bad_option", hint="--role device --input merge/input")
    tokens = read_tokens(path)
    if name in tokens:
        raise ConflictError(f'there is a token "{name}"', code="name_taken", hint="drop it first, or choose another name")
    if len(tokens) >= MAX_TOKENS:
        raise EddyError(f"the file has {MAX_TOKENS} tokens", code="too_many_tokens", hint="drop those that nobody uses")
    secret = f"eddy_{secrets.token_urlsafe(32)}"
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_tokens(path, [*tokens.values(), AccessToken(name, role, digest(secret), created, input)])
    return secret


def drop_token(path: Path, name: str) -> None:
    """Remove a token, so that its secret is refused."""
    tokens = read_tokens(path)
    if tokens.pop(name, None) is None:
        raise NotFoundError(f'there is no token "{name}"', code="unknown_token", hint="`eddy token list` shows them")
    write_tokens(path, tokens.values())


# ---- the server's side


class Tokens:
    """The tokens of a file as a server uses them; the file is checked for changes now and then."""

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._now = now
        self._looked = now()
        self._mark = self._stat()
        self._by_hash = {token.hash: token for token in read_tokens(path).values()}

    def __len__(self) -> int:
        return len(self._by_hash)

    def find(self, secret: str) -> AccessToken | None:
        """Return the token with a secret. Its hash is looked up, so the time taken reveals nothing."""
        if self._now() - self._looked >= LOOK_SECONDS:
            self._look()
        return self._by_hash.get(digest(secret))

    def _look(self) -> None:
        self._looked = self._now()
        mark = self._stat()
        if mark == self._mark:
            return
        self._mark = mark
        try:
            self._by_hash = {token.hash: token for token in read_tokens(self.path).values()}
        except TokenFileError as error:
            _log.error("the tokens stay as they were: %s", error.fact)
            return
        _log.info("tokens read", extra={"tokens": len(self._by_hash)})

    def _stat(self) -> tuple[int, int, int] | None:
        """Return the file's inode, size and time of change; None if it cannot be read."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
