import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import dask.config
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daskscope
from daskscope import arguments, client, errors
from daskscope.connection import PAGE, Connection
from tests.plugin.api_server import Answer, ApiServer, error
from tests.plugin.ingest_server import Server, answers, request, talking

CLUSTERS = [{"id": number, "name": f"c{number}", "status": "running"} for number in range(250, 0, -1)]


def api(path: str, query: dict[str, str]) -> Answer:
    """An account `acme` with 250 clusters."""
    if path == "/api/v1/whoami":
        return 200, {"account": "acme", "name": "laptop", "scopes": ["read"]}
    if path == "/api/v1/acme/clusters/7":
        return 200, {**CLUSTERS[-7], "answers": {}}
    if path.startswith("/api/v1/acme/") and "limit" in query:
        start, size = int(query.get("cursor", 0)), int(query["limit"])
        end = start + size
        return 200, {"items": CLUSTERS[start:end], "cursor": str(end) if end < len(CLUSTERS) else None}
    return error(404, "not-found", f"No {path} here.")


def test_lists_are_fetched_to_the_end_with_the_token_and_the_account_asked_once(serve: Any) -> None:
    server = serve()
    found = daskscope.list_clusters()
    assert found == CLUSTERS
    paths = [path for path, _, _ in server.asked]
    assert paths == ["/api/v1/whoami"] + ["/api/v1/acme/clusters"] * 3
    assert {query["since"] for _, query, _ in server.asked[1:]} == {str(7 * 86400)}
    assert {authorization for *_, authorization in server.asked} == {"Bearer secret-1"}


@pytest.mark.parametrize("limit", [1, PAGE, PAGE + 1, 250, 1000])
def test_limit_counts_records_and_asks_for_no_more(serve: Any, limit: int) -> None:
    server = serve()
    assert client.list_clusters(limit=limit) == CLUSTERS[:limit]
    asked = sum(int(query["limit"]) for path, query, _ in server.asked if path.endswith("/clusters"))
    assert asked <= max(limit, 300)


def test_account_is_not_asked_for_when_it_is_known(serve: Any) -> None:
    server = serve(account="acme")
    client.list_clusters(limit=1)
    client.list_clusters(workspace="acme", limit=1)
    assert "/api/v1/whoami" not in [path for path, _, _ in server.asked]
    with pytest.raises(errors.SettingsError, match="workspace is 'b'"):
        client.list_clusters("a", workspace="b")


@pytest.mark.parametrize(
    ("call", "path", "query"),
    [
        (lambda: client.list_clusters(since=None, user="ann"), "/clusters", {"user": "ann"}),
        (lambda: client.list_clusters(since=None, status="lost"), "/clusters", {"status": "lost"}),
        (lambda: client.list_computations(7), "/clusters/7/computations", {}),
        (lambda: client.list_computations(scheduler_id="Scheduler-a/b"), "/clusters/Scheduler-a%2Fb/computations", {}),
        (lambda: client.list_exceptions(since="36h", user="ann"), "/exceptions", {"since": "129600", "user": "ann"}),
        (lambda: client.list_exceptions(since=None, cluster_id=7), "/exceptions", {"cluster": "7"}),
        (lambda: client.list_exceptions(since=9, scheduler_id="S-x"), "/exceptions", {"since": "9", "cluster": "S-x"}),
    ],
)  # fmt: skip
def test_each_list_asks_its_own_question(serve: Any, call: Any, path: str, query: dict[str, str]) -> None:
    server = serve(account="acme")
    assert call() == CLUSTERS
    asked_path, asked_query, _ = server.asked[0]
    assert asked_path == "/api/v1/acme" + path
    assert asked_query == {**query, "limit": str(PAGE)}


def test_one_cluster(serve: Any) -> None:
    serve()
    assert client.get_cluster(7)["name"] == "c7"
    with pytest.raises(errors.NotFound, match="No /api/v1/acme/clusters/8 here"):
        client.get_cluster(8)


