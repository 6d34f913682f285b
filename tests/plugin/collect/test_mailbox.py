"""The memory of the agents' topic on a real scheduler: bounded, exact in what it lost, and gone when we are."""

from __future__ import annotations

import pickle
from collections import Counter, deque
from typing import Any

import pytest

from daskscope.agent import TOPIC
from daskscope.collect import mailbox as module
from daskscope.collect.mailbox import Mailbox
from tests.plugin.rig import Cluster

pytestmark = pytest.mark.asyncio


def logs(*texts: str, dropped: int = 0) -> dict[str, Any]:
    lines = [[1, 30, "mine", text, 1] for text in texts]
    return {"kind": "logs", "from": "worker", "worker": "tcp://a", "lines": lines, "dropped": dropped}


PROFILE = {"kind": "profile", "worker": "tcp://a", "frames": ["f"], "prefix": ["p"], "stack": [[0]], "count": [1]}


def memory(cluster: Cluster) -> Any:
    broker: Any = getattr(cluster.scheduler, "_broker", None)
    old: Any = cluster.scheduler
    return broker._topics[TOPIC].events if broker is not None else old.events[TOPIC]


async def test_more_than_dask_would_keep_is_kept_in_order(cluster: Cluster) -> None:
    box = Mailbox(Counter())
    cluster.scheduler.log_event(TOPIC, logs("before us"))
    box.open(cluster.scheduler)
    for n in range(3_000):
        cluster.scheduler.log_event(TOPIC, logs(str(n)))
    taken = [box.take()["lines"][0][3] for _ in range(len(box))]
    assert taken == ["before us", *map(str, range(3_000))]
    assert not box.lost
    assert box.n_bytes == 0


def hello(worker: str = "tcp://a") -> dict[str, Any]:
    return {"kind": "hello", "worker": worker}


async def test_beyond_the_bounds_lines_give_way_first_then_profiles_and_greetings_last(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 3)
    box = Mailbox(Counter())
    box.open(cluster.scheduler)
    cluster.scheduler.log_event(TOPIC, logs("a", "b", dropped=5))
    cluster.scheduler.log_event(TOPIC, hello())
    cluster.scheduler.log_event(TOPIC, PROFILE)
    for n in range(10):
        cluster.scheduler.log_event(TOPIC, logs(str(n)))
    assert box.lost == {"log-lines": 9 + 9 * 2}, "each with one that was dropped before it"
    assert [payload["kind"] for _, payload in box] == ["hello", "profile", "logs"]
    cluster.scheduler.log_event(TOPIC, hello("tcp://b"))
    cluster.scheduler.log_event(TOPIC, hello("tcp://c"))
    assert (box.lost["log-lines"], box.lost["profiles"]) == (9 + 10 * 2, 1)
    cluster.scheduler.log_event(TOPIC, logs("c"))
    assert [payload["worker"] for _, payload in box] == ["tcp://a", "tcp://b", "tcp://c"]
    cluster.scheduler.log_event(TOPIC, hello("tcp://d"))
    assert [box.take()["worker"] for _ in range(len(box))] == ["tcp://b", "tcp://c", "tcp://d"]
    assert (box.lost["agent-messages"], box.n_bytes, len(box)) == (1, 0, 0)


async def test_the_text_of_all_is_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100_000)
    box = Mailbox(Counter())
    box.open(cluster.scheduler)
    for _ in range(10):
        cluster.scheduler.log_event(TOPIC, logs("x" * 60_000))
    assert len(box) == 1
    assert box.lost["log-lines"] == 2 * 9


async def test_greetings_are_taken_first_and_dask_sees_the_order_of_time(cluster: Cluster) -> None:
    box = Mailbox(Counter())
    box.open(cluster.scheduler)
    for payload in (logs("a"), PROFILE, hello(), logs("b")):
        cluster.scheduler.log_event(TOPIC, payload)
    seen = await cluster.client.get_events(TOPIC)
    assert [payload["kind"] for _, payload in seen] == ["logs", "profile", "hello", "logs"]
    assert [box.take()["kind"] for _ in range(4)] == ["hello", "profile", "logs", "logs"]
    with pytest.raises(IndexError):
        box.take()


@pytest.mark.parametrize(
    "payload", [None, "text", {}, {"kind": "else"}, {"kind": ["logs"]}, {"kind": "logs"}, {"kind": "logs", "lines": 7},
                {"kind": "logs", "lines": [[1]]}, {"kind": "profile", "stack": [1]}]
)  # fmt: skip
async def test_what_is_no_payload_of_an_agent_is_not_kept_and_harms_nobody(cluster: Cluster, payload: Any) -> None:
    box = Mailbox(Counter())
    box.open(cluster.scheduler)
    await cluster.client.log_event(TOPIC, payload)
    assert (len(box), box.lost) == (0, {"unreadable-agent-messages": 1})
    assert await cluster.client.submit(int, 1) == 1


async def test_closed_the_topic_is_as_dask_had_it(cluster: Cluster) -> None:
    before = memory(cluster)
    box = Mailbox(Counter())
    box.open(cluster.scheduler)
    assert memory(cluster) is box
    cluster.scheduler.log_event(TOPIC, logs("a"))
    box.close(cluster.scheduler)
    assert memory(cluster) is before
    assert len(before) == 0


async def test_another_memory_in_place_of_ours_stays(cluster: Cluster) -> None:
    first, second = Mailbox(Counter()), Mailbox(Counter())
    first.open(cluster.scheduler)
    second.open(cluster.scheduler)
    first.close(cluster.scheduler)
    assert memory(cluster) is second


async def test_dask_may_empty_it_and_send_it(cluster: Cluster) -> None:
    box = Mailbox(Counter())
    box.open(cluster.scheduler)
    cluster.scheduler.log_event(TOPIC, logs("a"))
    assert len(await cluster.client.get_events(TOPIC)) == 1
    assert type(pickle.loads(pickle.dumps(box))) is deque
    box.clear()
    assert (len(box), box.n_bytes, list(box)) == (0, 0, [])
