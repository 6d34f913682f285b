import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope.testing import message
from daskscope_lambdas.handlers import api
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]
Ask = Callable[..., tuple[int, dict[str, Any]]]
PATH = "/api/v1/acme/audit"


@pytest.fixture
def ask(world: LocalAdapters) -> Ask:
    def call(method: str, target: str, bearer: str, posted: Any = None) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        body = b"" if posted is None else json.dumps(posted).encode()
        found = api.handler(event(method, path, {"authorization": bearer}, body, query), None)
        return found["statusCode"], json.loads(found["body"])

    return call


def test_acts_stand_there_as_they_were_done_latest_first(
    ask: Ask, token: Token, clock: FakeClock, post: Callable[..., Any]
) -> None:
    keeper = token("admin", "read", "control")
    post(message())
    _, made = ask("POST", "/api/v1/acme/tokens", keeper, {"name": "ci", "scopes": ["read"]})
    clock.advance(60)
    ask("PUT", "/api/v1/acme/policy/reports", keeper, {"public": "deny"})
    clock.advance(86_400)
    ask("POST", "/api/v1/acme/clusters/1/close", keeper, {"reason": "idle"})
    clock.advance(1)
    ask("DELETE", f"/api/v1/acme/tokens/{made['key_id']}", keeper)
    ask("DELETE", f"/api/v1/acme/tokens/{made['key_id']}", keeper)

    status, found = ask("GET", PATH, keeper)
    assert status == 200
    assert [(each["action"], each["target"]) for each in found["items"]] == [
        ("token.revoke", made["key_id"]), ("cluster.close", "1"), ("policy.set", "reports"),
        ("token.create", made["key_id"]),
    ]  # fmt: skip
    first = found["items"][-1]
    assert first["time"] == "2026-11-21T08:00:00.000Z"
    assert (first["actor"], first["role"], first["key_id"]) == (
        "token test",
        None,
        keeper.removeprefix("Bearer ")[4:16],
    )
    assert first["address"] == "127.0.0.1"
    assert first["detail"] == {"name": "ci", "scopes": ["read"], "user": None, "kind": "token", "expires": None}
    assert found["items"][2]["detail"] == {"public": "deny", "keep_days": None}
    assert made["token"] not in json.dumps(found)

    for query, n in (
        ("action=policy.set", 1),
        ("actor=token%20test", 4),
        ("actor=ann", 0),
        ("since=3600", 2),
        ("until=60", 2),
    ):
        assert len(ask("GET", f"{PATH}?{query}", keeper)[1]["items"]) == n, query
    page = ask("GET", f"{PATH}?limit=3", keeper)[1]
    following = ask("GET", f"{PATH}?limit=3&cursor={page['cursor']}", keeper)[1]
    assert (page["items"] + following["items"], following["cursor"]) == (found["items"], None)
    assert ask("GET", f"{PATH}?action=nonsense", keeper)[0] == 400


def test_an_act_that_cannot_be_written_down_is_not_done(
    ask: Ask, token: Token, world: LocalAdapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = token("admin", "read")
    before = [row.key_id for row in world.tokens.list("acme")]

    def fail(_key: str, _body: bytes) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr(world.objects, "put_new", fail)
    for method, path, posted in (
        ("POST", "tokens", {"name": "ci", "scopes": ["read"]}),
        ("DELETE", f"tokens/{before[0]}", None),
        ("POST", "users", {"role": "admin"}),
        ("PUT", "policy/retention", {"tasks": 1}),
    ):
        assert ask(method, f"/api/v1/acme/{path}", keeper, posted)[0] == 500
    rows = world.tokens.list("acme")
    assert ([row.key_id for row in rows], rows[0].revoked_at) == (before, None)
    assert world.policies.wish("acme", "retention") == {}


def test_another_account_sees_nothing_of_it(ask: Ask, token: Token) -> None:
    ask("PUT", "/api/v1/acme/policy/reports", token("admin"), {"public": "deny"})
    other = token("admin", "read", account="other")
    assert ask("GET", "/api/v1/other/audit", other)[1]["items"] == []
