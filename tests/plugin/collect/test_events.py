"""Events of a real scheduler: what is allowed, counted when it overflows, and never a line of the user's own code."""

import json
from collections.abc import Mapping
from typing import Any

import dask.config
import pytest
from distributed import Worker

from daskscope import wire
from daskscope.collect.events import MAX_DETAIL, EventReader
from tests.plugin.rig import Cluster, inc, look_at, until

pytestmark = pytest.mark.asyncio


def details(events: list[wire.Event]) -> list[Any]:
    return [json.loads(event.detail) if event.detail else None for event in events]


def of_topic(events: list[wire.Event], topic: str) -> list[wire.Event]:
    return [event for event in events if event.topic == topic]


class Hostile:
    """Its text, its hash and its length are the user's code, and they raise."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__

    def __len__(self) -> int:
        raise RuntimeError("no len")


async def test_workers_coming_and_going_are_told_with_counts_and_without_keys(cluster: Cluster) -> None:
    reader = EventReader(cluster.scheduler, [])
    (came,) = reader.read()
    address = cluster.workers[0].address
    assert (came.no, came.topic, came.action, came.worker) == (0, "all", "add-worker", address)
    async with Worker(cluster.scheduler.address, nthreads=1, name="brief", dashboard=False) as brief:
        kept = await cluster.client.scatter({"secret-key-name": 1}, workers=[brief.address])
    await until(lambda: len(cluster.scheduler.workers) == 1)
    came, went = reader.read()
    assert (came.action, went.action, went.worker) == ("add-worker", "remove-worker", brief.address)
    detail = json.loads(went.detail)
    assert detail["lost-scattered-tasks"] == 1
    assert "secret-key-name" not in went.detail
    assert went.at_ms >= came.at_ms
    assert reader.read() == []
    del kept


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


async def test_an_overflown_topic_counts_what_was_lost() -> None:
    from tests.plugin.rig import running

    with dask.config.set({"distributed.admin.low-level-log-length": 10}):
        async with running(0) as cluster:
            look = await look_at(cluster.scheduler, events=("mine",))
            for n in range(25):
                cluster.scheduler.log_event("mine", {"action": "step", "n": n})
            message = look()
            assert [json.loads(event.detail)["n"] for event in message.events] == list(range(15, 25))
            assert message.lost == {"events": 15}
            cluster.scheduler.log_event("mine", {"action": "step", "n": 25})
            again = look()
            assert [json.loads(event.detail)["n"] for event in again.events] == [25]
            assert again.lost == {"events": 15}, "a running total"
            numbers = [event.no for event in message.events + again.events]
            assert len(set(numbers)) == 11
            assert numbers == sorted(numbers)


async def test_what_dask_dropped_before_the_watch_began_is_not_its_loss() -> None:
    from tests.plugin.rig import running

    with dask.config.set({"distributed.admin.low-level-log-length": 10}):
        async with running(0) as cluster:
            for n in range(25):
                cluster.scheduler.log_event("mine", {"action": "step", "n": n})
            reader = EventReader(cluster.scheduler, ["mine"])
            assert [json.loads(event.detail)["n"] for event in reader.read()] == list(range(15, 25))
            assert reader.lost == 0


async def test_a_topic_that_dask_emptied_loses_nothing(cluster: Cluster) -> None:
    reader = EventReader(cluster.scheduler, ["mine"])
    cluster.scheduler.log_event("mine", {"action": "seen"})
    reader.read()
    cluster.scheduler._broker.truncate("mine")
    assert (reader.read(), reader.lost) == ([], 0)


PAYLOADS: list[tuple[Any, Any]] = [
    ({"keys": {("x", 0)}}, {"keys": [["x", 0]]}),
    ({("x", 0): 1, 7: 2, "a": 3}, {"['x', 0]": 1, "7": 2, "a": 3}),
    ({b"k": b"\x80\x04pickled"}, {"<1 bytes>": "<9 bytes>"}),
    ({"o": Hostile()}, {"o": "<Hostile>"}),
    ({Hostile(): 1}, {"<Hostile>": 1}),
    ({(Hostile(), 1): 1}, {"['<Hostile>', 1]": 1}),
    ({"action": Hostile(), "x": 1}, {"x": 1}),
    ({"worker": Hostile(), "x": 1}, {"x": 1}),
    ({"f": float("nan"), "g": float("inf"), "h": 1.5}, {"f": "nan", "g": "inf", "h": 1.5}),
    ({"n": 10**5000}, {"n": "<an integer of 16610 bits>"}),
    ({"n": 2**63 - 1, "b": True, "z": None}, {"n": 2**63 - 1, "b": True, "z": None}),
    (["a", 1], {"message": ["a", 1]}),
    (Hostile(), {"message": "<Hostile>"}),
    ({"deep": [[[[[[[1]]]]]]]}, {"deep": [[[["..."]]]]}),
    ({"many": list(range(60))}, {"many": [*range(50), "... 10 more"]}),
    ({"many": {str(n): n for n in range(60)}}, {"many": {**{str(n): n for n in range(50)}, "...": "10 more"}}),
]


@pytest.mark.parametrize("n", range(len(PAYLOADS)))
async def test_any_payload_becomes_json_without_running_the_user_s_code(cluster: Cluster, n: int) -> None:
    payload, expected = PAYLOADS[n]
    look = await look_at(cluster.scheduler, events=("mine",))
    cluster.scheduler.log_event("mine", payload)
    assert details(look().events) == [expected]


async def test_a_payload_that_contains_itself_ends(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    cluster.scheduler.log_event("mine", loop)
    assert "..." in look().events[0].detail


async def test_lone_surrogates_do_not_stop_the_message(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    cluster.scheduler.log_event("mine", {"action": "a\udcff", "x": "\ud800"})
    message = look.watch._message("running", None)
    (event,) = wire.decode(wire.encode(message)).events
    assert (event.action, event.detail) == ("a?", '{"x": "?"}')


async def test_a_long_event_is_cut_and_says_by_how_much(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    cluster.scheduler.log_event("mine", {"text": "x" * 10_000})
    (detail,) = details(look().events)
    assert isinstance(detail, Mapping)
    assert len(detail["start"]) == MAX_DETAIL
    assert detail["cut_characters"] == 10_000 + len('{"text": ""}') - MAX_DETAIL


async def test_memory_of_topics_that_are_gone_is_let_go(cluster: Cluster) -> None:
    reader = EventReader(cluster.scheduler, ["*"])
    for n in range(50):
        cluster.scheduler.log_event(f"topic-{n}", {"n": n})
    reader.read()
    for n in range(50):
        del cluster.scheduler._broker._topics[f"topic-{n}"]
    reader.read()
    assert not [name for name in reader._seen if name.startswith("topic-")]
