"""What all clusters of an account did, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import pytest

from daskscope import wire
from daskscope.testing import (
    START_MS,
    boot_at,
    death,
    event,
    exception,
    groups,
    identity,
    logs,
    member,
    message,
    metrics,
)
from daskscope_lambdas.testing import FakeClock

Get = Callable[..., dict[str, Any]]
Token = Callable[..., str]
Post = Callable[..., dict[str, Any]]
Drain = Callable[[], dict[str, Any]]
OTHER = "0" * 31 + "2"
CODE = wire.Code(hash=sha256(b"x.compute()").hexdigest()[:32], text="x.compute()")
LISTS = ("prefixes", "exceptions", "exceptions?group=family", "deaths", "events", "logs", "metrics", "code")


@pytest.fixture
def ask(get: Get, token: Token, post: Post, drain: Drain) -> Callable[[str], dict[str, Any]]:
    """The answer to a path below the account, which has a cluster of ada and one of bob with one of everything."""
    for number, user in enumerate(("ada", "bob")):
        post(
            message(
                cluster=f"{number + 1:032x}", boot=boot_at(START_MS, number),
                identity=identity(name=f"of {user}", user=user),
                groups=groups({"no": 0}, {"no": 1, "prefix": "read", "n_tasks": 1, "nbytes": 1 << 20}),
                exceptions=[exception(text=f"ValueError('row {number} is bad')")], deaths=[death(expected=number == 0)],
                events=[event(topic=user)], logs=logs({"no": 0}), metrics=metrics({}), codes=[CODE],
                members=[member(no=0)],
                computations=[
                    wire.Computation(no=0, start_ms=START_MS, stop_ms=START_MS + 2_000,
                                     code=[[wire.Frame(code=CODE.hash, file="job.py", line=3)]])
                ],
            )
        )  # fmt: skip
    assert drain() == {"batchItemFailures": []}
    reader = token("read")

    def body(target: str) -> dict[str, Any]:
        answer = get(f"/api/v1/acme/{target}", reader)
        return {"status": answer["statusCode"], **json.loads(answer["body"])}

    return body


Ask = Callable[[str], dict[str, Any]]


def test_every_list_is_paged(ask: Ask):
    for target in LISTS:
        joint = "&" if "?" in target else "?"
        whole = ask(target)
        assert (whole["status"], whole["skipped"], whole["as_of"]) == (200, [], "2026-11-21T08:00:00.000Z"), target
        paged: list[Any] = []
        cursor = ""
        while cursor is not None:
            page = ask(f"{target}{joint}limit=1{cursor and f'&cursor={cursor}'}")
            paged += page["items"]
            cursor = page["cursor"]
        assert paged, target
        assert paged == whole["items"], target


def test_every_list_is_narrowed_to_a_user(ask: Ask):
    for target in LISTS:
        joint = "&" if "?" in target else "?"
        of_ada, of_bob = ask(f"{target}{joint}user=ada")["items"], ask(f"{target}{joint}user=bob")["items"]
        assert (len(of_ada), len(of_bob)) == ((2, 2) if target == "prefixes" else (1, 1)), target
        assert ask(f"{target}{joint}user=nobody")["items"] == [], target


def test_a_bad_since_names_the_accepted_forms(ask: Ask):
    for target in LISTS:
        answer = ask(f"{target}{'&' if '?' in target else '?'}since=yesterday")
        assert answer["status"] == 400, target
        assert "allowed: seconds back from now (604800 is a week), or a time like" in answer["error"]["message"]


def test_prefixes_of_the_team_and_of_one_cluster(ask: Ask):
    found = ask("prefixes?sort=bytes")
    assert [(each["prefix"], each["n_clusters"], each["bytes"]) for each in found["items"]] == [
        ("read", 2, 2 << 20),
        ("sum", 2, 8_000),
    ]
    assert found["days"] == [None, "2026-11-21"]
    mine = ask("prefixes?sort=count&cluster=1")
    assert [(each["prefix"], each["n_tasks"]) for each in mine["items"]] == [("sum", 4), ("read", 1)]
    assert "days" not in mine
    assert ask("prefixes?sort=name")["error"]["message"] == "sort is 'name'; allowed: time, bytes, count."
    assert ask("prefixes?cluster=77")["status"] == 404


def test_a_family_and_its_exceptions(ask: Ask):
    (family,) = ask("exceptions?group=family&since=86400")["items"]
    assert (family["pattern"], family["count"], family["n_clusters"]) == ("row <n> is bad", 6, 2)
    assert (family["users"], family["new"]) == (["ada", "bob"], True)
    members = ask(f"exceptions?family={family['family']}")["items"]
    assert sorted(each["text"] for each in members) == ["ValueError('row 0 is bad')", "ValueError('row 1 is bad')"]
    assert ask("exceptions?family=0000000000000000")["items"] == []
    assert [each["cluster_id"] for each in ask("exceptions?cluster=2")["items"]] == [2]
    refused = ask("exceptions?group=family&cluster=1")
    assert (refused["status"], "leave `cluster`" in refused["error"]["message"]) == (400, True)
    assert ask("exceptions?group=type")["error"]["message"] == "group is 'type'; allowed: family."


def test_deaths_and_events(ask: Ask):
    assert [(each["cluster_name"], each["user"]) for each in ask("deaths?expected=true")["items"]] == [
        ("of ada", "ada")
    ]
    assert [each["cluster_name"] for each in ask("events?topic=bob")["items"]] == ["of bob"]
    assert ask(f"events?until={quote('2026-11-21T08:00:00Z')}")["items"] == []
    late = ask("deaths?since=2026-11-22T00:00:00Z&until=2026-11-21T00:00:00Z")
    assert (late["status"], "is after until" in late["error"]["message"]) == (400, True)


def test_the_same_code_and_its_hardware(ask: Ask):
    (code,) = ask("code")["items"]
    assert (code["n"], code["n_clusters"], code["code"]) == (2, 2, "x.compute()")
    assert ask("code?until=2026-11-20T00:00:00Z")["since"] == "2026-10-21T00:00:00.000Z"
    assert ask("code?since=2020-01-01")["since"] == "2020-01-01T00:00:00.000Z"
    (machines,) = ask(f"hardware?code={code['fingerprint']}")["items"]
    assert (machines["n"], machines["median_duration"], machines["instance_types"]) == (2, 2.0, [])
    assert ask("hardware")["status"] == 400
    assert "`fingerprint`" in ask("hardware")["error"]["message"]


def test_times_count_back_from_when_the_first_page_was_asked_for(ask: Ask, clock: FakeClock):
    clock.at = START_MS / 1e3 + 3_600
    first = ask("events?since=3600&limit=1")
    clock.advance(600)
    second = ask(f"events?since=3600&limit=1&cursor={first['cursor']}")
    assert len(first["items"] + second["items"]) == 2


def test_another_accounts_are_not_told(get: Get, token: Token, ask: Ask):
    reader = token("read", account="globex")
    for target in (*LISTS, "hardware?code=x"):
        assert get(f"/api/v1/acme/{target}", reader)["statusCode"] == 404, target
        answer = json.loads(get(f"/api/v1/globex/{target}", reader)["body"])
        assert answer["items"] == [], target


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_the_first_and_the_last_day_there_are_answer_like_any(ask: Ask, at: str) -> None:
    for target in (*LISTS, "hardware?code=f", "computations", "costs", "profile", "clusters"):
        joint = "&" if "?" in target else "?"
        for name in ("since", "until"):
            found = ask(f"{target}{joint}{name}={quote(at)}")
            assert found["status"] == 200, (target, name, found)


@pytest.mark.parametrize(
    ("most", "targets"),
    [
        (1000, ("exceptions", "deaths", "events", "code", "computations", "clusters/1/exceptions", "clusters/1/deaths",
                "clusters/1/events", "clusters/1/computations", "clusters/1/members")),
        (5000, ("logs", "clusters/1/logs")),
        (20_000, ("prefixes", "exceptions?group=family", "metrics", "costs", "clusters/1/groups", "clusters/1/tasks")),
    ],
)  # fmt: skip
def test_a_list_says_how_much_it_tells_at_once(ask: Ask, most: int, targets: tuple[str, ...]) -> None:
    for target in targets:
        joint = "&" if "?" in target else "?"
        assert ask(f"{target}{joint}limit={most}")["status"] == 200, target
        refused = ask(f"{target}{joint}limit={most + 1}")
        assert (refused["status"], refused["error"]["message"]) == (
            400, f"limit is '{most + 1}'; allowed: 1 to {most}.",
        ), target  # fmt: skip
