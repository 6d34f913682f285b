"""A cluster that somebody asks to close: who may be asked, for how long it is asked, and what the asker is told.

The cluster hears of it in the reply to its next message. Nothing can reach it otherwise, so this is best effort.
"""

from __future__ import annotations

import logging
from typing import Any

from daskscope.errors import NotClosable
from daskscope_lambdas.ports import Clock, ClusterRow, Clusters
from daskscope_lambdas.service.records import iso, status
from daskscope_lambdas.service.words import duration, moment

logger = logging.getLogger("daskscope.closing")

IDLED = "idle-timeout-exceeded"
"""Dask's word for why a scheduler closes that had nothing to do for too long."""

GOOD_S = 900.0
"""For so long a cluster is told. One that was away longer may have come to new work that nobody meant to end."""


def is_asked(asked_at: float | None, now: float) -> bool:
    """Whether a cluster that reports at `now` is to be told."""
    return asked_at is not None and now - asked_at <= GOOD_S


def expected_by(row: ClusterRow, now: float) -> float:
    """Epoch seconds at which the cluster's next message is due."""
    return max(now, row.last_received_at + row.next_s)


def may_be_asked(row: ClusterRow, now: float) -> bool:
    """Whether it runs, obeys, and is not asked already."""
    obeys = row.identity.get("remote_close") is not False
    return status(row, now) == "running" and obeys and not is_asked(row.close_asked_at, now)


def ask(clusters: Clusters, clock: Clock, row: ClusterRow, by: str, reason: str | None) -> dict[str, Any]:
    """Ask it; the record of docs/reference/http-api.md. Raises NotClosable with why not."""
    now = clock.now()
    state = status(row, now)
    if state == "lost":
        silent = duration(now - row.last_received_at)
        raise NotClosable(
            f"Cluster {row.id} has not been heard of for {silent}: it counts as lost, and only a cluster that reports "
            "can be told to close. If it still runs, stop it where it was started."
        )
    if row.identity.get("remote_close") is False:
        raise NotClosable(
            f"Cluster {row.id} was started with daskscope.analytics.remote-close: false and would not obey: "
            "close it where it was started."
        )
    if state == "stopped" or not clusters.ask_close(row.account, row.uuid, by, reason, now):
        raise NotClosable(f"Cluster {row.id} has closed already.")
    logger.info("Cluster %d of %s is asked to close by %s.", row.id, row.account, by)
    due = expected_by(row, now)
    return {
        "asked_at": iso(now),
        "by": by,
        "reason": reason,
        "expected_by": iso(due),
        "sentence": f"Cluster {row.id} is asked to close: it is told with its next message, due by "
        f"{moment(due, seconds=True)} UTC, and closes then if it can. Whoever is connected to it is warned.",
    }