def test_records_know_their_page(serve: Any) -> None:
    server = serve()
    assert client.list_events(7).url == f"{server.url}/acme/analytics/clusters/7"
    assert client.list_clusters(since=None, user="ann").url == f"{server.url}/acme/analytics?user=ann"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.NotLoggedIn),
        (403, errors.PermissionDenied),
        (404, errors.NotFound),
        (422, errors.BadRequest),
        (429, errors.ServerError),
        (500, errors.ServerError),
        (503, errors.ServerError),
    ],
)
def test_a_status_becomes_its_error_with_the_servers_words(
    serve: Any, status: int, kind: type[errors.DaskscopeError]
) -> None:
    serve(lambda *_: error(status, "some-code", "What, why, what to do."))
    with pytest.raises(errors.DaskscopeError, match=r"What, why, what to do\.") as caught:
        client.list_clusters()
    assert type(caught.value) is kind


def test_a_conflict_is_one_of_a_cluster_only_where_the_server_says_so(serve: Any) -> None:
    serve(lambda *_: error(409, "conflict", "ann is the last admin."))
    with pytest.raises(errors.Conflict, match=r"^ann is the last admin\.$") as caught:
        client.list_clusters()
    assert type(caught.value) is errors.Conflict


def test_not_logged_in_says_where_a_token_was_looked_for_and_never_shows_it(serve: Any, data: Path) -> None:
    server = serve(lambda *_: error(401, "not-logged-in", "No such token."))
    with pytest.raises(errors.NotLoggedIn) as caught:
        client.list_clusters()
    for word in ("daskscope.token", "DASK_DASKSCOPE__TOKEN", str(data / "servers" / f"{server.port}.json")):
        assert word in str(caught.value)
    assert "secret-1" not in str(caught.value)


def test_no_token_sends_no_header(serve: Any) -> None:
    server = serve(lambda *_: error(401, "not-logged-in", "No token."), token=None)
    with pytest.raises(errors.NotLoggedIn, match=r"No token for http://127\.0\.0\.1"):
        client.list_clusters()
    assert server.asked[0][2] is None


SAID = "no secret-1 here\nforged\x1b[2J\u202e"
CLEAN = "no [secret] here forged [2J"


def test_what_the_server_says_is_one_line_without_the_token(serve: Any) -> None:
    serve(lambda *_: error(400, "bad-request", SAID))
    with pytest.raises(errors.BadRequest) as caught:
        client.list_clusters()
    assert str(caught.value) == CLEAN


def test_so_is_where_it_redirects_to(serve: Any) -> None:
    serve(lambda *_: (307, {}, {"Location": "http://h/secret-1"}))
    with pytest.raises(errors.ServerError, match=r"redirects to http://h/\[secret\],"):
        client.list_clusters()


@pytest.mark.parametrize("message", ["", "\n", 7, ["secret-1"]])
def test_a_server_that_says_nothing_is_told_by_its_status(serve: Any, message: Any) -> None:
    serve(lambda *_: (*error(409, "not-closable", message), {"Daskscope-Version": "0.1.0"}))
    with pytest.raises(errors.NotClosable, match=r"answered HTTP 409 Conflict\.$"):
        client.list_clusters()


@pytest.mark.parametrize("status", [403, 404, 501])
def test_what_answers_in_a_server_s_place_is_said_to_be_no_server(serve: Any, status: int) -> None:
    serve(lambda *_: (status, b"<html>Not here."))
    with pytest.raises(
        errors.DaskscopeError, match=f"HTTP {status} .*so it is no daskscope server, or something stands"
    ):
        client.list_clusters()


def test_a_server_without_tls_is_said_to_be_asked_by_http(serve: Any) -> None:
    address = serve(lambda *_: (200, {})).url.removeprefix("http")
    with daskscope.connect(f"https{address}") as team, pytest.raises(errors.ServerUnreachable) as caught:
        team.whoami()
    assert f"is it http{address}?" in str(caught.value)


