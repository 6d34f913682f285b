"""A lake without a server answers what the server answers that wrote it."""

import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from daskscope import wire
from daskscope.errors import BadRequest, DaskscopeError, NotFound, ServerError, SettingsError
from daskscope.testing import event as happened
from daskscope.testing import exception, groups, identity, logs, member, message, profile, span, tasks
from daskscope_lambdas.direct import Direct, open_lake
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import compact
from daskscope_lambdas.opening import settings_of
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters

Get = Callable[..., dict[str, Any]]
Token = Callable[..., str]
CODE = wire.Code(hash="ba7816bf8f01cfea414140de5dae2223", text="abc")
START_MS = 1_795_248_000_000
DAY_S = 86_400.0
BEGUN = "f" * 31 + "7"
"""A cluster of the day that is over."""

ROUTES = (
    "clusters", "clusters?limit=1&sort=id", "clusters?user=ada&since=86400", "clusters/1", "clusters/2", "clusters/99",
    *(f"clusters/{id}/{name}" for id in (1, 2) for name in
      ("computations", "groups", "exceptions", "events", "workers", "members", "deaths", "logs", "spans", "metrics",
       "tasks", "profile", "samples")),
    "exceptions", "exceptions?since=3600", "exceptions?limit=1", "computations", "code", "prefixes", "deaths",
    "events", "logs", "metrics", "profile", "costs", "costs?by=day", "prices", "compare?ids=1,2", "clusters?limit=none",
    "exceptions?cluster=77",
)  # fmt: skip
"""Under an account."""


@pytest.fixture
def data(
    post: Callable[..., dict[str, Any]], drain: Callable[[], Any], clock: FakeClock, env: LocalEnv
) -> Path:
    """The data folder of a server: of one day that is sealed and one that is open, and with a catalog."""
    clock.advance(-DAY_S)
    post(told(cluster=BEGUN, phase="closed", identity=identity(name="yesterday", started_at_ms=START_MS - 86_400_000)))
    drain()
    clock.advance(DAY_S)
    post(told())
    drain()
    for _ in range(2):  # the second one sees what the first one sealed
        compact.handler({}, None)
    assert list(Path(env.lake, "seals").rglob("sealed-at.json"))
    return Path(env.data)


def told(**changes: Any) -> wire.Message:
    given: dict[str, Any] = {
        "totals": wire.Totals(n_workers=2, n_tasks=4, n_tasks_erred=3, thread_us=10**7, action_us={"compute": 4 * 10**6}),
        "computations": [
            wire.Computation(no=0, start_ms=START_MS, code=[[wire.Frame(code=CODE.hash, file="job.py", line=3)]])
        ],
        "codes": [CODE], "groups": groups({"no": 0, "span": span().id}), "exceptions": [exception()],
        "events": [happened(no=no) for no in range(3)], "logs": logs({"no": 0}), "spans": [span()],
        "tasks": tasks(5), "profiles": [profile(cut=6)],
        "members": [member(no=0, role="scheduler", joined_ms=START_MS), member(no=1)],
    }  # fmt: skip
    return message(**{**given, **changes})


@pytest.fixture
def opened(data: Path, clock: FakeClock) -> Iterator[Direct]:
    with closing(Direct(settings_of(str(data), None, None), clock)) as found:
        yield found


def asked(lake: Direct, target: str, method: str = "GET") -> tuple[int, dict[str, Any]]:
    path, _, query = target.partition("?")
    status, headers, body = lake.request(method, f"/api/v1/{path}", dict(p.split("=") for p in query.split("&") if p))
    assert headers["Daskscope-Api"] == "1"
    assert headers["Content-Type"] == "application/json"
    return status, json.loads(body)


@pytest.mark.parametrize("route", ROUTES)
def test_it_answers_what_the_server_answers(opened: Direct, get: Get, token: Token, route: str) -> None:
    served = get(f"/api/v1/acme/{route}", token("read"))
    assert asked(opened, f"acme/{route}") == (served["statusCode"], json.loads(served["body"]))
