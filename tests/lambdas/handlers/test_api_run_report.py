"""A run as one file, over HTTP."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import START_MS, boot_at, death, exception, groups, identity, logs, message, profile, tasks
from daskscope_lambdas.service.run_report import MAX_COMPUTATIONS, MAX_FAMILIES, MAX_LINES
from daskscope_lambdas.testing import FakeClock

Get = Callable[..., dict[str, Any]]
CODE = wire.Code(hash="ba7816bf8f01cfea414140de5dae2223", text="abc")
FIRST, SECOND = f"{boot_at(START_MS)}-0", f"{boot_at(START_MS)}-1"
HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=1</script>'


@pytest.fixture
def fetch(
    get: Get, post: Get, drain: Callable[[], Any], token: Callable[..., str], clock: FakeClock
) -> Callable[..., str]:
    """The text of a report of an account, whose one cluster says what the test posts."""
    reader = token("read")

    def fetched(target: str, *posted: wire.Message) -> str:
        for each in posted:
            assert post(each)["statusCode"] == 200
        if posted:
            assert drain() == {"batchItemFailures": []}
            clock.advance(5)
        answer = get(f"/api/v1/acme/{target}", reader)
        assert answer["statusCode"] == 200, answer["body"]
        assert answer["headers"]["Content-Type"] == "text/html; charset=utf-8"
        return answer["body"]

    return fetched


def job(**changes: Any) -> wire.Message:
    """Two computations; something failed in the second one."""
    frames = [[wire.Frame(code=CODE.hash, file="/home/ada/job.py", line=3)]]
    later = {"computation": 1, "start_ms": START_MS + 60_000, "stop_ms": START_MS + 64_000}
    values: dict[str, Any] = {
        "totals": wire.Totals(n_workers=2, n_computations=2, n_tasks=30, n_tasks_erred=3, thread_us=40_000_000),
        "computations": [
            wire.Computation(no=0, start_ms=START_MS, stop_ms=START_MS + 5_000, code=frames),
            wire.Computation(no=1, start_ms=START_MS + 60_000, stop_ms=START_MS + 64_000, code=frames),
        ],
        "codes": [CODE],
        "groups": groups(
            {"no": 0, "prefix": "load", "name": "load-1f", "computation": 0, "action_us": {"compute": 6_000_000}},
            {"no": 1, "prefix": "sum", "name": "sum-2e", "action_us": {"compute": 3_000_000}, **later},
        ),
        "exceptions": [exception(no=0, type="ValueError", text="row 7", count=3, group=1, traceback="in sum\n")],
        "logs": logs({"no": 0, "at_ms": START_MS + 1_000, "text": "early", "level": 30},
                     {"no": 1, "at_ms": START_MS + 61_000, "text": "late", "level": 40},
                     {"no": 2, "at_ms": START_MS + 2_000, "text": "chatter", "level": 20}),
        "profiles": [profile(prefix=["load", "sum"])],
        "tasks": tasks(3, group=[0, 0, 1], start_ms=[0, 10, 60_000], erred=[0, 0, 1]),
    }  # fmt: skip
    return message(**values | changes)


def text_of(page: str) -> str:
    """As it is read."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_a_cluster_is_told_whole(fetch: Callable[..., str]):
    page = text_of(fetch("clusters/1/report", job()))
    for expected in (
        "Did it finish?", "of 30 tasks done", "2 computations, latest first", "abc job.py:3", "load", "sum",
        "ValueError", "row 7", "in sum", "2 lines of logs", "early", "late", "127.0.0.1:40001",
    ):  # fmt: skip
        assert expected in page, expected
    assert "chatter" not in page, "warnings and errors alone"
    assert "job.py:7" in page, "the profile"
    assert "Every task" not in page


def test_a_computation_is_told_alone(fetch: Callable[..., str]):
    page = text_of(fetch(f"computations/{SECOND}/report", job()))
    for expected in ("Computation 1 of demo", "It took 4 s; ", "1 task group", "sum-2e", "ValueError", "late"):
        assert expected in page, expected
    for other in ("load-1f", "early", "job.py:7"):
        assert other not in page, other
    first = text_of(fetch(f"computations/{FIRST}/report"))
    assert "No task failed." in first
    assert "ValueError" not in first


def test_task_rows_are_in_it_where_they_are_asked_for(fetch: Callable[..., str]):
    page = fetch("clusters/1/report?tasks=true", job())
    assert "3 tasks. A line is a thread" in text_of(page)
    (told,) = re.findall(r'<script type="application/json" id="task-rows">(.*?)</script>', page)
    assert json.loads(told)["kinds"] == ["load", "sum"]
    alone = fetch(f"computations/{SECOND}/report?tasks=true")
    assert '"kinds":["sum"]' in alone


