"""Events of a real scheduler: what is allowed, counted when it overflows, and never a line of the user's own code."""

import asyncio
import itertools
import json
import random
import string
from collections import Counter
from dataclasses import replace
from typing import Any

import dask.config
import pytest
from distributed import Client, Worker, get_worker, wait
from distributed import print as print_of_dask
from distributed import warn as warn_of_dask

from daskscope import testing, wire
from daskscope.agent import TOPIC as AGENT_TOPIC
from daskscope.collect import events as module
from daskscope.collect.events import EventReader
from daskscope.collect.topics import Topics
from daskscope.compression import compress
from tests.plugin.collect.told_events import details, of_topic
from tests.plugin.rig import Cluster, inc, look_at, running, until

pytestmark = pytest.mark.asyncio


async def test_workers_coming_and_going_are_told_with_counts_and_without_keys(cluster: Cluster) -> None:
    reader = EventReader(Topics(cluster.scheduler), ["mine"])
    (came,) = reader.read()
    address = cluster.workers[0].address
    assert (came.no, came.topic, came.action, came.worker) == (0, "all", "add-worker", address)
    async with Worker(cluster.scheduler.address, nthreads=1, name="brief", dashboard=False) as brief:
        held = cluster.client.submit(asyncio.sleep, 60, key="secret-key-name", workers=[brief.address])
        await until(lambda: cluster.scheduler.workers[brief.address].processing)
    await until(lambda: len(cluster.scheduler.workers) == 1)
    came, went = reader.read()
    assert (came.action, went.action, went.worker) == ("add-worker", "remove-worker", brief.address)
    detail = json.loads(went.detail)
    assert detail["processing-tasks"] == 1
    assert "secret-key-name" not in went.detail
    assert went.at_ms >= came.at_ms
    assert reader.read() == []
    del held


async def test_nothing_allowed_nothing_told(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=())
    await cluster.client.log_event("mine", {"action": "saved"})
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    message = look()
    assert message.events == []
    assert "events" not in message.lost
    assert len(message.deaths) == 1, "which tells the same, and more"


