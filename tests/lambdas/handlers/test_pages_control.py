"""Stopping a cluster from its page."""

from collections.abc import Callable
from typing import Any

import pytest

from daskscope.testing import CLUSTER, identity, message
from daskscope_lambdas.ports import Role
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import Browser, person

Post = Callable[..., dict[str, Any]]
PAGE = "/acme/analytics/clusters/1"


def test_from_the_button_to_the_cluster(world: LocalAdapters, post: Post) -> None:
    post(message())
    ann = person(world, "ann", acme="member")
    ann.get(PAGE)
    answer = ann.fill(f"{PAGE}/close")
    assert answer["statusCode"] == 303
    assert answer["headers"]["Location"] == "../../../../acme/analytics/clusters/1"
    row = world.clusters.find("acme", CLUSTER)
    assert (row.close_asked_by, row.close_asked_at) == ("ann", world.clock.now())
    assert '"wish": ["close"]' in post(message(seq=2))["body"].replace('":[', '": [')
    ann.get(PAGE)
    assert f"{PAGE}/close" not in ann.body, "it is asked already"
    assert "by ann" in ann.body


def test_it_is_written_down(world: LocalAdapters, post: Post) -> None:
    post(message())
    ann = person(world, "ann", acme="member")
    ann.get(PAGE)
    before = set(world.objects.list("open/audit/"))
    ann.fill(f"{PAGE}/close")
    assert len(set(world.objects.list("open/audit/")) - before) == 1


@pytest.mark.parametrize("role", ["viewer", None])
def test_who_may_not_sees_no_button_and_gets_no_further(world: LocalAdapters, post: Post, role: Role | None) -> None:
    post(message())
    browser = person(world, "bob", acme=role) if role else Browser()
    browser.get(PAGE)
    assert "Stop this cluster" not in browser.body
    browser.get("/login")
    answer = browser.post(f"{PAGE}/close", {"csrf": csrf(browser)})
    assert answer["statusCode"] == (403 if role else 401)
    assert world.clusters.find("acme", CLUSTER).close_asked_at is None


def test_another_account_s_cluster_is_not_there(world: LocalAdapters, post: Post) -> None:
    post(message())
    eve = person(world, "eve", beta="admin")
    eve.get("/beta/analytics")
    assert eve.post(f"{PAGE}/close", {"csrf": csrf(eve)})["statusCode"] == 404
    assert eve.post("/beta/analytics/clusters/1/close", {"csrf": csrf(eve)})["statusCode"] == 404
    assert world.clusters.find("acme", CLUSTER).close_asked_at is None


@pytest.mark.parametrize("why", ["lost", "stopped", "deaf"])
def test_what_cannot_be_closed_says_why(world: LocalAdapters, post: Post, clock: FakeClock, why: str) -> None:
    post(message(identity=identity(remote_close=why != "deaf"), phase="closed" if why == "stopped" else "running"))
    ann = person(world, "ann", acme="member")
    clock.advance(31 if why == "lost" else 0)
    ann.get(PAGE)
    assert "Stop this cluster" not in ann.body
    answer = ann.post(f"{PAGE}/close", {"csrf": csrf(ann)})
    assert answer["statusCode"] == 409
    assert "Cluster 1" in answer["body"]


def csrf(browser: Browser) -> str:
    return browser.body.partition('name="csrf" value="')[2].partition('"')[0]
