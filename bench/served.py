"""The list of clusters as a server on this machine answers it."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

from bench.rows import Budget, Row
from bench.year.plan import ACCOUNT
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import connect

_SORTS = ("-created", "-cost", "name", "-peak_memory")
_TIMES = 9


def list_ms(folder: Path, n_clusters: int) -> Row:
    """Pages of 100 of all clusters, through the function that answers the API."""
    env = LocalEnv(data=str(folder))
    adapters = connect(env)
    try:
        with house.entered(house.House(lambda: env, lambda: adapters)):
            from daskscope_lambdas.handlers import api  # makes ready what it finds in the house

            bearer = f"Bearer {mint(adapters.tokens, adapters.clock, ACCOUNT, ('read',), 'bench')[0]}"
            taken = {sort: [_timed(api, bearer, sort, n_clusters) for _ in range(_TIMES)] for sort in _SORTS}
    finally:
        adapters.close()
    cpu_ms = {sort: statistics.median(cpu for cpu, _ in each) for sort, each in taken.items()}
    slowest = max(cpu_ms, key=cpu_ms.__getitem__)
    return Row(
        name="queries/clusters-list",
        value=cpu_ms[slowest],
        unit="ms CPU",
        budget=Budget("at most", 50),
        peers={
            **{f"by {sort}": ms for sort, ms in cpu_ms.items()},
            "wall clock, ms": statistics.median(wall for _, wall in taken[slowest]),
        },
        how=f"The API's function, an event in and JSON out: 100 of {n_clusters:,} clusters by {', '.join(_SORTS)}, "
        f"process CPU, median of {_TIMES} each, and the dearest of these.",
    )


def _timed(api: Any, bearer: str, sort: str, n_clusters: int) -> tuple[float, float]:
    """Milliseconds of CPU, and by the clock."""
    asked = event(f"/api/v1/{ACCOUNT}/clusters", {"sort": sort, "limit": "100"}, bearer)
    begun_s, cpu_s = time.perf_counter(), time.process_time()
    answer = api.handler(asked, None)
    taken = (time.process_time() - cpu_s) * 1e3, (time.perf_counter() - begun_s) * 1e3
    if answer["statusCode"] != 200 or json.loads(answer["body"])["total"] != n_clusters:
        raise ValueError(f"The list of clusters was not answered: {answer['body'][:500]}")
    return taken


def event(path: str, query: dict[str, str], bearer: str) -> dict[str, Any]:
    """As API Gateway's HTTP API makes it, payload version 2.0."""
    http = {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "bench"}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "&".join(f"{name}={value}" for name, value in query.items()),
        "headers": {"authorization": bearer},
        "queryStringParameters": query,
        "requestContext": {"requestId": "bench", "http": http, "stage": "$default", "routeKey": "$default"},
        "isBase64Encoded": False,
    }
