"""A session: whom it asks, about which account, and how it ends."""

import inspect
from pathlib import Path
from typing import Any

import dask.config
import pytest

import daskscope
from daskscope import client, errors
from tests.plugin.api_server import Answer

THINGS = {"items": [{"id": 1, "name": "etl"}], "cursor": None, "total": 41}


def api(path: str, query: dict[str, str]) -> Answer:
    if path == "/api/v1/whoami":
        return 200, {"account": "acme", "name": "laptop", "scopes": ["read"]}
    if path.endswith("/tokens/k1"):
        return 200, {"key_id": "k1", "sentence": "Revoked."}
    return 200, THINGS | {"id": 1, "token": "dks_new", "cluster_id": 9, "total": 41}


def test_all_questions_go_over_one_connection_and_the_account_is_asked_once(serve: Any) -> None:
    server = serve()
    with daskscope.connect() as session:
        assert session.list_clusters() == THINGS["items"]
        assert session.list_events(3) == THINGS["items"]
    assert [path for path, *_ in server.asked].count("/api/v1/whoami") == 1
    for ask in (session.list_clusters, session.whoami, lambda: session.sql("SELECT 1"), lambda: session.close(1)):
        with pytest.raises(errors.DaskscopeError, match=r"session with http.* has ended .*daskscope\.connect\(\)"):
            ask()


def test_arguments_win_over_settings(serve: Any) -> None:
    configured, other = serve(), serve()
    with dask.config.set({"daskscope.server": configured.url}):
        session = daskscope.connect(other.url, "mine", "team")
        with session:
            session.list_clusters()
            session.list_clusters("third")
            session.list_clusters(workspace="fourth")
    assert not configured.asked
    assert [path for path, *_ in other.asked] == [f"/api/v1/{name}/clusters" for name in ("team", "third", "fourth")]
    assert {token for *_, token in other.asked} == {"Bearer mine"}
    assert repr(session) == f"<Session {other.url}>"


def test_a_list_knows_how_many_match_and_a_slice_does_not(serve: Any) -> None:
    serve()
    found = daskscope.list_clusters(limit=1)
    assert found.total == 41
    assert found[:1].total is None


def test_one_thing_knows_its_page(serve: Any) -> None:
    server = serve(account="acme")
    assert daskscope.get_cluster("S/1").url == f"{server.url}/acme/analytics/clusters/S%2F1"
    assert daskscope.get_computation("c-1").url is None
    assert isinstance(daskscope.compare(1, 2), daskscope.Comparison)
    assert server.asked[-1][1] == {"ids": "1,2"}


def test_tokens_are_made_and_ended(serve: Any) -> None:
    server = serve(account="acme")
    assert daskscope.create_token("ci", ["read", "ingest"], expires="90 days")["token"] == "dks_new"
    assert server.posted == [{"name": "ci", "scopes": ["read", "ingest"], "expires_in_s": 90 * 86400}]
    assert daskscope.create_token("ci")
    assert server.posted[-1] == {"name": "ci", "scopes": ["read"], "expires_in_s": None}
    assert daskscope.revoke_token("k1")["sentence"] == "Revoked."
    assert server.asked[-1][0] == "/api/v1/acme/tokens/k1"


def test_a_computation_names_its_cluster_for_its_profile(serve: Any) -> None:
    sums = {"count": 0, "seconds": 0.0}
    server = serve(
        lambda path, _: (200, {"cluster_id": 9} if "computations" in path else
                         {"items": [], "cursor": None, "total": sums, "cut": sums}),
        account="acme",
    )  # fmt: skip
    found = daskscope.get_profile(computation_id="c-1")
    assert found.name == "computation c-1"
    path, query, _ = server.asked[-1]
    assert (path, query["computation"]) == ("/api/v1/acme/clusters/9/profile", "c-1")


def test_each_function_is_the_session_s_method_of_that_name() -> None:
    for name in ("list_clusters", "logs", "costs", "sql"):
        method, function = getattr(daskscope.Session, name), getattr(daskscope, name)
        own = list(inspect.signature(method).parameters.values())[1:]
        assert list(inspect.signature(function).parameters.values()) == own
        assert function.__doc__ == method.__doc__
        assert (function.__module__, function.__qualname__) == (client.__name__, name)


ORIGINAL = {
    "list_clusters": ["account", "since", "user"],
    "list_computations": ["cluster_id", "scheduler_id", "account"],
    "list_events": ["cluster_id", "account"],
    "list_exceptions": ["account", "since", "user", "cluster_id", "scheduler_id"],
    "close": ["cluster_id", "account"],
    "register": ["client"],
}


@pytest.mark.parametrize("name", ORIGINAL)
def test_positional_arguments_are_those_of_the_original(name: str) -> None:
    parameters = inspect.signature(getattr(daskscope, name)).parameters.values()
    assert [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY] == ORIGINAL[name]


def test_keys_are_for_a_lake(serve: Any) -> None:
    server = serve()
    with pytest.raises(errors.SettingsError, match="keys is 'k'; allowed: None with a server"):
        daskscope.connect(server.url, keys="k")


@pytest.mark.parametrize(
    ("made", "kind"),
    [("spool", "a folder to which clusters write"), ("x", "a folder without a lake in it"), (None, "no folder")],
)
@pytest.mark.parametrize("form", [str, Path.as_uri, Path])
def test_a_folder_without_a_lake_says_what_it_is_and_what_to_do(
    tmp_path: Path, made: str | None, kind: str, form: Any
) -> None:
    folder = tmp_path / "shared"
    if made:
        (folder / made).mkdir(parents=True)
    with pytest.raises(errors.SettingsError, match=rf"{kind}.*daskscope serve --data {folder}`.*daskscope import"):
        daskscope.connect(form(folder))
    with (
        dask.config.set({"daskscope.server": folder.as_uri()}),
        pytest.raises(errors.SettingsError, match=rf"^daskscope.server is .*{kind}"),
    ):
        daskscope.list_clusters()


def test_sql_is_not_for_a_server_elsewhere(serve: Any) -> None:
    server = serve(account="acme")
    with pytest.raises(errors.BadRequest, match=r"answers no SQL.*daskscope\.connect\('s3://BUCKET/PREFIX'\)"):
        daskscope.sql("select 1")
    assert not server.asked


def test_who_asks_says_what_it_is() -> None:
    from tests.plugin.ingest_server import Server, answers

    server = Server(answers(200, {"account": "acme"}))
    with server.running() as url, daskscope.connect(url, "t") as session:
        session.create_token("x", account="acme")
    assert server.posts[0][1]["user-agent"] == f"daskscope/{daskscope.__version__}"


def test_a_word_is_no_folder() -> None:
    with pytest.raises(errors.SettingsError, match=r"server is 'acme'; allowed: .*http://HOST:PORT.* a lake\.$"):
        daskscope.connect("acme")
