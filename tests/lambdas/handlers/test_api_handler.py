import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from daskscope import wire
from daskscope.testing import (
    CLUSTER,
    death,
    environment,
    exception,
    groups,
    identity,
    logs,
    member,
    message,
    metrics,
    profile,
    span,
    tasks,
    workers,
)
from daskscope.testing import event as happened
from daskscope_lambdas.handlers import answering, api
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters
from daskscope_query.lake import Lake
from tests.lambdas.handlers.conftest import event

Get = Callable[..., dict[str, Any]]
Token = Callable[..., str]
CODE = wire.Code(hash="ba7816bf8f01cfea414140de5dae2223", text="abc")
START_MS = 1_795_248_000_000


@pytest.fixture
def full(post: Callable[..., dict[str, Any]], drain: Callable[[], dict[str, Any]]) -> None:
    """One cluster with one of everything."""
    post(
        message(
            totals=wire.Totals(
                n_workers=2, n_tasks=4, n_tasks_erred=3, thread_us=10_000_000, action_us={"compute": 4_000_000}
            ),
            computations=[
                wire.Computation(no=0, start_ms=START_MS, code=[[wire.Frame(code=CODE.hash, file="job.py", line=3)]])
            ],
            codes=[CODE], groups=groups({"no": 0, "span": span().id}), exceptions=[exception()], events=[happened()],
            lost={"buffer": 2}, deaths=[death()], logs=logs({"no": 0}), spans=[span()], metrics=metrics({}),
            tasks=tasks(5), profiles=[profile(cut=6)],
            members=[member(no=0, role="scheduler", joined_ms=START_MS, environment=0), member(no=1, environment=1)],
            environments=[environment(), environment(packages={"distributed": "2026.8.0", "numpy": "1.26.4"})],
        )
    )  # fmt: skip
    assert drain() == {"batchItemFailures": []}


