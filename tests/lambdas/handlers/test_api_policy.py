import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope.testing import identity, message
from daskscope_lambdas.handlers import api
from daskscope_lambdas.service.people import People
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
    put: Put, told: Callable[[], Any], world: LocalAdapters, post: Callable[..., Any], subject: Any, wanted: Any
) -> None:
    for number in range(12):
        post(message(cluster=f"{number:032x}", identity=identity(user=("ann", "DOMAIN\\bob")[number % 2])))
    assert put(subject, wanted) == (200, wanted)
    assert told() == {**USUAL, subject: wanted}
    kept = world.policies.wish("acme", subject)
    assert kept.pop("set_at", None) == (world.clock.now() if subject == "reports" else None)
    assert kept == wanted
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


def test_json_of_another_shape_is_told_from_what_is_none(put: Put) -> None:
    _, refused = put("idle", {"users": {"ann": 5}})
    assert refused["error"]["place"] == "$.users[...]"
    assert refused["error"]["message"].startswith(
        "What was posted is not as it should be at $.users[...]: Expected `float` >= 60.0. Like this it is: {"
    )


def test_a_cluster_that_is_not_there_is_refused_and_one_that_is_gone_stays(
    put: Put, told: Callable[[], Any], world: LocalAdapters, post: Callable[..., Any]
) -> None:
    post(message())
    post(message(cluster="f" * 32), account="other")
    status, refused = put("idle", {"clusters": {"1": 60, "2": 60, "99": None}})
    assert (status, refused["error"]["place"]) == (422, "$.clusters")
    assert "Account acme has no cluster 2, 99: `daskscope clusters`" in refused["error"]["message"]
    assert told() == USUAL
    world.policies.set_wish("acme", "idle", {"clusters": {"99": 60}})
    assert put("idle", {"clusters": {"99": 60, "1": 60}})[0] == 200


def test_a_user_of_whom_nobody_knows_is_taken_and_it_is_said(
    put: Put, told: Callable[[], Any], world: LocalAdapters, post: Callable[..., Any]
) -> None:
    post(message(identity=identity(user="seen")))
    post(message(cluster="f" * 32, identity=identity(user="elsewhere")), account="other")
    People(world.users, world.clock).put("acme", "ann", "viewer", "test")
    users = {"seen": 60, "ann": 60, "elsewhere": 60, "an": None}
    status, found = put("idle", {"users": users})
    assert (status, found["users"]) == (200, users)
    assert found["sentence"].startswith("Nobody called an, elsewhere is in account acme, nor has a cluster of theirs")
    assert told()["idle"]["users"] == users
    assert "sentence" not in put("idle", {"users": users})[1], "once"


def test_there_is_no_other_policy(put: Put) -> None:
    status, refused = put("nonsense", {})
    said = "There is no policy of nonsense: there are reports, idle, retention."
    assert (status, refused["error"]["message"]) == (404, said)
