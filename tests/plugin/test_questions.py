from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dask.config
import pytest

import daskscope
from daskscope import client, errors
from daskscope.connection import LARGE_PAGE, LINES_PAGE, LONG_PAGE
from tests.plugin.api_server import Answer, ApiServer, error

STACKS = [{"prefix": None, "stack": [f"f{n} (job.py:{n})"], "count": 3, "seconds": 0.25} for n in range(2_500)]
MISMATCHES = [
    {"package": "numpy\x1b", "scheduler": "2.1.0", "others": [
        {"role": "worker", "version": "1.26.4", "n": 2}, {"role": "client", "version": None, "n": 1},
    ]},
]  # fmt: skip
SUMS = {"total": {"count": 9_000, "seconds": 750.0}, "cut": {"count": 7, "seconds": 0.5}}


def api(path: str, query: dict[str, str]) -> Answer:
    """2,500 of whatever is asked for, as many at a time as an answer may hold."""
    start, size = int(query.get("cursor", 0)), min(int(query["limit"]), 1_000)
    end = start + size
    more = {"profile": SUMS, "members": {"mismatches": MISMATCHES}}.get(path.rpartition("/")[2], {})
    return 200, {"items": STACKS[start:end], "cursor": str(end) if end < len(STACKS) else None, "skipped": [], **more}


@pytest.fixture
def server(serve: Any) -> ApiServer:
    return serve(account="acme")


@pytest.mark.parametrize(
    ("call", "path", "query"),
    [
        (lambda: client.list_members(7, role="client"), "members", {"role": "client"}),
        (lambda: client.list_workers("S/1"), "workers", {}),
        (lambda: client.list_deaths(7), "deaths", {}),
        (lambda: client.list_deaths(7, expected=False), "deaths", {"expected": "false"}),
        (lambda: client.list_events(7, topic="stealing"), "events", {"topic": "stealing"}),
        (lambda: client.logs(7), "logs", {}),
        (lambda: client.logs(7, ["tcp://x", "alice"], "boom", "36h", level="error", role="nanny", until="1h"),
         "logs", {"level": "error", "text": "boom", "workers": "tcp://x,alice", "role": "nanny", "since": "129600",
                  "until": "3600"}),
        (lambda: client.logs(7, "10.0.2.96", scheduler=False, order="asc"),
         "logs", {"workers": "10.0.2.96", "scheduler": "false", "order": "asc"}),
        (lambda: client.list_spans(7), "spans", {}),
        (lambda: client.list_groups(7), "groups", {}),
        (lambda: client.list_metrics(7, span="a"), "metrics", {"span": "a"}),
        (lambda: client.list_metrics(7, by="prefix"), "metrics", {"by": "prefix"}),
        (lambda: client.list_tasks(7, group="sum-1"), "tasks", {"group": "sum-1"}),
        (lambda: client.logs(7, level=30, since=datetime(2026, 11, 21, 9, tzinfo=timezone(timedelta(hours=1))),
                             until="2026-11-21T09:30"),
         "logs", {"level": "30", "since": "2026-11-21T08:00:00Z", "until": "2026-11-21T09:30:00Z"}),
        (lambda: client.logs(7, level="Warning", since=datetime(2026, 11, 21), until=timedelta(minutes=1)),
         "logs", {"level": "Warning", "since": "2026-11-21T00:00:00Z", "until": "60"}),
        (lambda: client.list_samples(7), "samples", {}),
        (lambda: client.list_samples(7, worker="tcp://x", points=60, since="1h"),
         "samples", {"worker": "tcp://x", "points": "60", "since": "3600"}),
        (lambda: client.get_profile(7, prefix="sum", by="prefix"), "profile", {"prefix": "sum", "by": "prefix"}),
        (lambda: client.get_profile(7, "c-1"), "profile", {"computation": "c-1"}),
        (lambda: client.get_profile(7, since="2026-11-21T09:00:00+01:00", until="5m"),
         "profile", {"since": "2026-11-21T08:00:00Z", "until": "300"}),
    ],
)  # fmt: skip
def test_each_asks_its_own_question_to_the_end(server: ApiServer, call: Any, path: str, query: dict[str, str]) -> None:
    assert call() == STACKS
    asked_path, asked_query, _ = server.asked[0]
    assert asked_path.startswith("/api/v1/acme/clusters/")
    assert asked_path.rpartition("/")[2] == path
    size = {"members": LONG_PAGE, "deaths": LONG_PAGE, "events": LONG_PAGE, "logs": LINES_PAGE}.get(path, LARGE_PAGE)
    assert asked_query == {**query, "limit": str(size)}
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "call", [lambda: client.costs(), lambda: client.list_prefixes(), lambda: client.list_exceptions(group=True)]
)
def test_sums_that_move_are_asked_for_in_one_page(server: ApiServer, call: Any) -> None:
    call()
    assert server.asked[0][1]["limit"] == str(LARGE_PAGE)


WEEK, MONTH = str(7 * 86400), str(30 * 86400)


