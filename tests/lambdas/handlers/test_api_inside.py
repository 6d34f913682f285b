"""One cluster, one computation and profiles over HTTP: parameters to answers."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import START_MS, boot_at, groups, identity, logs, member, message, metrics, profile, workers
from daskscope_lambdas.testing import FakeClock

Ask = Callable[..., dict[str, Any]]
CODE = wire.Code(hash="ba7816bf8f01cfea414140de5dae2223", text="abc")
ONE = f"{boot_at(START_MS)}-0"
A, B = "tcp://10.0.2.96:40001", "tcp://10.0.2.97:40002"


@pytest.fixture
def ask(get: Ask, post: Ask, drain: Callable[[], Any], token: Callable[..., str], clock: FakeClock) -> Ask:
    """GET by a reader of an account with two clusters, the body of its answer; or its status and message."""
    for n in range(2):
        post(
            message(
                cluster=f"{n:032x}", boot=boot_at(START_MS + n), identity=identity(user=["ada", "bob"][n]),
                totals=wire.Totals(n_workers=1, thread_us=40_000_000, n_tasks=4), workers=workers([A]),
                computations=[wire.Computation(
                    no=0, start_ms=START_MS, stop_ms=START_MS + 1_000 * (n + 1), code=[[
                        wire.Frame(code=CODE.hash, file="job.py", line=3)]])],
                codes=[CODE], groups=groups({"no": 0, "computation": 0}), profiles=[profile(count=[1 + n, 2 + n])],
                members=[member(id=A, name="a"), member(no=1, id=B, name="b", host="node-b")], metrics=metrics({}),
                logs=logs(*({"no": no, "at_ms": START_MS + no, "worker": each, "text": f"{n}.{no}",
                             "role": "worker" if each else "scheduler"} for no, each in enumerate((A, B, None)))),
            )
        )  # fmt: skip
    assert drain() == {"batchItemFailures": []}
    clock.advance(5)
    reader = token("read")

    def asked(target: str) -> dict[str, Any]:
        answer = get(f"/api/v1/acme/{target}", reader)
        found = json.loads(answer["body"])
        return found if answer["statusCode"] == 200 else {"status": answer["statusCode"], **found["error"]}

    return asked


def texts(answer: dict[str, Any]) -> list[str]:
    return [item["text"] for item in answer["items"]]


def test_log_lines_of_some_workers_in_some_order(ask: Ask) -> None:
    assert texts(ask("clusters/1/logs")) == ["0.2", "0.1", "0.0"]
    assert texts(ask("clusters/1/logs?workers=10.0.2.96")) == ["0.0"]
    assert texts(ask("clusters/1/logs?workers=10.0.2.96,node-b&order=asc")) == ["0.0", "0.1"]
    assert texts(ask("clusters/1/logs?workers=b&scheduler=true")) == ["0.2", "0.1"]
    assert texts(ask("clusters/1/logs?scheduler=false&order=desc")) == ["0.1", "0.0"]
    first = ask("clusters/1/logs?order=asc&limit=2")
    assert texts(first) == ["0.0", "0.1"]
    assert texts(ask(f"clusters/1/logs?order=asc&limit=2&cursor={first['cursor']}")) == ["0.2"]
    ids = [item["id"] for item in ask("clusters/1/logs?order=asc")["items"]]
    assert ids == [f"{boot_at(START_MS)}-{no}" for no in range(3)]


def test_computations_of_the_account_and_one_alone(ask: Ask) -> None:
    slow, quick = ask("computations?sort=-duration")["items"]
    assert [(each["cluster_id"], each["user"], each["duration"]) for each in (slow, quick)] == [
        (2, "bob", 2.0), (1, "ada", 1.0),
    ]  # fmt: skip
    assert slow["fingerprint"] == quick["fingerprint"]
    assert slow["code"][0]["text"] == "abc"
    for narrowed in ("user=ada", "cluster=1", "user=ada&cluster=1&status=finished&since=60", "until=4.5&user=ada"):
        assert [item["id"] for item in ask(f"computations?{narrowed}")["items"]] == [ONE], narrowed
    for empty in ("user=eve", "code=0123456789abcdef", "status=running", "since=1", "user=bob&cluster=1"):
        assert ask(f"computations?{empty}")["items"] == [], empty
    assert len(ask(f"computations?code={slow['fingerprint']}")["items"]) == 2
    (mine,) = ask("clusters/1/computations?status=finished&sort=-cost")["items"]
    assert [group["name"] for group in mine["groups"]] == ["sum-1"]
    one = ask(f"computations/{ONE}")
    assert {**mine, "same_code": one["same_code"], "as_of": one["as_of"], "skipped": []} == one
    assert (one["same_code"]["n"], one["same_code"]["n_clusters"], one["same_code"]["rank"]) == (2, 2, 1)
    first = ask("computations?limit=1&sort=duration")
    assert first["items"][0]["id"] == ONE
    assert [item["user"] for item in ask(f"computations?limit=1&sort=duration&cursor={first['cursor']}")["items"]] == [
        "bob"
    ]


def test_a_computation_costs_its_part_of_its_cluster(ask: Ask) -> None:
    """4 s of the 40 s that its threads were there."""
    (found,) = ask("clusters/1/computations")["items"]
    whole = ask("clusters/1")["answers"]["cost"]["dollars"]
    assert found["cost"]["dollars"] == pytest.approx(whole / 10)
    assert re.fullmatch(r"estimated: 4 s of workers at \$[0-9.]+ a thread-hour of cluster 1", found["cost"]["basis"])


def test_profiles_as_stacks_and_as_trees(ask: Ask) -> None:
    assert [item["count"] for item in ask("clusters/1/profile")["items"]] == [2, 1]
    (tree,) = ask("clusters/1/profile?form=tree")["items"]
    assert (tree["name"], tree["count"], [child["name"] for child in tree["children"]]) == ("all", 3, ["main"])
    everyone = ask("profile")
    assert [item["count"] for item in everyone["items"]] == [5, 3]
    assert everyone["total"]["count"] == 8
    assert [(item["user"], item["count"]) for item in ask("profile?by=user")["items"]] == [
        ("bob", 3), ("ada", 2), ("bob", 2), ("ada", 1),
    ]  # fmt: skip
    assert [(item["name"], item["count"]) for item in ask("profile?by=user&form=tree")["items"]] == [
        ("bob", 5),
        ("ada", 3),
    ]
    assert [item["name"] for item in ask("profile?by=prefix&form=tree&user=ada")["items"]] == ["sum"]
    assert ask(f"clusters/1/profile?computation={ONE}")["total"]["count"] == 3
    assert ask(f"clusters/1/profile?computation={ONE}&prefix=other")["items"] == []


def test_samples_at_some_resolution(ask: Ask) -> None:
    for line in ("samples?", f"samples?worker={A}&"):
        assert len(ask(f"clusters/1/{line}points=1")["items"]) == 1
        assert ask(f"clusters/1/{line}since=1")["items"] == []
        assert len(ask(f"clusters/1/{line}until=1&points=600")["items"]) == 1


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("clusters/1/samples?points=601", "points is '601'; allowed: 1 to 600."),
        ("clusters/1/samples?points=0", "points is '0'"),
        ("clusters/1/logs?order=down", "order is 'down'; allowed: asc, desc."),
        ("clusters/1/logs?scheduler=no", "scheduler is 'no'; allowed: true, false."),
        ("clusters/1/logs?workers=" + ",".join(map(str, range(101))), "workers names 101 things; allowed: 100 at most"),
        ("computations?sort=size", "sort is 'size'; allowed: start, duration, n_tasks"),
        ("computations?status=done", "status is 'done'; allowed: running, finished"),
        (
            "computations?since=last%20week",
            "since is 'last week'; allowed: seconds back from now (604800 is a week), or",
        ),
        ("computations?since=5&until=60", "since (2026-11-21T08:00:00Z) is after until (2026-11-21T07:59:05Z)."),
        ("clusters/1/profile?by=user", "by is 'user'; allowed: prefix."),
        ("profile?form=flame", "form is 'flame'; allowed: stacks, tree."),
    ],
)
def test_what_is_wrong_with_a_parameter_is_told(ask: Ask, target: str, message: str) -> None:
    refused = ask(target)
    assert (refused["status"], refused["code"]) == (400, "bad-request")
    assert refused["message"].startswith(message)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("computations/7", "'7' names no computation: its id is like"),
        (f"computations/{boot_at(START_MS)}-9", "No computation .*-9 in cluster 1. `daskscope computations 1`"),
        (f"computations/{boot_at(START_MS + 99)}-0", "No computation .* in account acme. `daskscope computations`"),
        ("clusters/1/profile?computation=x", "No computation x in cluster 1. `daskscope computations 1` lists them."),
    ],
)
def test_what_is_not_there_is_told(ask: Ask, target: str, message: str) -> None:
    missing = ask(target)
    assert (missing["status"], missing["code"]) == (404, "not-found")
    assert re.match(message, missing["message"])