def body(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["statusCode"] == 200, answer
    return json.loads(answer["body"])


def refused(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["statusCode"], json.loads(answer["body"])["error"]["code"]


def test_whoami_needs_any_token(get: Get, token: Token):
    assert body(get("/api/v1/whoami", token("ingest")))["account"] == "acme"
    assert refused(get("/api/v1/whoami")) == (401, "not-logged-in")


@pytest.mark.parametrize("reference", ["1", f"Scheduler-{UUID(CLUSTER)}", CLUSTER])
def test_a_cluster_by_whatever_one_has_of_it(get: Get, token: Token, full: None, reference: str):
    found = body(get(f"/api/v1/acme/clusters/{reference}", token("read")))
    assert (found["id"], found["name"], found["lost"]) == (1, "demo", {"buffer": 2})
    verdicts = {name: answer["verdict"] for name, answer in found["answers"].items()}
    assert verdicts == {
        "finished": "running", "exceptions": "failed", "cost": "estimated", "time": "compute", "running": "working",
    }  # fmt: skip


def test_what_came_of_what_a_cluster_made(get: Get, token: Token, full: None):
    found = body(get("/api/v1/acme/clusters/1", token("read")))["completeness"]
    assert list(found) == [
        "sentence", "expected", "received", "waiting", "missing", "merged", "kept_from", "lost", "end", "clock_skew_s",
        "as_of", "skipped",
    ]  # fmt: skip
    assert found["missing"] == 0
    assert found["expected"] == found["received"] > 0
    assert found["lost"] == {"buffer": 2}
    assert found["end"] == {"how": None, "at": None, "proven": False}
    assert found["as_of"] == "2026-11-21T08:00:00.000Z"


def test_lists_of_a_cluster(get: Get, token: Token, full: None):
    reader = token("read")
    found = {name: body(get(f"/api/v1/acme/clusters/1/{name}", reader)) for name in
             ("computations", "exceptions", "events", "workers")}  # fmt: skip
    for answer in found.values():
        assert (answer["cursor"], answer["skipped"], answer["as_of"]) == (None, [], "2026-11-21T08:00:00.000Z")
    (computation,) = found["computations"]["items"]
    assert computation["code"][0]["text"] == "abc"
    assert "code" not in computation["code"][0], "hashes are nobody's business"
    assert computation["groups"][0]["seconds"] == {"compute": 4.0}
    assert found["exceptions"]["items"][0]["count"] == 3
    assert found["events"]["items"][0]["action"] == "add-worker"
    assert [w["address"][-2:] for w in found["workers"]["items"]] == ["01", "02"]


def test_a_computation_does_not_outlive_its_cluster(get: Get, token: Token, full: None, clock: FakeClock):
    clock.advance(31)
    (computation,) = body(get("/api/v1/acme/clusters/1/computations", token("read")))["items"]
    assert computation["status"] == "unfinished"


def test_a_cluster_keeps_nobody_when_it_has_ended(get: Get, token: Token, post: Callable[..., dict[str, Any]],
                                                 drain: Callable[[], Any], clock: FakeClock):  # fmt: skip
    post(message(members=[member(no=0, role="scheduler", joined_ms=START_MS), member(no=1)]))
    drain()

    def asked() -> tuple[Any, ...]:
        lists = [
            body(get(f"/api/v1/acme/clusters/1/{name}", token("read")))["items"] for name in ("members", "workers")
        ]
        record = body(get("/api/v1/acme/clusters/1", token("read")))
        return [m["left"] for m in lists[0]], {w["status"] for w in lists[1]}, record["workers"], record["stopped"]

    assert asked() == ([None, None], {"running"}, 2, None)
    clock.advance(31)
    # The second came when the message had been made, by its clock: nobody leaves before that.
    stopped = "2026-11-21T08:00:00.000Z"
    assert asked() == ([stopped, "2026-11-21T08:00:00.500Z"], {"left"}, 0, stopped)


def test_lists_page(get: Get, token: Token, full: None):
    reader = token("read")
    first = body(get("/api/v1/acme/clusters/1/workers?limit=1", reader))
    second = body(get(f"/api/v1/acme/clusters/1/workers?limit=1&cursor={first['cursor']}", reader))
    assert [item["address"][-1] for item in first["items"] + second["items"]] == ["1", "2"]
    assert second["cursor"] is None


@pytest.mark.parametrize("chars", [1, 300])
def test_what_an_answer_cannot_hold_is_on_the_next_page(
    get: Get, token: Token, full: None, chars: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(answering, "PAGE_CHARS", chars)
    first = body(get("/api/v1/acme/clusters/1/workers", token("read")))
    second = body(get(f"/api/v1/acme/clusters/1/workers?cursor={first['cursor']}", token("read")))
    assert [[item["address"][-1] for item in page["items"]] for page in (first, second)] == [["1"], ["2"]]
    assert second["cursor"] is None


def test_what_no_json_can_hold_is_an_error_and_no_answer():
    with pytest.raises(ValueError, match="not JSON compliant"):
        answering.answer({"dollars": float("inf")})


def test_clusters_are_filtered_and_paged(get: Get, token: Token, post: Callable[..., dict[str, Any]], clock: FakeClock):
    for n in range(6):
        who = identity(user="ada" if n % 2 else "bob", started_at_ms=START_MS + n)
        post(message(cluster=f"{n:032x}", identity=who, phase="closed" if n == 5 else "running"))
    reader = token("read")

    def ids(query: str) -> list[int]:
        return [item["id"] for item in body(get(f"/api/v1/acme/clusters?{query}", reader))["items"]]

    assert ids("") == [6, 5, 4, 3, 2, 1]
    assert ids("user=ada") == [6, 4, 2]
    assert ids("user=ada&status=running") == [4, 2]
    assert ids("status=stopped") == [6]
    clock.advance(60)
    assert ids("status=lost") == [5, 4, 3, 2, 1]
    assert ids("since=30") == []
    page = body(get("/api/v1/acme/clusters?user=bob&limit=2", reader))
    assert [item["id"] for item in page["items"]] == [5, 3]
    rest = body(get(f"/api/v1/acme/clusters?user=bob&limit=2&cursor={page['cursor']}", reader))
    assert [item["id"] for item in rest["items"]] == [1]


def test_exceptions_of_the_account(get: Get, token: Token, full: None):
    reader = token("read")
    assert len(body(get("/api/v1/acme/exceptions", reader))["items"]) == 1
    assert len(body(get("/api/v1/acme/exceptions?user=ada&cluster=1&since=3600", reader))["items"]) == 1
    assert body(get("/api/v1/acme/exceptions?user=bob", reader))["items"] == []
    assert refused(get("/api/v1/acme/exceptions?cluster=99", reader)) == (404, "not-found")


def test_what_was_observed_inside_a_cluster(get: Get, token: Token, full: None):
    reader = token("read")

    def asked(target: str) -> dict[str, Any]:
        return body(get(f"/api/v1/acme/clusters/1/{target}", reader))

    found = {name: asked(name) for name in INSIDE}
    for name, answer in found.items():
        assert len(answer["items"]) >= 1, name
        assert (answer["cursor"], answer["skipped"], answer["as_of"]) == (None, [], "2026-11-21T08:00:00.000Z")
    assert found["members"]["mismatches"] == [
        {"package": "numpy", "scheduler": "2.1.0", "others": [{"role": "worker", "version": "1.26.4", "n": 1}]}
    ]
    assert found["members"]["items"][1]["mismatched"] == {"numpy": ["1.26.4", "2.1.0"]}
    (died,) = found["deaths"]["items"]
    assert (died["time"], [line["level"] for line in died["logs"]]) == ("2026-11-21T08:00:04.000Z", ["warning"])
    assert (found["profile"]["total"], found["profile"]["cut"]) == (
        {"count": 40, "seconds": 0.4}, {"count": 6, "seconds": 0.06},
    )  # fmt: skip
    assert found["profile"]["items"][0]["stack"] == ["main (job.py:1)", "load (job.py:7)"]
    assert found["samples"]["items"][0]["scheduler"]["cpu_pct"] == 0
    assert found["groups"]["items"][0]["name"] == "sum-1"
    assert found["spans"]["items"][0]["n_tasks"] == 4
    assert asked(f"tasks?limit=2&cursor={asked('tasks?limit=2')['cursor']}")["items"][0]["id"].endswith("-2")
    assert asked("metrics?by=prefix")["items"][0]["span"] is None
    for narrowed in ("members?role=client", "deaths?expected=true", "logs?level=error", "logs?text=nowhere",
                     "logs?workers=tcp://x", "logs?role=nanny", "logs?since=2026-11-21T09:00:00Z", "logs?until=5",
                     "tasks?group=other", "profile?prefix=other", "profile?since=2026-11-21T08:01:00Z",
                 "profile?until=2026-11-21T08:00:00Z", "samples?worker=tcp://x", "metrics?span=other",
                 "events?topic=other",
                     "exceptions?origin=dask"):  # fmt: skip
        assert asked(narrowed)["items"] == [], narrowed
    for kept in ("members?role=worker", "deaths?expected=false", "logs?level=WARNING", "logs?level=30",
                 "logs?text=MEMORY", "logs?workers=tcp://127.0.0.1:40001", "logs?role=worker", "logs?since=5",
                 "logs?since=2026-11-21T08:00:03&until=2026-11-21T09:00:03%2B01:00", "tasks?group=sum-1",
                 "logs?since=2026-11-21T09:00:03+01:00&until=2026-11-21 08:00:03.000 00", "logs?since=2026-11-21+08:00",
                 "profile?prefix=sum&by=prefix", "profile?since=2026-11-21T08:00:59Z&until=2026-11-21T08:02:00Z",
                 "samples?worker=tcp://127.0.0.1:40001", "events?topic=all", "exceptions?origin=user"):  # fmt: skip
        assert len(asked(kept)["items"]) >= 1, kept


def test_log_lines_page_whole(get: Get, token: Token, full: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(answering, "PAGE_CHARS", 300)
    seen, cursor = list[str](), ""
    while cursor is not None:
        page = body(get(f"/api/v1/acme/clusters/1/tasks?limit=3{cursor and '&cursor='}{cursor}", token("read")))
        seen += [item["id"].rpartition("-")[2] for item in page["items"]]
        cursor = page["cursor"]
    assert seen == [str(no) for no in range(5)]


INSIDE = ("workers", "members", "deaths", "logs", "spans", "metrics", "tasks", "profile", "samples", "groups")
ROUTES = (*(f"clusters/1/{name}" for name in INSIDE), "clusters", "clusters/1", "clusters/1/computations",
          "clusters/1/exceptions", "clusters/1/events", "computations", "profile",
          "exceptions")  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_asks_who_reads_what(get: Get, token: Token, full: None, route: str):
    path = f"/api/v1/acme/{route}"
    assert refused(get(path)) == (401, "not-logged-in")
    assert refused(get(path, token("ingest", "admin"))) == (403, "permission-denied")
    assert refused(get(path, token("read", account="other"))) == (404, "not-found")
    if "1" in route:
        assert refused(get(path.replace("acme", "other"), token("read", account="other"))) == (404, "not-found")


@pytest.mark.parametrize(
    "target",
    ["clusters?limit=0", "clusters?limit=1001", "clusters?limit=0000000019999999",
     "clusters?limit=00000000" + "1" * 5000, "clusters/1/events?cursor=00000000" + "1" * 5000,
     "clusters?limit=x", "clusters/1/events?limit=1001", "clusters/1/events?cursor=1",
     "clusters/1/events?cursor=1_2_", "clusters/1/events?cursor=1_999999999999999_1",
     "clusters/1/events?cursor=1_1_999999999999999", "clusters/1/events?cursor=1_1_1_1",
     "clusters?since=soon", "clusters?since=-1",
     "clusters?since=nan", "clusters/1/logs?level=loud",
     "clusters/1/logs?level=-1", "clusters/1/logs?since=yesterday", "clusters/1/logs?until=-1",
     "clusters/1/logs?since=0000-01-01T00:00:00", "clusters/1/logs?role=client",
     "clusters/1/members?role=nanny", "clusters/1/deaths?expected=maybe", "clusters/1/metrics?by=span",
     "clusters/1/profile?by=x", "clusters/1/profile?since=soon", "clusters/1/exceptions?origin=me",
     "exceptions?origin=me",
     "clusters?status=dead", "clusters?cursor=nonsense", "clusters/1/events?cursor=-1"],
)  # fmt: skip
def test_a_parameter_that_is_not_of_its_form(get: Get, token: Token, full: None, target: str):
    assert refused(get(f"/api/v1/acme/{target}", token("read"))) == (400, "bad-request")


@pytest.mark.parametrize("path", ["/api/v1/acme/nonsense", "/api/v1/acme/clusters/99", "/api/v1/acme/clusters/x y"])
def test_what_is_not_there(get: Get, token: Token, full: None, path: str):
    assert refused(get(path, token("read"))) == (404, "not-found")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", [wire.PATH, f"{wire.PATH}/", "/api/v1/", "/api/v1/acme/clusters/", "/api/v2/whoami"])
def test_what_nothing_answers_has_the_shape_of_all_errors(world: Adapters, method: str, path: str):
    assert refused(api.handler(event(method, path), None)) == (404, "not-found")


def test_a_post_that_is_none_of_ours(world: Adapters, token: Token):
    headers = {"authorization": token("read", "ingest", "admin")}
    for path in (f"{wire.PATH}/", "/api/v1/acme/clusters", "/api/v1/whoami"):
        assert refused(api.handler(event("POST", path, headers, b"{}"), None)) == (404, "not-found")


def test_head_is_answered_like_get(get: Get, token: Token):
    headers = {"authorization": token("read")}
    asked = event("HEAD", "/api/v1/whoami", headers)
    assert api.handler(asked, None) == get("/api/v1/whoami", headers["authorization"])
    assert asked["requestContext"]["http"]["method"] == "HEAD"


def test_a_corrupt_file_is_named_and_the_rest_is_shown(get: Get, token: Token, full: None, world: Adapters):
    world.objects.put_new("open/events/day=2026-11-21/broken.parquet", b"PAR1 not really")
    answer = body(get("/api/v1/acme/clusters/1/events", token("read")))
    assert answer["skipped"] == ["open/events/day=2026-11-21/broken.parquet"]
    assert len(answer["items"]) == 1


def test_our_own_fault(get: Get, token: Token, world: Adapters, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise StoreError("the registry is gone")

    reader = token("read")
    monkeypatch.setattr(type(world.clusters), "page", fail)
    assert refused(get("/api/v1/acme/clusters", reader)) == (500, "server-error")


def many(seq: int, first: int, at_ms: int) -> wire.Message:
    """Five of everything that is listed, those of a higher `seq` later."""
    numbers = range(first, first + 5)
    return message(
        seq=seq, made_at_ms=at_ms,
        workers=workers([f"tcp://{at_ms}:{no}" for no in numbers]),
        groups=groups(*({"no": no, "name": f"g{no}", "computation": no, "span": f"s{no}"} for no in numbers)),
        computations=[wire.Computation(no=no, start_ms=at_ms + no, stop_ms=at_ms + no) for no in numbers],
        events=[happened(no=no, at_ms=at_ms + no, action=f"a{no}") for no in numbers],
        exceptions=[exception(no=no, last_ms=at_ms + no, text=f"e{no}") for no in numbers],
        members=[member(no=no, id=f"m{no}", joined_ms=at_ms - no) for no in numbers],
        deaths=[death(no=no, at_ms=at_ms + no) for no in numbers],
        logs=logs(*({"no": no, "at_ms": at_ms + no, "text": f"l{no}"} for no in numbers)),
        spans=[span(id=f"s{no}", enqueued_ms=at_ms + no) for no in numbers],
        metrics=metrics(*({"span": f"s{no}", "value": 1.0 + no, "prefix": f"p{no}"} for no in numbers)),
        tasks=tasks(5, first_no=first, from_ms=at_ms - 50_000 * seq),
        profiles=[profile(stack=[[0], [1], [2], [0, 1], [0, 2]], prefix=["sum"] * 5, count=[9 * seq + 5, 4, 3, 2, 1])],
    )  # fmt: skip


PAGED = (*(name for name in INSIDE if name != "samples"), "computations", "exceptions", "events")


@pytest.mark.parametrize("target", [*(f"clusters/1/{name}?" for name in PAGED), "clusters/1/samples?", "exceptions?",
                                    "clusters/1/metrics?by=prefix&", "clusters/1/logs?until=1&"])  # fmt: skip
def test_a_list_does_not_move_under_its_reader(
    get: Get, token: Token, post: Callable[..., dict[str, Any]], drain: Callable[[], dict[str, Any]], clock: FakeClock,
    target: str,
):  # fmt: skip
    reader = token("read")
    for n in range(4 if "samples" in target else 1):
        post(many(n, 5 * n, START_MS + n))
        clock.advance(1)
    clock.advance(2)
    drain()
    whole = body(get(f"/api/v1/acme/{target}", reader))["items"]
    seen, cursor = list[Any](), ""
    while cursor is not None:
        page = body(get(f"/api/v1/acme/{target}limit=2{cursor and '&cursor='}{cursor}", reader))
        seen, cursor = seen + page["items"], page["cursor"]
        clock.advance(1)
        later = len(seen) + 10
        if later < 30:
            post(many(later, 5 * later, START_MS + 100 * later))
            drain()
    assert len(whole) >= 4
    # Whether a cluster lives, and what it cost, is of the moment.
    of_now = {"workers": {"status": "running"}, "computations": {"cost": None}}.get(target.rpartition("/")[2][:-1], {})
    whole, seen = ([item | of_now for item in items] for items in (whole, seen))
    assert seen == whole


@pytest.mark.parametrize(("name", "asked"), [("members", [2, 2]), ("profile", [2, 1])])
def test_what_stands_beside_a_list_is_asked_for_once(
    get: Get, token: Token, full: None, monkeypatch: pytest.MonkeyPatch, name: str, asked: list[int]
):
    questions = list[str]()
    ask = Lake.ask

    def counted(self: Lake, query: str, **given: Any) -> Any:
        questions.append(query)
        return ask(self, query, **given)

    monkeypatch.setattr(Lake, "ask", counted)
    first = body(get(f"/api/v1/acme/clusters/1/{name}?limit=1", token("read")))
    n_first = len(questions)
    second = body(get(f"/api/v1/acme/clusters/1/{name}?limit=1&cursor={first['cursor']}", token("read")))
    assert [n_first, len(questions) - n_first] == asked
    beside = {"mismatches"} if name == "members" else {"total", "cut"}
    assert (set(first) - set(second), set(second) - set(first)) == (beside, set())