@pytest.mark.parametrize(
    ("call", "path", "query"),
    [
        (lambda: client.list_clusters(until="1h", kind="ssh", name="etl", tag="a=b", q="x", sort="-cost"), "clusters",
         {"since": WEEK, "until": "3600", "kind": "ssh", "name": "etl", "tag": "a=b", "q": "x", "sort": "-cost"}),
        (lambda: client.list_computations(), "computations", {"since": WEEK}),
        (lambda: client.list_computations(since=None, user="ann", code="f", status="erred", sort="-cost"),
         "computations", {"user": "ann", "code": "f", "status": "erred", "sort": "-cost"}),
        (lambda: client.list_events(topic="t", user="ann"), "events", {"topic": "t", "user": "ann", "since": WEEK}),
        (lambda: client.list_deaths(expected=True, since=60), "deaths", {"expected": "true", "since": "60"}),
        (lambda: client.list_metrics(user="ann", prefix="sum"),
         "metrics", {"since": WEEK, "user": "ann", "prefix": "sum"}),
        (lambda: client.list_exceptions(group=True), "exceptions", {"since": WEEK, "group": "family"}),
        (lambda: client.list_exceptions(since=None, family="f"), "exceptions", {"family": "f"}),
        (lambda: client.list_prefixes(cluster_id=7, sort="bytes"),
         "prefixes", {"since": WEEK, "cluster": "7", "sort": "bytes"}),
        (lambda: client.list_code(user="ann"), "code", {"since": MONTH, "user": "ann"}),
        (lambda: client.compare_hardware("f", since=None), "hardware", {"code": "f"}),
        (lambda: client.logs(filter="boom", user="ann"), "logs", {"text": "boom", "since": WEEK, "user": "ann"}),
        (lambda: client.get_profile(user="ann", by="user"), "profile", {"since": WEEK, "user": "ann", "by": "user"}),
        (lambda: client.costs(by=("user", "week"), tag="team"),
         "costs", {"since": MONTH, "by": "user,week", "tag": "team"}),
        (lambda: client.list_tokens(), "tokens", {}),
    ],
)  # fmt: skip
def test_of_all_clusters_the_account_is_asked(server: ApiServer, call: Any, path: str, query: dict[str, str]) -> None:
    assert call() == STACKS
    asked_path, asked_query, _ = server.asked[0]
    assert asked_path == f"/api/v1/acme/{path}"
    assert {name: value for name, value in asked_query.items() if name != "limit"} == query


def test_a_limit_asks_for_no_more(server: ApiServer) -> None:
    assert client.logs(7, limit=2) == STACKS[:2]
    assert [query["limit"] for _, query, _ in server.asked] == ["2"]
    assert len(client.get_profile(7, limit=1_001)) == 1_001


def test_records_know_their_page_and_what_a_table_shows(server: ApiServer) -> None:
    found = client.list_deaths(7, workspace="acme")
    assert found.url == f"{server.url}/acme/analytics/clusters/7"
    assert found.columns[:2] == ["time", "worker"]


def test_bad_arguments_fail_before_anything_is_sent(server: ApiServer) -> None:
    # Types forbid them, too: who has no type checker gets the error.
    for call in (
        lambda: client.list_members(7, role="nanny"),  # type: ignore[arg-type]
        lambda: client.logs(7, role="client"),  # type: ignore[arg-type]
        lambda: client.logs(7, since="soon"),
        lambda: client.logs(7, until="-1h"),
        lambda: client.logs(7, since="2026-11-31"),
        lambda: client.logs(7, since="0001-01-01T00:00+14:00"),
        lambda: client.logs(7, level="warn"),
        lambda: client.logs(7, level=-1),
        lambda: client.get_profile(7, since="soon"),
        lambda: client.list_metrics(7, by="span"),  # type: ignore[arg-type]
        lambda: client.get_profile(7, limit=0),
        lambda: client.list_tasks(7, "a", workspace="b"),
        lambda: client.list_events(7, since="1h"),
        lambda: client.list_deaths(7, user="ann"),
        lambda: client.list_metrics(span="s"),
        lambda: client.logs(follow=True),  # type: ignore[call-overload]
        lambda: client.logs(7, ["a,b"]),
        lambda: client.logs(7, order="up"),  # type: ignore[arg-type]
        lambda: client.get_profile(7, user="ann"),
        lambda: client.list_prefixes(sort="cost"),  # type: ignore[arg-type]
        lambda: client.create_token("ann", "root"),  # type: ignore[arg-type]
        lambda: client.create_token("ann", expires="tomorrow"),
    ):
        with pytest.raises(errors.SettingsError):
            call()
    assert not server.asked


def test_a_bad_argument_is_called_by_its_name(server: ApiServer) -> None:
    with pytest.raises(errors.SettingsError, match="until is '-1h'"):
        client.logs(7, until="-1h")


def test_members_say_what_differs(server: ApiServer) -> None:
    found = daskscope.list_members(7)
    assert isinstance(found, daskscope.Members)
    assert found.mismatches == MISMATCHES
    told = "numpy  differs: scheduler 2.1.0, worker 1.26.4 (2), client none (1)"
    assert found.text().splitlines()[-1] == told
    assert repr(found).splitlines()[-2:] == ["... 2490 more", told]
    assert f"<p>{told}</p>" in found._repr_html_()


def test_what_the_server_does_not_take_is_an_error_of_its_own(tmp_path: Path) -> None:
    refusing = ApiServer(lambda *_: error(400, "bad-request", "span is 'x'; allowed: none."))
    with refusing.running(), dask.config.set({"daskscope": {"server": refusing.url, "account": "acme"}}):
        with pytest.raises(daskscope.BadRequest, match="span is 'x'; allowed: none") as caught:
            client.list_metrics(7, span="x")
        assert isinstance(caught.value, ValueError)


def test_a_profile_says_what_it_is_of(server: ApiServer) -> None:
    found = daskscope.get_profile(7)
    assert isinstance(found, daskscope.Profile)
    assert (found.total["seconds"], found.cut["count"], found.name) == (750.0, 7, "cluster 7")
    assert found.url == f"{server.url}/acme/analytics/clusters/7"
