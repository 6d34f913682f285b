"""Invitations that wait: listed, and withdrawn."""

import json
from typing import Any

from daskscope_lambdas.handlers import api
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tickets import invitation, sign_in_link
from daskscope_lambdas.service.tokens import OF_ROLES, mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import Browser
from tests.lambdas.handlers.conftest import event

PATH = "/api/v1/acme/invitations"


def bearer(world: LocalAdapters, user: str, role: Any = "admin", account: str = "acme") -> str:
    People(world.users, world.clock).put(account, user, role, "test")
    return "Bearer " + mint(world.tokens, world.clock, account, OF_ROLES["admin"], "laptop", user=user)[0]


def ask(method: str, path: str, authorization: str, body: bytes = b"") -> tuple[int, Any]:
    answer = api.handler(event(method, path, {"authorization": authorization}, body), None)
    return answer["statusCode"], json.loads(answer["body"])


def test_those_that_wait_are_listed_and_withdrawn(world: LocalAdapters, clock: FakeClock) -> None:
    ada = bearer(world, "ada")
    gone = invitation(world.tickets, clock, "acme", "viewer", "operator root", good_s=10)
    clock.advance(10)
    first = invitation(world.tickets, clock, "acme", "member", "token ci", good_s=100)
    made = ask("POST", "/api/v1/acme/users", ada, b'{"role": "admin", "user": "bob"}')[1]
    sign_in_link(world.tickets, clock, "acme", ["read"])
    invitation(world.tickets, clock, "beta", "admin", "ada")

    status, listed = ask("GET", PATH, ada)
    assert (status, [(each["role"], each["user"], each["by"]) for each in listed["items"]]) == (
        200, [("member", None, "token ci"), ("admin", "bob", "ada")],
    )  # fmt: skip
    assert listed["items"][1]["expires"] == made["expires"]
    assert not any(link.partition("=")[2] in json.dumps(listed) for link in (gone.url, first.url, made["url"]))

    bobs = listed["items"][1]["id"]
    assert ask("DELETE", f"/api/v1/beta/invitations/{bobs}", bearer(world, "bea", account="beta"))[0] == 404
    assert ask("DELETE", f"{PATH}/{bobs}", ada)[0] == 200
    assert ask("DELETE", f"{PATH}/{bobs}", ada)[0] == 404
    assert Browser().get("/" + made["url"])["statusCode"] == 404
    assert Browser().get("/" + first.url)["statusCode"] == 200
    assert [each["role"] for each in ask("GET", PATH, ada)[1]["items"]] == ["member"]
    acts = ask("GET", "/api/v1/acme/audit", ada)[1]["items"]
    assert (acts[0]["action"], acts[0]["target"], acts[0]["detail"]["role"]) == ("user.withdraw", "bob", "admin")


def test_they_are_an_admin_s_business_alone(world: LocalAdapters) -> None:
    for method, path in (("GET", PATH), ("DELETE", f"{PATH}/0123456789ab")):
        assert ask(method, path, bearer(world, "mia", "member"))[0] == 403
        assert ask(method, path, bearer(world, "bea", account="beta"))[0] == 404