def test_without_task_rows_it_says_which_setting_sends_them(fetch: Callable[..., str]):
    page = fetch("clusters/1/report?tasks=true", job(tasks=wire.Tasks()))
    assert "analytics.tasks.transmit" in text_of(page)
    assert "<script" not in page


def test_what_is_left_out_is_counted(fetch: Callable[..., str]):
    n = 60
    page = text_of(
        fetch(
            "clusters/1/report?tasks=true",
            job(
                tasks=tasks(3, weight=4),
                totals=wire.Totals(n_computations=n, n_tasks=n),
                computations=[wire.Computation(no=no, start_ms=START_MS + no) for no in range(n)],
                groups=groups(*({"no": no, "prefix": f"p{no}", "computation": no} for no in range(n))),
                exceptions=[exception(no=no, type=f"Error{no % 50:02}", group=no) for no in range(n)],
                logs=logs(*({"no": no, "at_ms": START_MS, "text": "x" * 9_000, "level": 30} for no in range(n))),
                deaths=[death(no=no, expected=False) for no in range(n)],
            ),
        )
    )
    assert f"{MAX_COMPUTATIONS} of 60 computations: those that took the most worker time" in page
    assert "20 of 60 kinds of task" in page
    assert f"{MAX_FAMILIES} of 50 kinds, most frequent first" in page
    assert f"The latest {MAX_LINES} of 60 lines of logs." in page
    assert "x… (8,600 more characters)" in page
    assert "3 rows for 12 tasks: the plugin kept a part of them" in page
    assert "20 of 60 workers went without being asked to" in page


def test_an_empty_cluster_has_a_report(fetch: Callable[..., str]):
    page = text_of(fetch("clusters/1/report?tasks=true", message()))
    for expected in ("No computation.", "Nothing was sampled", "No task failed.", "At least two messages are needed"):
        assert expected in page, expected


def test_hostile_names_are_text(fetch: Callable[..., str]):
    page = fetch(
        "clusters/1/report?tasks=true",
        job(
            identity=identity(name=HOSTILE, user=HOSTILE, host=HOSTILE, tags={HOSTILE: HOSTILE}, python=HOSTILE),
            groups=groups({"no": 0, "name": HOSTILE, "prefix": HOSTILE, "action_us": {HOSTILE: 5_000_000}}),
            exceptions=[exception(type=HOSTILE, text=HOSTILE, traceback=HOSTILE, prefix=HOSTILE, group=0)],
            logs=logs({"no": 0, "at_ms": START_MS, "text": HOSTILE, "logger": HOSTILE, "level": 40}),
            profiles=[profile(frames=[HOSTILE, HOSTILE, HOSTILE])],
            tasks=tasks(2),
        ),
    )  # fmt: skip
    assert HOSTILE in text_of(page)
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2, "its rows and its own"


def test_the_file_allows_itself_nothing_else(fetch: Callable[..., str], get: Get, token: Callable[..., str]):
    page = fetch("clusters/1/report?tasks=true", job())
    policy = html.unescape(re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0])
    rules = {name: allowed for name, _, allowed in (rule.strip().partition(" ") for rule in policy.split(";"))}

    def named(element: str) -> str:
        (inside,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        return f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"

    assert rules == {
        "default-src": "'none'", "style-src": named("style"), "script-src": named("script"), "img-src": "data:",
        "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    assert not re.findall(r'\s(?:style|on\w+)=|(?:src|href)="(?!#|data:)', page)
    answer = get("/api/v1/acme/clusters/1/report?tasks=false", token("read"))
    assert "script-src 'none'" in html.unescape(answer["body"])
    headers = answer["headers"]
    assert headers["Content-Security-Policy"] == "sandbox allow-scripts; frame-ancestors 'self'"
    assert headers["Content-Disposition"] == 'inline; filename="daskscope-cluster-1.html"'
    assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")


def test_what_is_not_there_is_said(fetch: Callable[..., str], get: Get, token: Callable[..., str]):
    fetch("clusters/1/report", job())
    reader = token("read")

    def said(target: str, bearer: str | None = reader) -> tuple[int, str]:
        answer = get(f"/api/v1/{target}", bearer)
        return answer["statusCode"], json.loads(answer["body"])["error"]["message"]

    assert said("acme/clusters/2/report")[0] == 404
    status, why = said(f"acme/computations/{boot_at(START_MS)}-9/report")
    assert (status, "No computation" in why) == (404, True)
    assert said("acme/computations/nonsense/report")[0] == 404
    assert said("acme/clusters/1/report?tasks=perhaps") == (400, "tasks is 'perhaps'; allowed: true, false.")
    assert said("acme/clusters/1/report", None)[0] == 401
    assert said("acme/clusters/1/report", token("ingest"))[0] == 403
    assert said("acme/clusters/1/report", token("read", account="other"))[0] == 404
