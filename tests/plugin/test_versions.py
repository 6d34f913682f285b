"""Server and client of different releases: which of the two to upgrade."""

from typing import Any

import pytest

import daskscope
from daskscope.api_version import API
from tests.plugin.api_server import Answer, error

UNKNOWN = error(404, "not-found", "Nothing answers GET /api/v1/acme/costs here.")


def headed(answer: Answer, **headers: str) -> Answer:
    return answer[0], answer[1], {name.replace("_", "-"): value for name, value in headers.items()}


def test_a_later_api_is_not_taken_for_what_it_is_not(serve: Any) -> None:
    answer = headed((200, {"items": []}), Daskscope_Version="9.1.0\x1b", Daskscope_Api=str(API + 1))
    server = serve(lambda *_: answer, account="acme")
    with pytest.raises(daskscope.VersionMismatch) as caught:
        daskscope.list_clusters()
    assert str(caught.value) == (
        f"{server.url} runs daskscope 9.1.0, whose answers this client, {daskscope.__version__}, does not understand. "
        "Upgrade the client: pip install -U daskscope"
    )


@pytest.mark.parametrize("headers", [{}, {"Daskscope_Version": "0.0.9", "Daskscope_Api": str(API)}])
def test_an_earlier_server_without_a_route_is_to_be_upgraded(serve: Any, headers: dict[str, str]) -> None:
    serve(lambda *_: headed(UNKNOWN, **headers), account="acme")
    with pytest.raises(daskscope.VersionMismatch, match=r"Upgrade the server: pip install -U 'daskscope\[serve\]'"):
        daskscope.costs()


@pytest.mark.parametrize("api", ["", str(API), "x", "-3", "²"])
def test_of_the_same_release_what_is_not_there_is_not_found(serve: Any, api: str) -> None:
    headers = {"Daskscope_Version": daskscope.__version__, "Daskscope_Api": api.encode().decode("latin-1")}
    serve(lambda *_: headed(UNKNOWN, **headers), account="acme")
    with pytest.raises(daskscope.NotFound, match="Nothing answers GET"):
        daskscope.costs()


@pytest.mark.parametrize("status", [200, 404])
def test_an_earlier_api_is_not_taken_for_what_it_is_not(serve: Any, status: int) -> None:
    answer = (200, {"items": [], "cursor": None}) if status == 200 else UNKNOWN
    serve(lambda *_: headed(answer, Daskscope_Version="0.1.0", Daskscope_Api=str(API - 1)), account="acme")
    with pytest.raises(daskscope.VersionMismatch, match=r"Upgrade the server: pip install -U 'daskscope\[serve\]'"):
        daskscope.list_clusters()


def test_a_cluster_that_is_not_there_says_nothing_of_releases(serve: Any) -> None:
    serve(lambda *_: error(404, "not-found", "No cluster 7 in account acme."), account="acme")
    with pytest.raises(daskscope.NotFound, match="No cluster 7"):
        daskscope.get_cluster(7)
