"""What clusters cost, and at which prices, as the API answers it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from daskscope import wire
from daskscope.testing import CLUSTER, START_MS, identity, member, message, metrics
from daskscope_lambdas.handlers import compact
from daskscope_lambdas.service.cost import priced
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.price_store import PriceKeeper
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters

Get = Callable[..., dict[str, Any]]
HOUR_MS = 3_600_000
M6I = wire.Hardware(
    cores=2, memory_bytes=8 << 30, provider="aws", instance_type="m6i.large", region="us-east-1", lifecycle="on-demand"
)


def body(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["statusCode"] == 200, answer
    return json.loads(answer["body"])


@pytest.fixture
def reader(token: Callable[..., str]) -> str:
    return token("read")


@pytest.fixture
def two_hours(
    post: Callable[..., dict[str, Any]], drain: Callable[[], dict[str, Any]], world: LocalAdapters, clock: FakeClock
) -> None:
    """A cluster of two machines that computed for half of its two hours, a quarter in vain."""
    clock.advance(2 * 3600)
    post(
        message(
            made_at_ms=START_MS + 2 * HOUR_MS,
            uptime_us=2 * HOUR_MS * 1000,
            identity=identity(user="ada", tags={"team": "ml"}),
            totals=wire.Totals(n_workers=2, n_threads=4, thread_us=8 * HOUR_MS * 1000,
                               action_us={"compute": 2 * HOUR_MS * 1000}),
            hardware=[M6I],
            members=[member(no=n, id=f"tcp://10.0.0.{n}:1", host=f"10.0.0.{n}", joined_ms=START_MS, hardware=0)
                     for n in range(2)],
            metrics=metrics({"activity": "failed", "value": 2 * 3600.0}),
        )
    )  # fmt: skip
    assert drain() == {"batchItemFailures": []}


@pytest.mark.parametrize("sums", ["costs?by=cluster&", "prefixes?", "exceptions?group=family&"])
def test_a_page_may_hold_all_sums_that_move(get: Get, reader: str, two_hours: None, sums: str) -> None:
    assert body(get(f"/api/v1/acme/{sums}limit=20000", reader))["cursor"] is None


def test_one_cluster_measured_by_the_machines_that_it_told_of(get: Get, reader: str, two_hours: None) -> None:
    found = body(get("/api/v1/acme/clusters/1", reader))
    basis = "measured: 4 h of 2 m6i.large (on demand, us-east-1) at list prices of 2026-01"
    answer = found["answers"]["cost"]
    assert (answer["verdict"], answer["basis"]) == ("measured", basis)
    assert answer["sentence"] == (
        f"$0.38, {basis}. $0.19 of it for thread time in which no task that has ended ran, "
        "$0.096 for tasks that failed."
    )
    assert (answer["dollars"], answer["machine_hours"], answer["thread_hours"]) == (pytest.approx(4 * 0.096), 4, 8)


def test_all_clusters_over_days_and_once_the_catalog_has_them(get: Get, reader: str, two_hours: None) -> None:
    (before,) = body(get("/api/v1/acme/costs", reader))["items"]
    assert (before["user"], before["quality"], before["n_clusters"]) == ("ada", "estimated", 1)
    compact.handler({}, None)
    answer = body(get("/api/v1/acme/costs?by=user,week&since=604800", reader))
    (row,) = answer["items"]
    assert row == {
        "user": "ada", "week": "2026-11-16", "n_clusters": 1, "thread_hours": 8, "machine_hours": 4,
        "dollars": pytest.approx(4 * 0.096), "idle": pytest.approx(2 * 0.096), "failed": pytest.approx(0.096),
        "quality": "measured", "measured_share": 1,
        "basis": "measured: all by machines and prices that are known, at list prices of 2026-01",
    }  # fmt: skip
    assert {name: answer[name] for name in ("cursor", "skipped", "days", "currency")} == {
        "cursor": None, "skipped": [], "days": ["2026-11-14", "2026-11-21"], "currency": "USD",
    }  # fmt: skip
    assert answer["sums"] == {name: row[name] for name in answer["sums"]}
    assert answer["saved"] == {"dollars": 0.0, "n_clusters": 0, "sentence": None}
    (tagged,) = body(get("/api/v1/acme/costs?by=tag&tag=team", reader))["items"]
    assert (tagged["tag"], tagged["dollars"]) == ("ml", row["dollars"])
    assert body(get("/api/v1/acme/costs?user=bob", reader))["items"] == []
    assert body(get("/api/v1/acme/costs?until=2026-11-20", reader))["items"] == []


def test_an_accounts_own_prices(get: Get, reader: str, two_hours: None, world: LocalAdapters, clock: FakeClock) -> None:
    assert body(get("/api/v1/acme/prices", reader))["digest"] == packaged().digest
    PriceKeeper(world.objects, clock).set("acme", b"instance_types: {m6i.large: 1}", "mine.yaml")
    clock.advance(60)
    told = body(get("/api/v1/acme/prices", reader))
    assert (told["instance_types"], told["sources"][-1]) == ({"m6i.large": 1}, "account acme: 1 instance types")
    compact.handler({}, None)
    (row,) = body(get("/api/v1/acme/costs", reader))["items"]
    assert row["dollars"] == pytest.approx(4)
    found = body(get("/api/v1/acme/clusters/1", reader))["answers"]["cost"]
    assert found["basis"] == "measured: 4 h of 2 m6i.large (on demand, us-east-1) at prices of account acme"


def test_a_cluster_costs_the_same_wherever_it_is_told(
    get: Get, reader: str, two_hours: None, world: LocalAdapters
) -> None:
    compact.handler({}, None)
    found = body(get("/api/v1/acme/clusters/1", reader))
    (listed,) = body(get("/api/v1/acme/clusters", reader))["items"]
    assert found["cost"] == listed["cost"]
    assert found["cost"]["dollars"] == found["answers"]["cost"]["dollars"]
    by_threads = priced(world.clusters.find("acme", CLUSTER), None, packaged())
    assert by_threads.quality == "estimated"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("by=color", "by has 'color'; allowed: user, tag, day, week, instance_type, cluster, kind, with"),
        ("by=tag", "by=tag needs the key of the tag, like by=tag&tag=project, and nothing else takes one."),
        ("by=user&tag=team", "by=tag needs the key of the tag"),
        ("since=yesterday", "since is 'yesterday'; allowed: "),
    ],
)  # fmt: skip
def test_a_bad_request_says_what_is_allowed(get: Get, reader: str, query: str, said: str) -> None:
    answer = get(f"/api/v1/acme/costs?{quote(query, safe='=&')}", reader)
    assert answer["statusCode"] == 400
    assert said in json.loads(answer["body"])["error"]["message"]


def test_others_are_kept_out(get: Get, token: Callable[..., str]) -> None:
    for path in ("costs", "prices"):
        assert get(f"/api/v1/acme/{path}")["statusCode"] == 401
        assert get(f"/api/v1/acme/{path}", token("ingest"))["statusCode"] == 403
        assert get(f"/api/v1/acme/{path}", token("read", account="globex"))["statusCode"] == 404
