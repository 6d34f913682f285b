"""Clusters that close themselves, and clusters that somebody asks to close."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import dask.config
import pytest

import daskscope
from daskscope import client
from daskscope.errors import NotClosable
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import eventually

pytestmark = pytest.mark.timeout(600)  # the first of them deploys


@contextmanager
def warned() -> Generator[list[str]]:
    """What the user's process is warned of, which is this one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts: list[str] = []
        yield texts
        texts += [str(each.message) for each in caught if str(each.message).startswith("This cluster")]


def registered(cluster: Cluster) -> str:
    """The id of its scheduler, once the server knows all of it."""
    daskscope.register(cluster.client)
    scheduler_id: str = cluster.client.scheduler_info()["id"]
    eventually(lambda: daskscope.get_cluster(scheduler_id), lambda found: found["workers"] == 2)
    return scheduler_id


def stopped(scheduler_id: str) -> dict[str, Any]:
    return eventually(lambda: daskscope.get_cluster(scheduler_id), lambda found: found["status"] == "stopped")


def test_a_close_that_is_asked_for_reaches_the_cluster(cluster: Cluster) -> None:
    scheduler_id = registered(cluster)
    with warned() as texts:
        token, row = cluster.place.mint("control")
        with dask.config.set({"daskscope.token": token}):
            told = client.close(scheduler_id, reason="the test is over")
        over = stopped(scheduler_id)
        assert cluster.scheduler.child.wait(30) == 0, "a scheduler that was asked to close ends well"
    assert (told["by"], told["reason"]) == (f"token {row.name}", "the test is over")
    assert over["reason"] == "close-requested"
    assert over["close_asked"] == {"at": told["asked_at"], "by": f"token {row.name}", "reason": "the test is over"}
    assert f"asked for by token {row.name}: the test is over" in over["answers"]["running"]["sentence"]
    (text,) = texts
    assert text.startswith("This cluster closes now: somebody asked for it on the server")
    assert f"{cluster.place.account}/analytics/clusters/{over['id']}" in text
    with dask.config.set({"daskscope.token": token}), pytest.raises(NotClosable, match="has closed already"):
        client.close(scheduler_id)


def test_who_may_only_read_asks_nothing(cluster: Cluster) -> None:
    scheduler_id = registered(cluster)
    reads, _ = cluster.place.mint("read", "ingest", "admin")
    with (
        dask.config.set({"daskscope.token": reads}),
        pytest.raises(daskscope.PermissionDenied, match="this needs one that may control"),
    ):
        client.close(scheduler_id)
    assert daskscope.get_cluster(scheduler_id)["close_asked"] is None


def test_a_cluster_that_lets_nobody_close_it(cluster: Cluster) -> None:
    with dask.config.set({"daskscope.analytics.remote-close": False}):
        scheduler_id = registered(cluster)
    token, _ = cluster.place.mint("control")
    with dask.config.set({"daskscope.token": token}), pytest.raises(NotClosable, match="remote-close: false"):
        client.close(scheduler_id)
    assert cluster.client.submit(sum, [1, 2]).result() == 3


def test_an_idle_cluster_closes_and_says_why(cluster: Cluster) -> None:
    with warned() as texts, dask.config.set({"daskscope.analytics.idle.timeout": "8s"}):
        held = cluster.client.submit(sum, [1, 2])
        assert held.result() == 3
        daskscope.register(cluster.client)
        over = stopped(cluster.client.scheduler_info()["id"])
        assert cluster.scheduler.child.wait(30) == 0
    assert over["idle_timeout"] == 8
    assert over["reason"] == "idle-timeout-exceeded"
    assert "idle-timeout-exceeded" in over["answers"]["finished"]["sentence"]
    text = texts[-1]
    assert "Results held, which will be lost: 1 (" in text
    assert "daskscope.analytics.idle.timeout: null" in text
