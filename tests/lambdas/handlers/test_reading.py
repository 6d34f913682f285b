from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from daskscope.errors import NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.env import Env
from daskscope_lambdas.handlers import house, reading
from daskscope_lambdas.wiring import Adapters

Token = Callable[..., str]


def cookie(bearer: str) -> list[str]:
    return ["other=1", f"{reading.COOKIE}={bearer.removeprefix('Bearer ')}"]


@pytest.fixture
def open_pages(world: Adapters, env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "read", lambda: replace(env, pages="open"))


def test_the_login_cookie_reads_the_data_of_its_account(token: Token):
    reading.check_account(None, "acme", cookie(token("read")))
    with pytest.raises(NotFound):
        reading.check_account(None, "other", cookie(token("read")))
    with pytest.raises(PermissionDenied):
        reading.check_account(None, "acme", cookie(token("ingest")))
    with pytest.raises(NotLoggedIn):
        reading.check_account(None, "acme")


def test_a_token_that_is_sent_must_be_good_whatever_the_cookie(token: Token):
    with pytest.raises(NotLoggedIn):
        reading.check_account("Bearer nonsense", "acme", cookie(token("read")))
    with pytest.raises(PermissionDenied):
        reading.check_account(token("ingest"), "acme", cookie(token("read")))


def test_open_pages_give_their_account_as_json_too(open_pages: None, token: Token, get: Callable[..., dict[str, Any]]):
    assert get("/api/v1/local/clusters")["statusCode"] == 200
    assert get("/api/v1/acme/clusters")["statusCode"] == 404
    assert get("/api/v1/local/clusters", "Bearer nonsense")["statusCode"] == 401
    assert get("/api/v1/whoami")["statusCode"] == 401
