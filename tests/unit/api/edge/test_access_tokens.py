"""Tokens: the file, the roles, and the role that each route needs."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from api.app import make_app
from api.base.limits import Limits
from api.base.refusals import ForbiddenError
from api.cli import app
from api.core.service import Service
from api.edge.access_tokens import (
    ANY,
    LOOK_SECONDS,
    NO_ROUTE,
    OPEN,
    ROLES,
    ROUTES,
    TokenFileError,
    Tokens,
    add_token,
    digest,
    drop_token,
    expect,
    may,
    read_tokens,
    route_of,
)  # fmt: skip
from eddy import ConflictError, EddyError, NotFoundError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_token_is_found_by_its_secret_and_the_file_does_not_hold_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    secret = add_token(path, "lab", "device")
    found = Tokens(path).find(secret)
    assert found is not None and (found.name, found.role) == ("lab", "device")
    assert secret not in path.read_text() and digest(secret) in path.read_text()
    assert path.stat().st_mode & 0o077 == 0, "only its owner reads it"


def test_another_secret_a_hash_and_nothing_are_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    secret = add_token(path, "lab", "admin")
    tokens = Tokens(path)
    for wrong in (secret[:-1], secret + "x", secret.upper(), digest(secret), "", "\udcff"):
        assert tokens.find(wrong) is None


def test_no_two_secrets_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    assert len({add_token(path, f"t{n}", "reader") for n in range(20)}) == 20


def test_a_dropped_token_is_refused_and_a_new_one_taken_without_a_restart(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens.json", Clock()
    old = add_token(path, "old", "reader")
    tokens = Tokens(path, clock)
    drop_token(path, "old")
    new = add_token(path, "new", "writer")
    assert tokens.find(old) is not None, "not looked at yet"
    clock.now = LOOK_SECONDS
    assert tokens.find(old) is None
    found = tokens.find(new)
    assert found is not None and found.role == "writer"


def test_a_file_that_goes_takes_its_tokens_with_it_and_a_damaged_one_changes_nothing(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens.json", Clock()
    secret = add_token(path, "a", "reader")
    tokens = Tokens(path, clock)
    path.write_text("{")
    clock.now += LOOK_SECONDS
    assert tokens.find(secret) is not None
    path.unlink()
    clock.now += LOOK_SECONDS
    assert tokens.find(secret) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"tokens": 3}', '{"tokens": [{"name": "a"}]}',
    '{"tokens": [{"name": "a", "role": "king", "hash": "%s", "created": ""}]}' % ("0" * 64)])  # fmt: skip
def test_what_is_no_token_file_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(text)
    with pytest.raises(TokenFileError):
        read_tokens(path)


def test_names_are_taken_once_and_roles_are_known(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    add_token(path, "a", "reader")
    with pytest.raises(ConflictError):
        add_token(path, "a", "writer")
    with pytest.raises(EddyError, match="no role"):
        add_token(path, "b", "king")
    with pytest.raises(EddyError, match="cannot be called"):
        add_token(path, "b\n", "reader")
    with pytest.raises(NotFoundError):
        drop_token(path, "b")
    assert list(read_tokens(path)) == ["a"]


def test_roles_hold_what_they_should() -> None:
    allowed = {role: {needed for needed in (OPEN, ANY, *ROLES) if may(role, needed)} for role in ROLES}
    assert allowed == {
        "device": {OPEN, ANY, "device"},
        "reader": {OPEN, ANY, "reader"},
        "writer": {OPEN, ANY, "device", "reader", "writer"},
        "admin": {OPEN, ANY, "device", "reader", "writer", "admin"},
    }
    with pytest.raises(ForbiddenError, match="device or writer or admin"):
        expect("reader", "device")


def documented() -> list[tuple[str, str]]:
    document = make_app(Service(None, Limits())).openapi()
    return [(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs]  # type: ignore[index]


def test_every_route_of_the_document_has_a_role_and_every_role_a_route() -> None:
    routes = set(documented())
    assert routes - set(ROUTES) == set(), "routes without a role"
    elsewhere = {("GET", "/"), ("GET", "/openapi.json"), ("GET", "/docs"), ("WS", "/v1/ws")}
    assert set(ROUTES) - routes - elsewhere == set(), "roles of routes that are not there"


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_call_exactly_its_routes(role: str) -> None:
    for verb, path in documented():
        needed = route_of(verb, path.replace("{", "").replace("}", "")).role
        assert needed == ROUTES[verb, path]
        if path.startswith("/v1/") or path == "/metrics":
            rows = verb == "POST" and ("/rows" in path or path.endswith("/stable"))
            looks = verb == "GET" or path in ("/v1/trace", "/v1/queries/validate")
            right = {"device": rows, "reader": looks, "writer": (verb, path) != ("PATCH", "/v1/eddy"), "admin": True}[role]
            assert may(role, needed) == right, (verb, path)


@pytest.mark.parametrize(
    ("verb", "path"),
    [("GET", "/v1/none"), ("PATCH", "/v1/streams/a"), ("GET", "/v1/streams/"), ("GET", "/v1/streams/a/b"), ("GET", "/V1/streams"),
     ("GET", "//v1/streams"), ("GET", "/v1/streams\n"), ("POST", "/healthz")],
)  # fmt: skip
def test_what_is_no_route_needs_admin(verb: str, path: str) -> None:
    assert route_of(verb, path) == NO_ROUTE


def test_the_command_prints_a_secret_once(tmp_path: Path) -> None:
    run, path = CliRunner(), str(tmp_path / "tokens.json")
    added = run.invoke(app, ["token", "add", "lab", "--role", "device", "--token-file", path, "--json"])
    assert added.exit_code == 0
    secret = orjson.loads(added.stdout)["secret"]
    assert Tokens(Path(path)).find(secret) is not None
    listed = run.invoke(app, ["token", "list", "--token-file", path, "--json"])
    assert [entry["name"] for entry in orjson.loads(listed.stdout)] == ["lab"] and secret not in listed.output
    assert "lab" in run.invoke(app, ["token", "list", "--token-file", path]).stdout
    again = run.invoke(app, ["token", "add", "lab", "--role", "device", "--token-file", path])
    assert again.exit_code == 1 and 'there is a token "lab"' in again.stderr and "hint:" in again.stderr
    assert run.invoke(app, ["token", "drop", "lab"], env={"EDDY_TOKEN_FILE": path}).exit_code == 0
    assert read_tokens(Path(path)) == {}
