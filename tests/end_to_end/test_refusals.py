"""What is refused, and how it is told: the same words in both worlds."""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Mapping

import dask.config
import httpx
import pytest

import daskscope
from daskscope import wire
from daskscope.compression import MAX_MESSAGE_BYTES
from daskscope.testing import message
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import eventually
from tests.end_to_end.places import Place

pytestmark = pytest.mark.timeout(600)  # the first of them deploys


def told(answer: httpx.Response) -> tuple[int, str]:
    """Status and code, from the one shape that every error of the API has."""
    assert answer.headers["content-type"] == "application/json", answer.text
    error = answer.json()["error"]
    assert set(error) <= {"code", "message", "place"}
    assert error["message"]
    return answer.status_code, error["code"]


def test_tokens_that_are_no_good(place: Place) -> None:
    unknown = place.token[:-8] + ("a" if place.token[-8] != "a" else "b") + place.token[-7:]
    for token in ("", "nonsense", unknown):
        assert told(place.get("/api/v1/whoami", token)) == (401, "not-logged-in")
        assert told(place.post_body(b"", token)) == (401, "not-logged-in")
    revoked, row = place.mint("ingest", "read")
    place.revoke(row.key_id)
    for answer in (place.get("/api/v1/whoami", revoked), place.post(message(), revoked)):
        assert told(answer) == (401, "not-logged-in")
        assert "was revoked: ask for a new one" in answer.text
    with (
        dask.config.set({"daskscope.token": revoked}),
        pytest.raises(daskscope.NotLoggedIn, match="in Dask's configuration"),
    ):
        daskscope.list_clusters()


def test_tokens_do_what_they_were_made_for(place: Place) -> None:
    reads, _ = place.mint("read")
    assert told(place.post(message(), reads)) == (403, "permission-denied")
    assert told(place.get(f"/api/v1/{place.account}/clusters", place.ingest_token)) == (403, "permission-denied")
    with (
        dask.config.set({"daskscope.token": place.ingest_token}),
        pytest.raises(daskscope.PermissionDenied, match="this needs one that may read"),
    ):
        daskscope.list_clusters()


def test_a_scheduler_that_is_refused_says_so_once_and_works_on(cluster: Cluster) -> None:
    reads, _ = cluster.place.mint("read")
    with dask.config.set({"daskscope.ingest-token": reads}):
        daskscope.register(cluster.client)
    said = eventually(lambda: [line for line in cluster.scheduler.output if "HTTP 403" in line], bool)
    assert "WARNING" in said[0]
    assert cluster.client.submit(sum, [1, 2]).result() == 3
    assert [line for line in cluster.scheduler.output if "HTTP 403" in line] == said[:1]
    assert daskscope.list_clusters() == []


def test_another_accounts_clusters_are_not_there(place: Place) -> None:
    mine = message(cluster=secrets.token_hex(16))
    number = place.post(mine).raise_for_status().json()["id"]
    theirs, _ = place.mint("ingest", "read", account="somebody-else")
    assert place.get(f"/api/v1/{place.account}/clusters/{number}").is_success
    for path in (f"clusters/{number}", f"clusters/{mine.cluster}", "clusters", "exceptions"):
        assert told(place.get(f"/api/v1/{place.account}/{path}", theirs)) == (404, "not-found")
    assert told(place.get(f"/api/v1/somebody-else/clusters/{mine.cluster}", theirs)) == (404, "not-found")
    assert told(place.post(mine, theirs)) == (404, "not-found")
    nothing = {"items": [], "cursor": None, "total": 0, "as_of": None, "skipped": []}
    assert place.get("/api/v1/somebody-else/clusters", theirs).json() == nothing


def test_routes_that_are_not_there(place: Place) -> None:
    for path in ("/api/v1/nowhere/at/all", "/api/v2/whoami", "/api/v1/telemetry", f"/api/v1/{place.account}/nothing"):
        assert told(place.get(path)) == (404, "not-found")
    for path in ("/nowhere/at/all", f"/{place.account}/analytics/clusters/999999", "/static/nothing.css"):
        page = place.page(path)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "Not found" in page.text


def test_bodies_that_are_not_taken(place: Place) -> None:
    bomb = gzip.compress(b"[" * (MAX_MESSAGE_BYTES + 1))
    refused: tuple[tuple[bytes, Mapping[str, str], int, str], ...] = (
        (b"{}", {"Content-Type": "text/html"}, 415, "unsupported-media-type"),
        (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported-media-type"),
        (b"{}", {"Content-Encoding": "br"}, 415, "unsupported-media-type"),
        (b"x" * (wire.MAX_BODY_BYTES + 1), {}, 413, "too-large"),
        (bomb, {"Content-Encoding": "gzip"}, 413, "too-large"),
        (b"no gzip", {"Content-Encoding": "gzip"}, 422, "bad-message"),
        (b"", {}, 422, "bad-message"),
        (b"\xff\xfe{}", {}, 422, "bad-message"),
        (b'{"v":99}', {"Content-Type": "application/json"}, 422, "bad-message"),
    )
    for body, headers, status, code in refused:
        assert told(place.post_body(body, place.ingest_token, headers)) == (status, code), (body[:20], headers)
    # A message as somebody without our plugin might send it.
    plain = wire.encode(message(cluster=secrets.token_hex(16)))
    taken = place.post_body(plain, place.ingest_token, {"Content-Type": "application/json"})
    number = taken.raise_for_status().json()["id"]
    assert [cluster["id"] for cluster in daskscope.list_clusters()] == [number], "what was refused left nothing behind"