def test_a_status_line_that_shows_the_token_is_not_shown(data: Path) -> None:
    def talk(connection: socket.socket, leave: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 418 is " + request(connection).split(b"Bearer ")[1].split(b"\r\n")[0] + b"\r\n")
        connection.sendall(b"content-length: 0\r\n\r\n")

    with talking(talk) as address:
        configured = {"data": str(data), "server": f"http://{address}", "token": "secret-1"}
        with dask.config.set({"daskscope": configured}), pytest.raises(errors.ServerError) as caught:
            client.list_clusters()
    assert "answered HTTP 418 is [secret] without the header" in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:{}/api/v1/whoami", "http://ada:secret@127.0.0.1:{}", "//127.0.0.1:{}"]
)
def test_redirects_are_not_followed(serve: Any, status: int, place: str) -> None:
    elsewhere = serve()
    server = serve(lambda *_: (status, {}, {"Location": place.format(elsewhere.port)}))
    with pytest.raises(errors.ServerError, match=r"redirects to .*127\.0\.0\.1"):
        client.list_clusters()
    assert len(server.asked) == 1
    assert not elsewhere.asked


def test_a_cookie_is_not_sent_back(data: Path) -> None:
    server = Server(answers(202, {}, Set_Cookie="id=1; Path=/; Max-Age=99999"))
    configured = dask.config.set({"daskscope": {"data": str(data)}})
    with (
        server.running() as url,
        configured,
        dask.config.set({"daskscope.server": url}),
        Connection(account="acme") as connection,
    ):
        for _ in range(2):
            connection.post("/acme/clusters/1/close", {})
    assert ["cookie" in headers for _, headers, _ in server.posts] == [False, False]


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b"", b"\xff"])
def test_something_else_than_a_daskscope_server(serve: Any, body: bytes) -> None:
    serve(lambda *_: (200, body))
    with pytest.raises(errors.ServerError, match="is it a daskscope server"):
        client.list_clusters()
    serve(lambda *_: (502, body))
    with pytest.raises(errors.ServerError, match="HTTP 502 Bad Gateway"):
        client.list_clusters()


def test_a_server_that_repeats_a_page_is_not_asked_for_ever(serve: Any) -> None:
    serve(lambda *_: (200, {"items": [{"id": 1}], "cursor": "again"}), account="acme")
    with pytest.raises(errors.ServerError, match="twice"):
        client.list_clusters()


