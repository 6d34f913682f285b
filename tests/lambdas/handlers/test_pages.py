import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import identity, message
from daskscope_lambdas.env import AwsEnv, Env
from daskscope_lambdas.handlers import api, house
from daskscope_lambdas.ports import Membership
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import Adapters
from tests.lambdas.handlers.conftest import event

Get = Callable[..., dict[str, Any]]
Post = Callable[..., dict[str, Any]]
Token = Callable[..., str]


@pytest.fixture
def local(world: Adapters, env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without a login, as on a loopback address."""
    monkeypatch.setattr(house, "read", lambda: dataclasses.replace(env, pages="open"))
    house.env.cache_clear()


def test_the_root_leads_to_the_account_by_a_relative_link(get: Get, local: None):
    answer = get("/")
    assert (answer["statusCode"], answer["headers"]["Location"]) == (303, "local/analytics")


def test_without_a_login_the_page_says_how(get: Get, token: Token):
    answer = get("/acme/analytics")
    assert answer["statusCode"] == 401
    assert '<input type="password" name="token"' in answer["body"]
    assert 'name="next" value="acme/analytics"' in answer["body"]


def test_only_aws_speaks_for_its_host(get: Get, monkeypatch: pytest.MonkeyPatch):
    assert "Strict-Transport-Security" not in get("/login")["headers"]
    there = AwsEnv(bucket="b", table="t", queue_url="q", keys="/k")
    monkeypatch.setattr(house, "read", lambda: there)
    house.env.cache_clear()
    assert get("/login")["headers"]["Strict-Transport-Security"] == "max-age=31536000"


def test_a_cookie_that_a_gateway_left_in_its_header_is_as_good(token: Token):
    asked = event("GET", "/acme/analytics", {"cookie": f"other=1; daskscope={token('read').removeprefix('Bearer ')}"})
    del asked["cookies"]
    assert api.handler(asked, None)["statusCode"] == 200


def test_first_run_teaches_and_no_match_does_not(get: Get, post: Post, local: None):
    assert "daskscope.register()" in get("/local/analytics")["body"]
    post(message(), account="local")
    body = get("/local/analytics?user=nobody")["body"]
    assert "No cluster matches user <strong>nobody</strong>" in body
    assert "daskscope.register()" not in body


def test_every_page_carries_its_headers(get: Get, post: Post, local: None):
    post(message(), account="local")
    for path in ("/local/analytics", "/local/analytics/clusters/1", "/nonsense/x", "/c/" + "f" * 32):
        headers = get(path)["headers"]
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'self'" in headers["Content-Security-Policy"]
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "same-origin")


def test_pages_have_no_inline_script_or_style_and_no_absolute_link(get: Get, post: Post, local: None):
    post(message(identity=identity(dashboard=None)), account="local")
    for path in ("/local/analytics", "/local/analytics/clusters/1"):
        body = get(path)["body"]
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=", body)
        links = re.findall(r'(?:href|src|action)="([^"]*)"', body)
        assert links
        assert not [link for link in links if re.match(r"/|[a-z]+:", link)]


def test_a_user_that_no_token_proves_is_marked(get: Get, post: Post, local: None, world: Adapters):
    member = Membership(account="local", user="ann", role="member", added_at=1.0, added_by="ops")
    world.users.put(member)
    personal, _ = mint(world.tokens, world.clock, "local", ["ingest"], "laptop", user="ann")
    post(message(), account="local")
    post(message(cluster="5" * 32), authorization=f"Bearer {personal}")
    marks = {n: ">claimed</span>" in get(f"/local/analytics/clusters/{n}")["body"] for n in (1, 2)}
    assert marks == {1: True, 2: False}
    assert ">ann</span>" in get("/local/analytics/clusters/2")["body"]


def test_what_it_cost_stands_in_large_letters(get: Get, post: Post, local: None):
    post(message(totals=wire.Totals(thread_us=3600 * 10**6, peak_memory_bytes=0)), account="local")
    body = get("/local/analytics/clusters/1")["body"]
    (said,) = re.findall(r'<dt>What did it cost\?</dt><dd class="verdict">\s*<span class="state">([^<]*)</span>', body)
    assert re.fullmatch(r"≈ \$[0-9.]+", said)


def test_by_scheduler_waits_and_then_leads_to_the_cluster(get: Get, post: Post, local: None):
    dashed = "5e0cb1a9-4f7d-4c2e-9ab8-3d6f12e7c5d0"
    waiting = get(f"/c/Scheduler-{dashed}")
    assert waiting["statusCode"] == 404
    assert 'http-equiv="refresh"' in waiting["body"]
    post(message(), account="local")
    for reference in (dashed, f"Scheduler-{dashed}", dashed.replace("-", "")):
        answer = get(f"/c/{reference}")
        assert (answer["statusCode"], answer["headers"]["Location"]) == (303, "../local/analytics/clusters/1")
    assert get("/c/nonsense")["statusCode"] == 404


def test_a_flawed_file_is_named_on_the_page(get: Get, post: Post, local: None, world: Adapters):
    post(message(), account="local")
    world.objects.put_new("open/events/day=2026-11-21/broken.parquet", b"PAR1 not really")
    body = get("/local/analytics/clusters/1")["body"]
    assert "1 file of the lake could not be read" in body
    assert "broken.parquet" in body


def test_static_files_and_health(get: Get):
    assert get("/healthz")["body"] == "ok\n"
    assert get("/static/style.css")["headers"]["Content-Type"].startswith("text/css")
    assert get("/static/__init__.py")["statusCode"] == 404
