"""Log lines as they come: a list that is asked for again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from daskscope import direct
from daskscope.arguments import Cluster
from daskscope.connection import LINES_PAGE, Connection
from daskscope.errors import BadRequest
from daskscope.session.base import part

INTERVAL_S = 2.0
OVERLAP = timedelta(minutes=1)
"""Lines of two processes do not come in the order of their times: so far before the last one they are asked for
again."""
QUIET = 5
"""After so many answers without a new line it is asked whether the cluster has ended."""


def follow_lines(
    connection: Connection,
    account: str,
    cluster: Cluster,
    query: dict[str, Any],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[dict[str, Any]]:
    """Each line once, oldest first, until the cluster has ended and all it said is told, or somebody interrupts.

    It has a connection of its own, from the first line on, for it outlives the call that made it. Raises BadRequest for
    a lake: nobody there tells that a cluster has ended.
    """
    if isinstance(connection.source, direct.Lake):
        raise BadRequest(
            f"{connection.source.name} is read without its server, and tells nothing new: ask for the log lines as "
            "they are (without follow=True or --tail), or ask the server."
        )
    return _followed(connection, account, cluster, query, sleep)


def _followed(
    connection: Connection, account: str, cluster: Cluster, query: dict[str, Any], sleep: Callable[[float], None]
) -> Iterator[dict[str, Any]]:
    try:
        with connection.again() as own:
            yield from _lines(own, f"/{account}/clusters/{part(cluster)}", {**query, "order": "asc"}, sleep)
    except KeyboardInterrupt:
        return


def _lines(
    connection: Connection, cluster: str, query: dict[str, Any], sleep: Callable[[float], None]
) -> Iterator[dict[str, Any]]:
    told = dict[str, datetime]()
    quiet, is_last = 0, False
    while True:
        new = 0
        for answer in connection.pages(f"{cluster}/logs", query, None, LINES_PAGE):
            for line in answer["items"]:
                if line["id"] not in told:
                    told[line["id"]] = datetime.fromisoformat(line["time"])
                    new += 1
                    yield line
        if is_last and not new:
            return
        quiet = 0 if new else quiet + 1
        if quiet % QUIET == 1:
            is_last = _is_over(connection.get(cluster, {}))
        if is_last:
            continue  # What came between the two questions.
        if told:
            begin = max(told.values()) - OVERLAP
            told = {line: at for line, at in told.items() if at >= begin}
            query["since"] = begin.isoformat().replace("+00:00", "Z")
        sleep(INTERVAL_S)


def _is_over(cluster: dict[str, Any]) -> bool:
    """Whether it has ended, and the lake has all that was sent."""
    completeness: dict[str, Any] = cluster.get("completeness") or {}
    return cluster["status"] != "running" and not completeness.get("waiting")
