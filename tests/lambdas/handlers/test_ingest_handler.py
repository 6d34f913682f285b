import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import message
from daskscope_lambdas.handlers import ingest
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]
Post = Callable[..., dict[str, Any]]


def error(answer: dict[str, Any]) -> tuple[int, dict[str, str]]:
    return answer["statusCode"], json.loads(answer["body"])["error"]


def test_a_message_is_taken(post: Post, world: LocalAdapters):
    answer = post(message())
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"]) == {"id": 1, "url": "acme/analytics/clusters/1", "next_s": None, "wish": []}
    assert len(world.feed.receive(10, 1)) == 1


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"authorization": ""}, b"", 401, "not-logged-in"),
        ({"authorization": "Bearer dks_nonsense"}, b"", 401, "not-logged-in"),
        ({}, b"{}", 422, "bad-message"),
        ({}, b"x" * (wire.MAX_BODY_BYTES + 1), 413, "too-large"),
        ({"content-encoding": "br"}, b"", 415, "unsupported-media-type"),
        ({"content-encoding": "gzip"}, b"no gzip", 422, "bad-message"),
    ],
)
def test_what_is_refused(token: Token, headers: dict[str, str], body: bytes, status: int, code: str):
    posted = event("POST", wire.PATH, {"authorization": token("ingest"), **headers}, body)
    found = error(ingest.handler(posted, None))
    assert (found[0], found[1]["code"]) == (status, code)


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
