import base64
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from daskscope import wire
from daskscope.compression import MAX_MESSAGE_BYTES, SAMPLED, compress
from daskscope.testing import message
from daskscope_lambdas.handlers import ingest
from daskscope_lambdas.ports import Membership, Role, StoreError
from daskscope_lambdas.service.envelope import unpack
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]
Post = Callable[..., dict[str, Any]]


def error(answer: dict[str, Any]) -> tuple[int, dict[str, str]]:
    return answer["statusCode"], json.loads(answer["body"])["error"]


def test_a_message_is_taken(post: Post, world: LocalAdapters):
    answer = post(message())
    assert answer["statusCode"] == 200
    told = {"id": 1, "url": "acme/analytics/clusters/1", "next_s": None, "wish": [], "idle_timeout_s": None}
    assert json.loads(answer["body"]) == {**told, "accepts": ["daskscope-1-zstd", "daskscope-1-deflate"]}
    assert len(world.feed.receive(10, 1)) == 1


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"authorization": ""}, b"", 401, "not-logged-in"),
        ({"authorization": "Bearer dks_nonsense"}, b"", 401, "not-logged-in"),
        ({}, b"", 422, "bad-message"),
        ({}, b"{}", 422, "bad-message"),
        ({}, b"x" * wire.MAX_BODY_BYTES, 422, "bad-message"),
        ({}, b"x" * (wire.MAX_BODY_BYTES + 1), 413, "too-large"),
        ({"content-encoding": "br"}, b"", 415, "unsupported-media-type"),
        ({"content-encoding": "gzip, gzip"}, b"", 415, "unsupported-media-type"),
        ({"content-encoding": "gzip"}, b"no gzip", 422, "bad-message"),
        ({"content-encoding": "zstd"}, b"", 422, "bad-message"),
        ({"content-encoding": "daskscope-1-zstd"}, b"", 422, "bad-message"),
        ({"content-encoding": "daskscope-1-deflate"}, gzip.compress(b"{}"), 422, "bad-message"),
        ({"content-encoding": "daskscope-2-zstd"}, b"", 415, "unsupported-media-type"),
        ({"content-encoding": "gzip"}, gzip.compress(b"[" * (MAX_MESSAGE_BYTES + 1)), 413, "too-large"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"", 415, "unsupported-media-type"),
        ({"content-type": "application/json, application/json"}, b"", 415, "unsupported-media-type"),
        ({"content-type": "; charset=utf-8"}, b"", 415, "unsupported-media-type"),
    ],
)
def test_what_is_refused(token: Token, headers: dict[str, str], body: bytes, status: int, code: str):
    posted = event("POST", wire.PATH, {"authorization": token("ingest"), **headers}, body)
    found = error(ingest.handler(posted, None))
    assert (found[0], found[1]["code"]) == (status, code)


@pytest.mark.parametrize("kind", [wire.CONTENT_TYPE, "application/json", "Application/JSON; charset=UTF-8", "", None])
@pytest.mark.parametrize("encoding", ["ZSTD", " zstd ", None])
def test_types_and_encodings_that_are_taken(token: Token, kind: str | None, encoding: str | None):
    body = wire.encode(message())
    headers: dict[str, Any] = {"authorization": token("ingest"), "content-type": kind, "content-encoding": encoding}
    answer = ingest.handler(event("POST", wire.PATH, headers, compress(body)[0] if encoding else body), None)
    assert answer["statusCode"] == 200, answer


@pytest.mark.parametrize("accepted", SAMPLED)
def test_what_the_reply_says_it_takes_is_taken(
    token: Token, world: LocalAdapters, monkeypatch: pytest.MonkeyPatch, accepted: str
):
    plain = wire.encode(message())
    with monkeypatch.context() as at_the_plugin:
        if accepted == "daskscope-1-deflate":
            at_the_plugin.setitem(sys.modules, "zstandard", None)
        body, encoding = compress(plain, SAMPLED)
    assert encoding == accepted
    headers = {"authorization": token("ingest"), "content-type": wire.CONTENT_TYPE, "content-encoding": encoding}
    answer = ingest.handler(event("POST", wire.PATH, headers, body), None)
    assert accepted in json.loads(answer["body"])["accepts"]
    (delivery,) = world.feed.receive(10, 1)
    assert unpack(delivery.body).message == message()