async def test_only_allowed_topics_are_told(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    await cluster.client.log_event("mine", {"action": "saved", "rows": 7})
    await cluster.client.log_event("other", {"action": "saved"})
    (event,) = look().events
    assert (event.topic, event.action, json.loads(event.detail)) == ("mine", "saved", {"rows": 7})


async def test_a_star_allows_all_but_what_carries_code(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("*",))
    await cluster.client.run_on_scheduler(inc, 1)
    await cluster.client.submit(inc, 1)
    await cluster.client.log_event("mine", "just a text")
    events = look().events
    assert [json.loads(event.detail) for event in of_topic(events, "mine")] == [{"message": "just a text"}]
    assert "run-function" in {message[1].get("action") for message in cluster.scheduler.get_events("all")}
    assert "run-function" not in {event.action for event in events}


async def test_run_function_is_not_told_under_any_topic(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    cluster.scheduler.log_event("mine", {"action": "run-function", "function": b"\x80pickled user code"})
    assert look().events == []


def steps(events: list[wire.Event]) -> list[int]:
    return [json.loads(event.detail)["n"] for event in events if event.action == "step"]


def log_events(topic: str, first: int, last: int) -> None:
    for n in range(first, last):
        get_worker().log_event(topic, {"action": "step", "n": n})


async def test_3000_events_of_a_worker_3000_of_a_client_and_3000_of_the_scheduler_all_arrive_once(
    cluster: Cluster,
) -> None:
    look = await look_at(cluster.scheduler, events=("of-worker", "of-client", "of-scheduler"))
    logged = cluster.client.submit(log_events, "of-worker", 0, 3000)
    for n in range(3000):
        await cluster.client.log_event("of-client", {"action": "step", "n": n})
        cluster.scheduler.log_event("of-scheduler", {"action": "step", "n": n})
    await wait(logged)
    topics = look.watch.readers._topics
    await until(lambda: len(list(topics.latest("of-worker"))) == 3000)
    messages = [look()]
    while look.watch.readers._events.behind:
        messages.append(look())
    events = [event for message in messages for event in message.events]
    for topic in ("of-worker", "of-client", "of-scheduler"):
        assert steps(of_topic(events, topic)) == list(range(3000))
    assert {event.worker for event in of_topic(events, "of-worker")} == {cluster.workers[0].address}
    assert [event.no for event in events] == list(range(events[0].no, events[0].no + len(events)))
    assert "events" not in messages[-1].lost
    assert len(messages) > 5, "no message became large"


async def test_a_crowded_topic_does_not_keep_others_waiting(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("a", "b"))
    for n in range(5000):
        cluster.scheduler.log_event("a", {"action": "step", "n": n})
    cluster.scheduler.log_event("b", {"action": "step", "n": -1})
    assert not of_topic(look().events, "b")
    assert steps(of_topic(look().events, "b")) == [-1]


async def test_a_topic_that_appears_under_a_star_is_complete(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("*",))
    for n in range(2500):
        cluster.scheduler.log_event("late", {"action": "step", "n": n})
    told = look().events
    while look.watch.readers._events.behind:
        told += look().events
    assert steps(of_topic(told, "late")) == list(range(2500))


async def test_between_two_reads_dask_s_memory_is_as_short_as_ever(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    for n in range(2500):
        cluster.scheduler.log_event("mine", {"action": "step", "n": n})
    look()
    while look.watch.readers._events.behind:
        look()
    look.watch._forget()
    assert len(cluster.scheduler.get_events("mine")) == 1000


async def test_an_overflown_topic_counts_what_was_lost() -> None:
    with dask.config.set({"distributed.admin.low-level-log-length": 10}):
        async with running(0) as cluster:
            reader = EventReader(Topics(cluster.scheduler), ["mine"])  # one that has not started: Dask's own length
            for n in range(25):
                cluster.scheduler.log_event("mine", {"action": "step", "n": n})
            first = reader.read()
            assert steps(first) == list(range(15, 25))
            assert reader.lost["events"] == 15
            cluster.scheduler.log_event("mine", {"action": "step", "n": 25})
            again = reader.read()
            assert steps(again) == [25]
            assert reader.lost["events"] == 15, "a running total"
            numbers = [event.no for event in first + again]
            assert len(set(numbers)) == 11
            assert numbers == sorted(numbers)


async def test_what_dask_dropped_before_the_watch_began_is_not_its_loss() -> None:
    with dask.config.set({"distributed.admin.low-level-log-length": 10}):
        async with running(0) as cluster:
            for n in range(25):
                cluster.scheduler.log_event("mine", {"action": "step", "n": n})
            reader = EventReader(Topics(cluster.scheduler), ["mine"])
            assert steps(reader.read()) == list(range(15, 25))
            assert reader.lost.total() == 0


async def test_a_topic_that_dask_emptied_loses_nothing(cluster: Cluster) -> None:
    topics = Topics(cluster.scheduler)
    reader = EventReader(topics, ["*"])
    cluster.scheduler.log_event("mine", {"action": "seen"})
    reader.read()
    if hasattr(cluster.scheduler, "_broker"):
        cluster.scheduler._broker.truncate("mine")
    else:
        del topics._known()["mine"]  # so it was before 2024.7.0
    assert (reader.read(), reader.lost.total()) == ([], 0)
    cluster.scheduler.log_event("mine", {"action": "again"})
    assert [event.action for event in reader.read()] == ["again"]
    assert reader.lost.total() == 0


async def test_our_own_topic_is_nobody_s_event(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("*", AGENT_TOPIC))
    cluster.scheduler.log_event(AGENT_TOPIC, {"kind": "hello", "from": "worker", "worker": "tcp://10.0.0.1:1"})
    cluster.scheduler.log_event("mine", {"action": "seen"})
    assert {event.topic for event in look().events} == {"mine"}


def prints_and_warns() -> None:
    print_of_dask("to the user")
    warn_of_dask("mind the gap", UserWarning)


async def told(cluster: Cluster, topics: Topics) -> None:
    await cluster.client.submit(prints_and_warns)
    await until(lambda: list(topics.latest("print")) and list(topics.latest("warn")))


async def test_what_is_pickled_is_told_without_its_bytes(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("*",))
    with pytest.warns(UserWarning, match="mind the gap"):
        await told(cluster, look.watch.readers._topics)
    events = look().events
    (printed,) = details(of_topic(events, "print"))
    assert printed["args"] == ["to the user"]
    (warned,) = details(of_topic(events, "warn"))
    assert all(value.endswith(" bytes>") for value in warned.values())


@pytest.mark.parametrize("topic", [7, ("a", 1), b"bytes", None, 1.5, "x" * 500, "\udcff"])
async def test_a_topic_that_is_no_text(cluster: Cluster, topic: Any) -> None:
    look = await look_at(cluster.scheduler, events=("*",))
    cluster.scheduler.log_event([topic], {"action": "seen"})
    message = look.watch._message("running", None)
    (event,) = wire.decode(wire.encode(message)).events
    assert event.action == "seen"
    assert 0 < len(event.topic) <= 210


class Broken(dict[Any, Any]):
    """A message that cannot be looked into."""

    def items(self) -> Any:
        raise RuntimeError("no items")


async def test_a_message_that_cannot_be_read_is_left_out_and_counted(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    for message in (Broken(action="x"), {"action": "fine"}, {"n": Broken()}):
        cluster.scheduler.log_event("mine", message)
    message = look()
    assert [event.action for event in message.events] == ["fine"]
    assert message.lost["unreadable-events"] == 2


async def test_under_a_star_all_that_happens_in_all_is_told_as_counts(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("*",))
    cluster.scheduler.log_event("all", {"action": "gather", "count": 3, "keys": ["secret-key"]})
    (event,) = of_topic(look().events, "all")
    assert (event.action, json.loads(event.detail)) == ("gather", {"count": 3, "keys": 1})


async def test_once_each_what_dask_logs_in_two_topics(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("*",))
    n_before = len(cluster.scheduler.get_events("all"))
    async with Worker(cluster.scheduler.address, nthreads=1, name="brief", dashboard=False):
        async with Client(cluster.scheduler.address, asynchronous=True) as client:
            await client.scatter({"x": 1})
        await until(lambda: client.id not in cluster.scheduler.clients)
    await until(lambda: len(cluster.scheduler.workers) == 1)
    logged = Counter(message["action"] for _, message in list(cluster.scheduler.get_events("all"))[n_before:])
    told = Counter(event.action for event in look().events)
    for action in ("add-worker", "remove-worker", "add-client", "remove-client", "scatter"):
        # Dask itself logs twice that a client has gone: when it says so, and when its connection ends.
        assert told[action] == logged[action] == (2 if action == "remove-client" else 1), action


async def test_without_exceptions_their_texts_do_not_leave_as_events_either(cluster: Cluster) -> None:
    """All else as by default: the failures of Dask are events that are allowed."""
    look = await look_at(cluster.scheduler, exceptions=False)
    nonsense: Any = "a secret"
    with pytest.raises(AttributeError):
        cluster.workers[0].handle_stimulus(nonsense)
    story = [("x-1", "a secret", "released")]
    fields = {"key": "x-1", "start": "released", "finish": "memory", "story": story, "transition_log": story}
    cluster.scheduler.log_event("invalid-worker-transition", {"worker": "tcp://10.0.0.1:1", **fields})
    cluster.scheduler.log_event("invalid-worker-task-state", "a secret")
    await until(lambda: not cluster.scheduler.workers)
    message = look()
    (failed,) = of_topic(message.events, "worker-fail-hard")
    assert (failed.worker, failed.detail) == (cluster.workers[0].address, "")
    (invalid,) = of_topic(message.events, "invalid-worker-transition")
    assert json.loads(invalid.detail) == {"key": "x-1", "start": "released", "finish": "memory"}
    (text,) = of_topic(message.events, "invalid-worker-task-state")
    assert text.detail == ""
    assert message.exceptions == []
    body = wire.encode(replace(message, logs=wire.Logs()))
    assert b"secret" not in body
    assert b"to_loggable" not in body
    assert not look.watch.readers._failures._places, "nobody reads them"


async def test_memory_of_topics_that_are_gone_is_let_go(cluster: Cluster) -> None:
    topics = Topics(cluster.scheduler)
    reader = EventReader(topics, ["*"])
    for n in range(50):
        cluster.scheduler.log_event(f"topic-{n}", {"n": n})
    reader.read()
    for n in range(50):
        del topics._known()[f"topic-{n}"]
    reader.read()
    assert not [name for name in [*reader._places, *topics._places] if str(name).startswith("topic-")]


async def test_a_message_takes_many_events_and_not_for_long(cluster: Cluster) -> None:
    ticks = itertools.count()
    topics = Topics(cluster.scheduler)
    quick = EventReader(topics, ["mine"], cpu=lambda: 0.0)
    late = EventReader(topics, ["mine"], cpu=lambda: float(next(ticks)))
    quick.read()
    late.read()
    topics.start()
    for n in range(8_000):
        cluster.scheduler.log_event("mine", {"n": n})
    assert len(quick.read()) > 5_000
    assert quick.behind
    assert len(quick.read()) < 2_000
    assert not quick.behind
    reads = [late.read() for _ in range(2_001)]
    told = [event for events in reads for event in events]
    assert details(told) == [{"n": n} for n in range(8_000)]
    assert max(map(len, reads)) == module.N_BETWEEN_LOOKS
    topics.close()


async def test_what_cannot_be_compressed_fits_into_a_body(cluster: Cluster) -> None:
    pick = random.Random(0)
    topics = Topics(cluster.scheduler)
    reader = EventReader(topics, ["mine"], cpu=lambda: 0.0)
    reader.read()
    for letters in (string.printable, "".join(map(chr, range(0x4E00, 0x9000)))):
        for _ in range(400):
            cluster.scheduler.log_event("mine", "".join(pick.choices(letters, k=3_000)))
        message = testing.message(events=reader.read())
        assert len(message.events) > 50
        body, _ = compress(wire.encode(message))
        assert len(body) < wire.MAX_BODY_BYTES * 3 / 4
        while reader.behind:
            reader.read()
