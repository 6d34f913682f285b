import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope_lambdas.handlers import api
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]
Put = Callable[[str, Any], tuple[int, dict[str, Any]]]
PATH = "/api/v1/acme/policy"
USUAL = {
    "retention": {},
    "reports": {"public": "allow", "keep_days": None},
    "idle": {"timeout_s": None, "users": {}, "clusters": {}},
}


@pytest.fixture
def put(world: LocalAdapters, token: Token) -> Put:
    keeper = token("admin")

    def call(subject: str, wanted: Any) -> tuple[int, Any]:
        body = json.dumps(wanted).encode()
        found = api.handler(event("PUT", f"{PATH}/{subject}", {"authorization": keeper}, body), None)
        return found["statusCode"], json.loads(found["body"])

    return call


@pytest.fixture
def told(token: Token, get: Callable[..., dict[str, Any]]) -> Callable[[], Any]:
    return lambda: json.loads(get(PATH, token("read"))["body"])


def test_what_nobody_said_is_as_usual(told: Callable[[], Any]) -> None:
    assert told() == USUAL


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ("reports", {"public": "deny", "keep_days": 90}),
        ("idle", {"timeout_s": 3600.5, "users": {"ann": None, "DOMAIN\\bob": 60}, "clusters": {"12": None, "7": 120}}),
        ("retention", {"tasks": 30, "prefixes_daily": 400, "audit": 365}),
    ],
)
def test_what_was_said_is_in_force_and_stands_in_place_of_what_was_before(
    put: Put, told: Callable[[], Any], world: LocalAdapters, subject: Any, wanted: Any
) -> None:
    assert put(subject, wanted) == (200, wanted)
    assert told() == {**USUAL, subject: wanted}
    assert world.policies.wish("acme", subject) == wanted
    assert put(subject, {}) == (200, USUAL[subject])
    assert told() == USUAL


@pytest.mark.parametrize(
    ("subject", "wanted", "says"),
    [
        ("reports", {"public": "no"}, "$.public"),
        ("reports", {"keep_days": 0}, ">= 1"),
        ("reports", {"keep_day": 9}, "unknown field `keep_day`"),
        ("idle", {"timeout_s": 59}, ">= 60"),
        ("idle", {"timeout_s": "1h"}, "$.timeout_s"),
        ("idle", {"users": {"ann": 1}}, ">= 60"),
        ("idle", {"users": {"": 60}}, "length >= 1"),
        ("idle", {"clusters": {"x": 60}}, "regex"),
        ("idle", {"clusters": {str(n): 60 for n in range(1, 502)}}, "<= 500"),
        ("retention", {"tasks": 0}, ">= 1"),
        ("retention", {"nonsense": 9}, "There is no table 'nonsense'; allowed: clusters,"),
        ("retention", {"audit": 364}, "audit is kept for 365 days at least"),
        ("retention", [], "Expected `object`"),
    ],
)
def test_what_cannot_be_changes_nothing(
    put: Put, told: Callable[[], Any], subject: str, wanted: Any, says: str
) -> None:
    status, refused = put(subject, wanted)
    assert (status, says in refused["error"]["message"]) == (422, True), refused
    assert told() == USUAL


def test_there_is_no_other_policy(put: Put) -> None:
    status, refused = put("nonsense", {})
    said = "There is no policy of nonsense: there are reports, idle, retention."
    assert (status, refused["error"]["message"]) == (404, said)