@pytest.mark.parametrize(
    ("told", "skew_ms"),
    [("1795247990000", 10_000), (" 1795248000250 ", -250), ("0", 1_795_248_000_000),
     ("253370764800000", -251_575_516_800_000),
     ("253370764800001", None), ("-1", None), ("", None), ("1e12", None), ("yesterday", None), ("9" * 400, None),
     ("\u0661\u0662", None)],
)  # fmt: skip
def test_when_it_was_sent_is_told_and_never_refused(token: Token, world: LocalAdapters, told: str, skew_ms: int | None):
    body, encoding = compress(wire.encode(message()))
    headers = {"authorization": token("ingest"), "content-encoding": encoding, "daskscope-sent-at": told}
    assert ingest.handler(event("POST", wire.PATH, headers, body), None)["statusCode"] == 200
    assert [unpack(delivery.body).skew_ms for delivery in world.feed.receive(10, 1)] == [skew_ms]


def posted_for(account: str | None, authorization: str) -> dict[str, Any]:
    body, encoding = compress(wire.encode(message()))
    headers = {"authorization": authorization, "content-encoding": encoding}
    if account is not None:
        headers["daskscope-account"] = account
    return ingest.handler(event("POST", wire.PATH, headers, body), None)


def test_a_persons_message_goes_to_the_account_that_it_names(world: LocalAdapters):
    roles: dict[str, Role] = {"acme": "member", "team": "admin", "guests": "viewer"}
    for account, role in roles.items():
        world.users.put(Membership(account=account, user="ann", role=role, added_at=1.0, added_by="ops"))
    text, _ = mint(world.tokens, world.clock, "acme", ["ingest"], "laptop", user="ann")
    for account, status, code in (("guests", 403, "permission-denied"), ("other", 404, "not-found")):
        found = error(posted_for(account, f"Bearer {text}"))
        assert (found[0], found[1]["code"]) == (status, code)
    assert json.loads(posted_for(" team ", f"Bearer {text}")["body"])["url"] == "team/analytics/clusters/1"
    row = world.clusters.get("team", 1)
    assert (row.identity["user"], row.identity["user_claimed"]) == ("ann", False)


@pytest.mark.parametrize("account", [None, "", " ", "acme"])
def test_without_a_name_it_goes_to_the_account_of_the_token(world: LocalAdapters, token: Token, account: str | None):
    assert json.loads(posted_for(account, token("ingest"))["body"])["url"] == "acme/analytics/clusters/1"
    assert world.clusters.get("acme", 1).identity["user_claimed"] is True


@pytest.mark.parametrize("account", ["other", "../acme", "acme/x", "a" * 5000, "\u00e9"])
def test_the_token_of_a_site_is_for_its_account_alone(world: LocalAdapters, token: Token, account: str):
    assert error(posted_for(account, token("ingest")))[0] == 404
    assert world.feed.receive(10, 1) == []


def test_a_type_that_is_refused_names_those_that_are_not(token: Token):
    curls = {"authorization": token("ingest"), "content-type": "application/x-www-form-urlencoded"}
    _, found = error(ingest.handler(event("POST", wire.PATH, curls, b"{}"), None))
    assert found["message"].endswith("is not taken: send application/octet-stream or application/json.")


def test_first_who_then_what_then_how_much(token: Token):
    headers = {"content-type": "text/plain", "content-encoding": "br"}
    posted = event("POST", wire.PATH, headers, b"x" * (wire.MAX_BODY_BYTES + 1))
    assert error(ingest.handler(posted, None))[0] == 401
    headers["authorization"] = token("ingest")
    assert "Content-Type" in error(ingest.handler(posted, None))[1]["message"]
    headers["content-type"] = "application/json"
    assert "Content-Encoding" in error(ingest.handler(posted, None))[1]["message"]
    headers["content-encoding"] = "gzip"
    assert error(ingest.handler(posted, None))[0] == 413


