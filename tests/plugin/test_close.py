"""`daskscope.close`: what is posted, and what comes back."""

from typing import Any

import pytest

from daskscope import client, errors
from tests.plugin.api_server import Answer, error

TOLD = {
    "asked_at": "2026-11-21T08:00:00.000Z",
    "by": "laptop",
    "reason": None,
    "expected_by": "2026-11-21T08:00:10.000Z",
    "sentence": "Cluster 7 is asked to close.",
}


def api(path: str, query: dict[str, str]) -> Answer:
    if path == "/api/v1/whoami":
        return 200, {"account": "acme", "name": "laptop", "scopes": ["control"]}
    return 202, TOLD


def test_it_is_posted_with_the_token_and_its_reason(serve: Any) -> None:
    server = serve()
    assert client.close(7, reason="nobody needs it") == TOLD
    assert server.asked[-1] == ("/api/v1/acme/clusters/7/close", {}, "Bearer secret-1")
    assert server.posted == [{"reason": "nobody needs it"}]


@pytest.mark.parametrize(("cluster", "place"), [("Scheduler-1", "Scheduler-1"), ("../../x", "..%2F..%2Fx")])
def test_whatever_names_a_cluster_stays_one_part_of_the_path(serve: Any, cluster: str, place: str) -> None:
    server = serve()
    client.close(cluster, workspace="team")
    assert [path for path, _, _ in server.asked] == [f"/api/v1/team/clusters/{place}/close"]
    assert server.posted == [{}]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, errors.NotLoggedIn), (403, errors.PermissionDenied), (404, errors.NotFound), (409, errors.NotClosable),
     (410, errors.Deleted), (500, errors.ServerError)],
)  # fmt: skip
def test_a_refusal_is_the_error_of_its_kind(serve: Any, status: int, kind: type[Exception]) -> None:
    serve(lambda *_: error(status, "code", "What, why."))
    with pytest.raises(kind, match="What, why"):
        client.close(7, "acme")
