import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import START_MS, identity, message
from daskscope_lambdas.handlers import answering
from daskscope_lambdas.service.catalog_files import CatalogFiles
from daskscope_lambdas.service.cataloguer import Cataloguer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters

Get = Callable[..., dict[str, Any]]
Post = Callable[..., dict[str, Any]]
Token = Callable[..., str]


@pytest.fixture
def team(post: Post, clock: FakeClock) -> None:
    """Six clusters; the last one has closed."""
    for n in range(6):
        who = identity(user="ada" if n % 2 else "bob", name=f"job-{n}", kind="LocalCluster", started_at_ms=START_MS + n)
        totals = wire.Totals(n_workers=1, peak_workers=n, thread_us=3_600_000_000 * n, n_threads=2)
        post(message(cluster=f"{n:032x}", identity=who, totals=totals, phase="closed" if n == 5 else "running"))


@pytest.fixture
def asked(get: Get, token: Token) -> Callable[[str], dict[str, Any]]:
    bearer = token("read")

    def ask(query: str) -> dict[str, Any]:
        answer = get(f"/api/v1/acme/clusters?{query}", bearer)
        return {"status": answer["statusCode"], **json.loads(answer["body"])}

    return ask


Asked = Callable[[str], dict[str, Any]]


def ids(answer: dict[str, Any]) -> list[int]:
    assert answer["status"] == 200, answer
    return [item["id"] for item in answer["items"]]


@pytest.mark.parametrize("made", [False, True])
def test_the_list_with_and_without_a_catalog(asked: Asked, team: None, world: Adapters, made: bool) -> None:
    if made:
        assert Cataloguer(world).run() == 1
    assert ids(asked("")) == [6, 5, 4, 3, 2, 1]
    assert ids(asked("user=ada&status=running")) == [4, 2]
    assert ids(asked("sort=-cost")) == [6, 5, 4, 3, 2, 1]
    assert ids(asked("sort=-cost&user=bob&limit=2")) == [5, 3]
    assert ids(asked("sort=peak_workers&limit=1")) == [1]
    assert ids(asked("name=job-3")) == [4]
    assert ids(asked("q=JOB-3")) == [4]
    assert ids(asked("kind=LocalCluster&tag=team%3Dweather")) == [6, 5, 4, 3, 2, 1]
    assert ids(asked("tag=team%3Dother")) == []
    assert ids(asked("since=2026-11-21T07:59:59Z&until=2026-11-21T08:00:00Z")) == [6, 5, 4, 3, 2, 1]
    first = asked("sort=-id&limit=4")
    assert (first["total"], first["as_of"], first["skipped"]) == (6, "2026-11-21T08:00:00.000Z", [])
    second = asked(f"sort=-id&limit=4&cursor={first['cursor']}")
    assert (ids(first) + ids(second), second["cursor"]) == ([6, 5, 4, 3, 2, 1], None)


@pytest.mark.parametrize("tag", ["%3D", "%3Dx", "%3D%3Dx"])
def test_a_tag_without_a_key_is_refused(asked: Asked, tag: str) -> None:
    answer = asked(f"tag={tag}")
    assert (answer["status"], "without a key" in answer["error"]["message"]) == (400, True)


def test_a_record_has_its_cost_and_how_long_it_was_up(asked: Asked, team: None, clock: FakeClock) -> None:
    clock.advance(5.0)
    (record,) = asked("name=job-2")["items"]
    assert record["duration"] == 5.0
    assert list(record["cost"]) == ["dollars", "idle", "failed", "currency", "quality", "basis"]
    assert record["cost"]["dollars"] > 0
    assert record["cost"]["quality"] == "estimated"
    (unknown,) = asked("name=job-0")["items"]
    assert (unknown["cost"]["dollars"], unknown["cost"]["quality"]) == (None, "unknown")