def test_a_type_of_text_comes_as_text(token: Token):
    posted = event("POST", wire.PATH, {"authorization": token("ingest"), "content-type": "application/json"})
    posted |= {"body": wire.encode(message()).decode(), "isBase64Encoded": False}
    assert ingest.handler(posted, None)["statusCode"] == 200
    del posted["isBase64Encoded"]
    assert ingest.handler(posted, None)["statusCode"] == 200


def test_compressed_bytes_that_a_gateway_took_for_text_tell_which_type_to_send(token: Token):
    body, encoding = compress(wire.encode(message()))
    headers = {"authorization": token("ingest"), "content-type": "application/json", "content-encoding": encoding}
    posted = event("POST", wire.PATH, headers)
    posted |= {"body": body.decode("utf-8", "replace"), "isBase64Encoded": False}
    status, found = error(ingest.handler(posted, None))
    assert (status, wire.CONTENT_TYPE in found["message"]) == (415, True)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"body": "no base64!"}, 422),
        ({"body": "YWJj\n"}, 422),
        ({"body": "é"}, 422),
        ({"body": "!" * (wire.MAX_BODY_BYTES * 4 // 3)}, 422),
        ({"body": "!" * (wire.MAX_BODY_BYTES * 4 // 3 + 1)}, 413),
        ({"body": "x" * (wire.MAX_BODY_BYTES + 1), "isBase64Encoded": False}, 413),
        ({"body": "é" * wire.MAX_BODY_BYTES, "isBase64Encoded": False}, 413),
        ({"body": '"\ud800"', "isBase64Encoded": False}, 422),
        ({"body": "[" * 200_000, "isBase64Encoded": False}, 422),
        ({"body": None}, 422),
        ({"body": None, "isBase64Encoded": False}, 422),
        ({"body": ..., "isBase64Encoded": ...}, 422),
        ({"isBase64Encoded": ...}, 422),
        ({"headers": None}, 401),
        ({"headers": ...}, 401),
        ({"headers": {"authorization": None}}, 401),
    ],
)
def test_an_event_that_is_not_as_it_should_be_is_no_fault_of_ours(token: Token, changes: dict[str, Any], status: int):
    posted = event("POST", wire.PATH, {"authorization": token("ingest")}, b"{}") | changes
    posted = {name: value for name, value in posted.items() if value is not ...}
    assert error(ingest.handler(posted, None))[0] == status


def test_too_much_text_is_refused_for_its_length_alone(token: Token):
    posted = event("POST", wire.PATH, {"authorization": token("ingest"), "content-encoding": "gzip"})
    posted |= {"body": "x" * (wire.MAX_BODY_BYTES + 1), "isBase64Encoded": False}
    assert error(ingest.handler(posted, None))[0] == 413
    posted["body"] = posted["body"][1:]
    assert error(ingest.handler(posted, None))[0] == 415


def test_a_full_body_is_taken(token: Token):
    padded = wire.encode(message()).ljust(wire.MAX_BODY_BYTES)
    answer = ingest.handler(event("POST", wire.PATH, {"authorization": token("ingest")}, padded), None)
    assert answer["statusCode"] == 200
    assert len(base64.b64encode(padded)) == wire.MAX_BODY_BYTES * 4 // 3, "what the limit on base64 counts"


def test_a_token_that_may_only_read_may_not_report(post: Post, token: Token):
    assert error(post(message(), token("read", "admin")))[0] == 403


def test_the_cluster_of_another_account_is_not_found(post: Post):
    post(message())
    assert error(post(message(seq=1), account="other"))[0] == 404


def test_the_place_of_a_fault_is_told(post: Post):
    status, found = error(post(message(next_s=-1)))
    assert (status, found["place"]) == (422, "$.next_s")


def test_our_own_fault_is_500_with_the_request_in_the_log(
    post: Post, world: LocalAdapters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fail(_queue: object, body: str) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(type(world.queue), "send", fail)
    status, found = error(post(message()))
    assert (status, found["code"]) == (500, "server-error")
    assert "request-1" in found["message"]
    assert "disk full" not in found["message"]
    assert "disk full" in caplog.text


def test_the_path_of_every_message_imports_nothing_heavy():
    heavy = ["pyarrow", "duckdb", "numpy", "pandas", "distributed", "aws_lambda_powertools.event_handler"]
    code = f"import sys, daskscope_lambdas.handlers.ingest; print([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
