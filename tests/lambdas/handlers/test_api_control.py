"""POST .../close: who may ask, what may be said, and what the cluster is told."""

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope.testing import CLUSTER, identity, message
from daskscope_lambdas.env import LocalEnv, Pages
from daskscope_lambdas.handlers import api, house
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]
Post = Callable[..., dict[str, Any]]
Ask = Callable[..., dict[str, Any]]
PATH = "/api/v1/acme/clusters/1/close"


@pytest.fixture
def ask(world: LocalAdapters) -> Ask:
    def send(authorization: str | None, body: bytes = b"", path: str = PATH, cookies: tuple[str, ...] = (),
             **headers: str) -> dict[str, Any]:  # fmt: skip
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"authorization": authorization} if authorization else {}
        return api.handler(event("POST", path, sent, body, cookies=cookies), None)

    return send


@pytest.fixture
def running(post: Post) -> Post:
    """A cluster that has reported, and a way to let it report again."""
    assert post(message())["statusCode"] == 200
    return post


def refused(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["statusCode"], json.loads(answer["body"])["error"]["code"]


def wishes(answer: dict[str, Any]) -> list[str]:
    return json.loads(answer["body"])["wish"]


def test_from_the_asker_to_the_cluster(ask: Ask, token: Token, running: Post, world: LocalAdapters) -> None:
    answer = ask(token("control"), b'{"reason": "nobody needs it"}', content_type="application/json")
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (202, "application/json")
    told = json.loads(answer["body"])
    assert (told["asked_at"], told["by"], told["reason"], told["expected_by"]) == (
        "2026-11-21T08:00:00.000Z", "token test", "nobody needs it", "2026-11-21T08:00:10.000Z",
    )  # fmt: skip
    assert told["sentence"].startswith("Cluster 1 is asked to close")
    assert wishes(running(message(seq=2))) == ["close"]
    row = world.clusters.find("acme", CLUSTER)
    assert (row.close_asked_by, row.close_asked_reason) == ("token test", "nobody needs it")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"reason": null}', b'{"reason": ""}', b'{"else": 1}'])
@pytest.mark.parametrize("path", [PATH, f"/api/v1/acme/clusters/{CLUSTER}/close"])
def test_a_reason_may_be_left_out(ask: Ask, token: Token, running: Post, body: bytes, path: str) -> None:
    answer = ask(token("control"), body, path)
    assert (answer["statusCode"], json.loads(answer["body"])["reason"]) == (202, None)


def test_who_may_ask(ask: Ask, token: Token, running: Post, world: LocalAdapters) -> None:
    assert refused(ask(None)) == (401, "not-logged-in")
    assert refused(ask("Bearer nonsense")) == (401, "not-logged-in")
    assert refused(ask(token("read", "ingest", "admin"))) == (403, "permission-denied")
    assert refused(ask(token("control", account="other"))) == (404, "not-found")
    theirs = PATH.replace("acme", "other")
    assert refused(ask(token("control", account="other"), path=theirs)) == (404, "not-found")
    assert refused(ask(token("control"), path=PATH.replace("/1/", "/2/"))) == (404, "not-found")
    assert world.clusters.find("acme", CLUSTER).close_asked_at is None


@pytest.mark.parametrize("pages", ["open", "login"])
def test_a_browser_s_cookie_is_not_enough_and_neither_is_loopback(
    ask: Ask, token: Token, world: LocalAdapters, post: Post, monkeypatch: pytest.MonkeyPatch, pages: Pages
) -> None:
    """Another site's page can send both."""
    post(message(), account="local")
    monkeypatch.setattr(house, "env", lambda: LocalEnv(data="nowhere", pages=pages))
    text = token("control", "read", account="local").removeprefix("Bearer ")
    path = "/api/v1/local/clusters/1/close"
    assert refused(ask(None, path=path, cookies=(f"daskscope={text}",))) == (401, "not-logged-in")
    assert world.clusters.find("local", CLUSTER).close_asked_at is None
    assert ask(f"Bearer {text}", path=path)["statusCode"] == 202


def test_only_post_asks(token: Token, running: Post, world: LocalAdapters) -> None:
    headers = {"authorization": token("control", "read")}
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        assert refused(api.handler(event(method, PATH, headers), None)) == (404, "not-found")
    assert world.clusters.find("acme", CLUSTER).close_asked_at is None


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"no json", {}, 422, "bad-message"),
        (b"\xff\xfe", {}, 422, "bad-message"),
        (b"[]", {}, 422, "bad-message"),
        (b'"idle"', {}, 422, "bad-message"),
        (b'{"reason": 5}', {}, 422, "bad-message"),
        (json.dumps({"reason": "x" * 201}).encode(), {}, 422, "bad-message"),
        (json.dumps({"reason": "a\nb"}).encode(), {}, 422, "bad-message"),
        (json.dumps({"reason": "\x1b[31m"}).encode(), {}, 422, "bad-message"),
        (b"[" * 100_000, {}, 422, "bad-message"),
        (b"x" * 800_000, {}, 413, "too-large"),
        (b"reason=idle", {"content_type": "application/x-www-form-urlencoded"}, 415, "unsupported-media-type"),
        (b"reason=idle", {"content_type": "text/plain"}, 415, "unsupported-media-type"),
        (gzip.compress(b"{}", mtime=0), {"content_encoding": "gzip"}, 415, "unsupported-media-type"),
    ],
)
def test_a_body_that_is_not_taken_asks_for_nothing(
    ask: Ask, token: Token, running: Post, world: LocalAdapters, body: bytes, headers: dict[str, str], status: int,
    code: str,
) -> None:  # fmt: skip
    assert refused(ask(token("control"), body, **headers)) == (status, code)
    assert world.clusters.find("acme", CLUSTER).close_asked_at is None


def test_the_longest_reason_is_taken(ask: Ask, token: Token, running: Post) -> None:
    reason = "\u20ac" * 200
    answer = ask(token("control"), json.dumps({"reason": reason}).encode())
    assert json.loads(answer["body"])["reason"] == reason


def test_a_body_may_come_as_text(token: Token, running: Post) -> None:
    """As API Gateway hands over what is `application/json`."""
    asked = event("POST", PATH, {"authorization": token("control"), "content-type": "application/json"})
    asked |= {"body": '{"reason": "idle"}', "isBase64Encoded": False}
    assert json.loads(api.handler(asked, None)["body"])["reason"] == "idle"
    assert base64.b64decode(event("POST", PATH)["body"]) == b""


def test_what_cannot_be_closed(ask: Ask, token: Token, post: Post, clock: FakeClock) -> None:
    post(message(identity=identity(remote_close=False)))
    bearer = token("control")
    assert refused(ask(bearer)) == (409, "not-closable")
    assert "remote-close" in ask(bearer)["body"]
    post(message(cluster="5" * 32))
    post(message(cluster="6" * 32, phase="closed"))
    assert refused(ask(bearer, path=PATH.replace("/1/", "/3/"))) == (409, "not-closable")
    clock.advance(31)
    assert refused(ask(bearer, path=PATH.replace("/1/", "/2/"))) == (409, "not-closable")