def test_the_cost_of_one_cluster_is_that_of_its_answer(
    get: Get, token: Token, team: None, drain: Callable[[], Any]
) -> None:
    drain()
    found = json.loads(get("/api/v1/acme/clusters/3", token("read"))["body"])
    assert found["cost"]["dollars"] == found["answers"]["cost"]["dollars"] > 0
    assert (found["id"], found["cost"]["quality"]) == (3, "estimated")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("since=yesterday", "since is 'yesterday'; allowed: seconds back from now (604800 is a week), or a time like "
                            "2026-11-21T08:00:00Z."),
        ("until=never", "until is 'never'; allowed: seconds back"),
        ("sort=price", "sort is 'price'; allowed: id, name, user, created, last_seen, duration, peak_workers, "
                       "peak_memory, n_tasks, n_tasks_erred, thread_seconds, cost, idle, each with a leading -"),
        ("status=dead", "status is 'dead'; allowed: running, stopped, lost."),
        ("limit=0", "limit is '0'; allowed: 1 to 1000."),
        ("cursor=5_0_0", "cursor is '5_0_0'; allowed: the cursor from the page before of a list sorted alike."),
        ("since=5&until=60", "is after until"),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_told_with_what_is_allowed(asked: Asked, query: str, told: str) -> None:
    answer = asked(query)
    assert (answer["status"], answer["error"]["code"]) == (400, "bad-request")
    assert told in answer["error"]["message"]


def test_what_an_answer_cannot_hold_is_on_the_next_page(
    asked: Asked, team: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "PAGE_CHARS", 1)
    found, cursor = list[int](), ""
    for _ in range(6):
        page = asked(f"limit=4{cursor and '&cursor='}{cursor}")
        found += ids(page)
        cursor = page["cursor"]
    assert (found, cursor) == ([6, 5, 4, 3, 2, 1], None)


def test_no_such_cluster_names_the_closest(get: Get, token: Token, team: None) -> None:
    answer = get("/api/v1/acme/clusters/7", token("read"))
    assert answer["statusCode"] == 404
    message = json.loads(answer["body"])["error"]["message"]
    assert message == "No cluster 7 in account acme. Closest: 6 job-5 (stopped). `daskscope clusters` lists them."
    assert json.loads(get("/api/v1/acme/clusters/job-4", token("read"))["body"])["id"] == 5


def test_a_file_is_read_once(asked: Asked, team: None, world: Adapters, monkeypatch: pytest.MonkeyPatch) -> None:
    Cataloguer(world).run()
    read: list[str] = []
    get_object = world.objects.get

    def watched(key: str) -> bytes:
        read.append(key)
        return get_object(key)

    monkeypatch.setattr(world.objects, "get", watched)
    for _ in range(3):
        assert len(ids(asked(""))) == 6
    assert len(read) == 1


def test_a_process_keeps_few_bytes(world: Adapters, team: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope_lambdas.service.catalog_files.MAX_HELD_BYTES", 1)
    Cataloguer(world).run()
    files = CatalogFiles(world.objects)
    for columns in (["cluster"], ["cluster", "name"], ["cluster"]):
        found = files.newest("acme", columns)
        assert found
        assert (found.rows.column_names, found.rows.num_rows) == (columns, 6)
    assert len(files._held) == 1


def test_the_page_takes_the_same_parameters(get: Get, token: Token, team: None) -> None:
    cookie = f"daskscope={token('read').removeprefix('Bearer ')}"
    body = get("/acme/analytics?q=job&sort=-cost&user=ada", cookies=(cookie,))["body"]
    assert body.index("job-5") < body.index("job-3") < body.index("job-1")
    assert "job-4" not in body
    assert 'value="job"' in body
    assert get("/acme/analytics?sort=price", cookies=(cookie,))["statusCode"] == 400
    assert "in the time since 2026-11-22" in get("/acme/analytics?since=2026-11-22", cookies=(cookie,))["body"]
