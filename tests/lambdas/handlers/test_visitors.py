from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope.errors import NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import house, visitors
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import person
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]


def asked(bearer: str = "", authorization: str = "") -> APIGatewayProxyEventV2:
    """With a session, a bearer token, or neither."""
    cookies = ("other=1", f"{visitors.cookie_name()}={bearer.removeprefix('Bearer ')}") if bearer else ("other=1",)
    headers = {"authorization": authorization} if authorization else {}
    return APIGatewayProxyEventV2(event("GET", "/x", headers, cookies=cookies))


@pytest.fixture
def open_pages(world: LocalAdapters, env: LocalEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "read", lambda: replace(env, pages="open"))


def test_the_session_reads_the_data_of_its_account(token: Token):
    visitors.check_account(asked(token("read")), "acme")
    with pytest.raises(NotFound):
        visitors.check_account(asked(token("read")), "other")
    with pytest.raises(PermissionDenied):
        visitors.check_account(asked(token("ingest")), "acme")
    with pytest.raises(NotLoggedIn):
        visitors.check_account(asked(), "acme")


def test_a_person_s_session_reads_all_their_accounts(world: LocalAdapters):
    session = person(world, "ann", acme="viewer", beta="admin").cookies["daskscope"]
    for account in ("acme", "beta"):
        visitors.check_account(asked(session), account)
        assert visitors.accounts(visitors.visitor(asked(session), account))[0] == account
    with pytest.raises(NotFound):
        visitors.check_account(asked(session), "other")
    assert visitors.may(visitors.visitor(asked(session), "beta"), "control")
    assert not visitors.may(visitors.visitor(asked(session), "acme"), "control")


def test_a_token_that_is_sent_must_be_good_whatever_the_cookie(token: Token):
    with pytest.raises(NotLoggedIn):
        visitors.check_account(asked(token("read"), "Bearer nonsense"), "acme")
    with pytest.raises(PermissionDenied):
        visitors.check_account(asked(token("read"), token("ingest")), "acme")


def test_a_cookie_header_that_no_browser_sends_is_no_session(world: LocalAdapters):
    for sent in ('daskscope="', "\x00=;;", "=", "daskscope=", 'a="\\'):
        with pytest.raises(NotLoggedIn):
            visitors.visitor(APIGatewayProxyEventV2(event("GET", "/x", cookies=(sent,))))


def test_open_pages_give_their_account_as_json_too(open_pages: None, token: Token, get: Callable[..., dict[str, Any]]):
    assert get("/api/v1/local/clusters")["statusCode"] == 200
    assert get("/api/v1/acme/clusters")["statusCode"] == 404
    assert get("/api/v1/local/clusters", "Bearer nonsense")["statusCode"] == 401
    assert get("/api/v1/whoami")["statusCode"] == 401


def test_where_pages_are_open_who_is_not_signed_in_may_change_nothing(open_pages: None):
    found = visitors.visitor(asked())
    assert (found.account, visitors.may(found, "control"), visitors.accounts(found)) == ("local", False, ["local"])
    with pytest.raises(NotLoggedIn):
        visitors.signed_in(asked())


@pytest.mark.parametrize(
    "other", ['theme={"a":"b"}', "a[b]=1", "x=a b c", "novalue", "x=\u00e9", 'x="', "=", "xdaskscope=1", "Daskscope=1"]
)
@pytest.mark.parametrize("listed", [True, False])
def test_another_application_s_cookie_signs_nobody_out(world: LocalAdapters, other: str, listed: bool) -> None:
    mine = f"daskscope={person(world, 'ann', acme='viewer').cookies['daskscope']}"
    if listed:
        sent = event("GET", "/x", cookies=(other, mine, other))
    else:
        sent = event("GET", "/x", {"cookie": f"{other}; {mine}; {other}"})
    assert visitors.signed_in(APIGatewayProxyEventV2(sent), "acme").principal.user == "ann"
