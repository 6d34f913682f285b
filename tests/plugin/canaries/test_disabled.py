"""`daskscope.analytics.disabled: true`: nothing at all, by whichever way daskscope came."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client, Scheduler

import daskscope
from daskscope.agent import NAME, TOPIC
from daskscope.agent.logs import listeners
from daskscope.collect.history import HISTORY
from daskscope.collect.memory import LongMemory
from daskscope.watch import EXTENSION
from tests.plugin.agent.test_hardware import metadata
from tests.plugin.canaries.capture import Capture
from tests.plugin.rig import Cluster, boom, inc, running

pytestmark = pytest.mark.asyncio

KEY = "daskscope.analytics.disabled"


@pytest.fixture
def capture() -> Iterator[Capture]:
    """A server that is configured, with all switches on."""
    everything = {
        "daskscope.analytics.events.allow": ["*"], "daskscope.analytics.logs.level": "debug",
        "daskscope.analytics.tasks.transmit": True, "daskscope.analytics.idle.timeout": "1h",
    }  # fmt: skip
    with Capture().running() as started, dask.config.set({"daskscope.server": started.url, **everything}):
        yield started


def ours(scheduler: Scheduler) -> dict[str, object]:
    """Whatever a scheduler, its workers and this process have of daskscope."""
    anything: Any = scheduler  # `events` until 2024.7.0
    topics: Any = anything._broker._topics if hasattr(anything, "_broker") else anything.events
    deques: dict[Any, Any] = {name: getattr(topic, "events", topic) for name, topic in topics.items()}
    entries = [*scheduler.handlers.items(), *scheduler.stream_handlers.items(), *scheduler.plugins.items()]
    modules = {name: getattr(entry, "__module__", "") for name, entry in entries}
    memories = [each for each in (scheduler.erred_tasks, scheduler.computations) if isinstance(each, LongMemory)]
    found = {
        "extension": EXTENSION in scheduler.extensions,
        "handlers and plugins": [name for name, module in modules.items() if module.startswith("daskscope")],
        "memories": len(memories),
        "topics": [name for name, events in deques.items() if getattr(events, "maxlen", None) in (None, HISTORY)],
        "agents' topic": TOPIC in deques,
        "plugins of workers": [name for name in scheduler.worker_plugins if "daskscope" in name],
        "threads": [each.name for each in threading.enumerate() if each.name.startswith("daskscope")],
        "listeners": list(listeners()),
        "records": "daskscope" in type(logging.getLogRecordFactory()).__module__,
        "last resort": "daskscope" in type(logging.lastResort).__module__,
        "idle timeout": scheduler.idle_timeout,
    }  # fmt: skip
    return {name: what for name, what in found.items() if what}


async def work(cluster: Cluster) -> None:
    assert await cluster.client.submit(inc, 1) == 2
    assert await cluster.client.submit(boom, 1).exception()
    await cluster.client.log_event("topic", {"a": 1})
    for _ in range(2):  # whatever was to run soon on this loop has run
        await cluster.client.run_on_scheduler(int)


async def test_otherwise_all_of_it_is_there(capture: Capture) -> None:
    async with running() as cluster:
        await registered(cluster.client)
        await work(cluster)
        found = ours(cluster.scheduler)
    assert found.keys() == {
        "extension", "handlers and plugins", "memories", "topics", "agents' topic", "threads", "listeners",
        "records", "last resort", "idle timeout",
    }  # fmt: skip
    assert capture.asked


@pytest.mark.parametrize("way", ["register", "client's preload", "scheduler's preload"])
async def test_nothing_is_connected_started_or_replaced(way: str, capture: Capture, data: Path) -> None:
    preloads = {
        "client's preload": "distributed.client.preload",
        "scheduler's preload": "distributed.scheduler.preload",
    }
    preload = {preloads[way]: ["daskscope"]} if way in preloads else {}
    with metadata() as (service, environment), pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with dask.config.set({KEY: True, **preload}):
            async with running() as cluster:
                if way == "register":
                    await registered(cluster.client)
                await work(cluster)
                assert ours(cluster.scheduler) == {}
                assert not [name for name in cluster.workers[0].plugins if NAME in name]
    assert (capture.n_connections, service.asked) == (0, [])
    assert not data.exists(), "and no spool"


async def registered(client: Client) -> None:
    found: Any = daskscope.register(client)
    await found