def test_unreadable_files_are_named(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    answer = {"items": [], "cursor": None, "as_of": None, "skipped": ["open/events/bad.parquet"]}
    serve(lambda *_: (200, answer), account="acme")
    assert client.list_events(7) == []
    assert "open/events/bad.parquet" in caplog.text


def test_unreachable_says_what_to_do(serve: Any) -> None:
    with ApiServer(api).running() as gone:
        pass
    serve(server=gone.url)
    with pytest.raises(errors.ServerUnreachable, match=r"No answer from .*daskscope serve"):
        client.list_clusters()


def test_no_server_at_all_says_what_to_do(tmp_path: Path) -> None:
    with (
        dask.config.set({"daskscope": {"data": str(tmp_path)}}),
        pytest.raises(errors.ServerUnreachable, match=r"8790.json.*daskscope serve.*daskscope\.server"),
    ):
        client.list_clusters()


def test_a_folder_in_place_of_a_server_says_what_to_do_with_it() -> None:
    with (
        dask.config.set({"daskscope.server": "file:///shared/folder"}),
        pytest.raises(errors.SettingsError, match=r"daskscope serve --data /shared/folder.*daskscope import /shared"),
    ):
        client.list_clusters()


def test_a_proxy_never_sees_what_is_for_this_machine(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve()
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server = serve()
    client.list_clusters(limit=1)
    assert server.asked
    assert not proxy.asked


def _transport_errors(kind: type[httpx.TransportError]) -> Iterator[type[httpx.TransportError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _transport_errors(child)


OTHERS = [httpx.DecodingError, httpx.TooManyRedirects]


def test_every_error_of_httpx_is_mapped(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serve()
    for kind in [*_transport_errors(httpx.TransportError), *OTHERS]:

        def fail(*_: Any, kind: type[httpx.RequestError] = kind, **__: Any) -> None:
            raise kind("as httpx says")

        monkeypatch.setattr(httpx.Client, "request", fail)
        expected = errors.ServerError if kind in OTHERS else errors.ServerUnreachable
        with pytest.raises(expected, match="as httpx says"), Connection(account="acme") as connection:
            connection.get("/whoami", {})
    known = {*_transport_errors(httpx.TransportError), *OTHERS}
    assert set(httpx.RequestError.__subclasses__()) <= known, "httpx has a new kind of error: map it in remote.py"


@pytest.mark.parametrize(
    ("since", "seconds"),
    [("7 days", 604800), ("36h", 129600), ("1500 ms", 2), (timedelta(hours=1), 3600), (90, 90), (0.5, 1), (None, None)],
)
def test_since(since: Any, seconds: int | None) -> None:
    assert arguments.seconds(since) == seconds


@pytest.mark.parametrize(
    "since", ["", "yesterday", "7 parsecs", "-1h", 0, -5, float("nan"), float("inf"), object(), [1]]
)
def test_a_bad_since_names_what_is_allowed(since: Any) -> None:
    with pytest.raises(errors.SettingsError, match="'7 days'"):
        arguments.seconds(since)


@given(st.one_of(st.text(), st.floats(), st.integers(), st.binary()))
def test_any_since_is_seconds_or_a_settings_error(since: Any) -> None:
    with suppress(errors.SettingsError):
        seconds = arguments.seconds(since)
        assert seconds is not None
        assert seconds >= 1


def test_bad_arguments_fail_before_anything_is_sent(serve: Any) -> None:
    server = serve()
    for call in (
        lambda: client.list_clusters(limit=0),
        lambda: client.list_clusters(status="dead"),  # type: ignore[arg-type]
        lambda: client.list_computations(7, user="ann"),
        lambda: client.compare(7),
        lambda: client.list_computations(1, "Scheduler-x"),
        lambda: client.list_exceptions(cluster_id=1, scheduler_id="Scheduler-x"),
        lambda: client.list_clusters("Not An Account"),
    ):
        with pytest.raises(errors.SettingsError):
            call()
    assert not server.asked


@pytest.mark.parametrize("body", [{}, {"items": None}, {"items": {}}, {"items": [1]}])
@pytest.mark.parametrize("call", [
    lambda: client.get_cluster(1), lambda: client.list_members(1), lambda: client.get_profile(1),
    lambda: client.get_profile(computation_id="a-1"), lambda: client.close(1), lambda: client.list_clusters(),
])  # fmt: skip
def test_json_of_somebody_else_is_told_as_that(serve: Any, body: dict[str, Any], call: Any) -> None:
    serve(lambda *_: (200, body), account="acme")
    with pytest.raises(errors.ServerError, match=r"without .*is it a daskscope server"):
        call()


def test_an_account_that_is_not_told_is_an_error(serve: Any) -> None:
    serve(lambda *_: (200, {}))
    with pytest.raises(errors.ServerError, match="without account"):
        client.list_clusters()


@pytest.mark.parametrize("limit", ["5", 0, -1, 2.5, True])
def test_a_limit_that_is_no_number_of_records_is_named(serve: Any, limit: Any) -> None:
    server = serve(account="acme")
    with pytest.raises(errors.SettingsError, match=r"limit is .*whole number of 1 or more"):
        client.list_clusters(limit=limit)
    assert not server.asked
