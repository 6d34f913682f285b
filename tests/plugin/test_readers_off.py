"""Readers that are off: what nobody reads is not held, nothing waits for them, and other parts tell as before."""

import logging
from collections import Counter
from typing import Any

import pytest
from distributed import wait

from daskscope import wire
from daskscope.agent import TOPIC
from daskscope.attempts import OFF_AFTER
from daskscope.readers import Readers
from tests.plugin.rig import Cluster, Inbox, Look, boom, look_at, watch

pytestmark = pytest.mark.asyncio

N = 5_000
LINES = {"kind": "logs", "from": "worker", "worker": "tcp://w", "lines": [[1, 30, "a", "x" * 1000, 0]] * 2}
STORMS: dict[str, tuple[str, Any]] = {
    "failures": ("worker-fail-hard", {"exception_text": "ValueError('x')", "worker": "tcp://w"}),
    "deaths": ("all", {"action": "remove-worker", "worker": "tcp://10.0.0.1:1"}),
    "members": ("all", {"action": "add-client", "client": "c"}),
    "agents": (TOPIC, LINES),
}
COUNTED = {"failures": {"exceptions": N}, "agents": {"log-lines": 2 * N}}


def fails(*args: object, **kwargs: object) -> Any:
    raise RuntimeError("out of order")


def put_off(look: Look, monkeypatch: pytest.MonkeyPatch, part: str) -> Readers:
    readers = look.watch.readers
    reader = getattr(readers, f"_{part}")
    monkeypatch.setattr(reader, "drain" if part == "agents" else "read", fails)
    for _ in range(OFF_AFTER + 1):  # the last one finds it off
        look.watch._message("running", None)
    assert readers.attempt.is_off(part)
    return readers


def n_kept(cluster: Cluster, topic: str) -> int:
    broker: Any = getattr(cluster.scheduler, "_broker", None)
    old: Any = cluster.scheduler
    return len(broker._topics[topic].events if broker is not None else old.events[topic])


@pytest.mark.parametrize("part", STORMS)
async def test_the_topics_of_a_part_that_is_off_are_as_short_as_dask_has_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    look = await look_at(cluster.scheduler, events=())
    readers = put_off(look, monkeypatch, part)
    others = ("deaths", "members") if part in ("deaths", "members") else ()
    for other in others:
        if not readers.attempt.is_off(other):
            put_off(look, monkeypatch, other)
    topic, said = STORMS[part]
    for _ in range(N):
        cluster.scheduler.log_event(topic, said)
    message = look.watch._message("running", None)
    assert n_kept(cluster, topic) <= 1_000
    assert not readers.behind
    assert message.lost[f"off-{part}"] == 1
    assert COUNTED.get(part, {}).items() <= message.lost.items()


async def test_log_lines_that_nobody_reads_are_counted_and_not_held(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = await look_at(cluster.scheduler, logs=logging.WARNING)
    for n in range(20):
        logging.getLogger("theirs").warning("held %d", n)
    readers = put_off(look, monkeypatch, "logs")
    before = Counter(readers.lost())
    for _ in range(200):
        readers._logs.take("tcp://w", LINES)
    logging.getLogger("theirs").warning("heard by nobody")
    look.watch._message("running", None)
    assert not readers._logs._waiting
    assert readers._logs._own.take() == ([], 0)
    assert not readers.behind
    assert before["log-lines"] >= 20
    assert (Counter(readers.lost()) - before)["log-lines"] == 400


async def test_failed_tasks_that_nobody_reads_are_counted_and_not_held(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = await look_at(cluster.scheduler)
    readers = put_off(look, monkeypatch, "exceptions")
    await wait(cluster.client.map(boom, range(150)))
    message = look.watch._message("running", None)
    assert not readers.behind
    assert message.lost["exceptions"] == 150
    look.watch._forget()
    assert len(cluster.scheduler.erred_tasks) == 100, "as many as Dask itself keeps"


async def test_closing_waits_for_no_part_that_is_off(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox()
    watching = watch(cluster.scheduler, inbox, logs=logging.WARNING)
    first = await inbox.next()
    put_off(Look(watching, first), monkeypatch, "logs")
    for _ in range(200):
        watching.readers._logs.take("tcp://w", LINES)
    seq = watching._seq
    watching.teardown()
    assert watching._seq == seq + 1
    last = wire.decode(inbox.bodies[-1])
    assert (last.phase, last.lost["log-lines"]) == ("closed", 400)


async def test_workers_that_cannot_be_read_are_still_counted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """To say that there are none would be to say that all have gone."""
    look = await look_at(cluster.scheduler)
    monkeypatch.setattr(look.watch.readers._workers, "read", fails)
    for n in range(OFF_AFTER + 1):  # fails once, and is off in the end
        totals = look.watch._message("running", None).totals
        if n in (0, OFF_AFTER):
            assert (totals.n_workers, totals.n_threads, totals.peak_workers) == (1, 1, 1)
