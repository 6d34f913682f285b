import asyncio
import base64
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daskscope_lambdas.embedded.function import Function, FunctionDiedError
from daskscope_lambdas.embedded.schedule import COMPACT_EVERY_S, HIDDEN_S, SWEEP_EVERY_S, WINDOW_S, Schedule
from daskscope_lambdas.handlers import compact
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters

Event = dict[str, Any]


class FakeFunction(Function):
    """Answers in this process; remembers the bodies of each batch."""

    def __init__(self, answer: Callable[[list[Event]], list[str]]) -> None:
        super().__init__("no.module")
        self.answer = answer
        self.batches = list[list[str]]()

    async def __call__(self, event: Event) -> Any:
        self.batches.append([record["body"] for record in event["Records"]])
        return {"batchItemFailures": [{"itemIdentifier": failed} for failed in self.answer(event["Records"])]}


def die_of_the_killer(records: list[Event]) -> list[str]:
    if any(record["body"] == "killer" for record in records):
        raise FunctionDiedError("killed")
    return []


def schedule(world: LocalAdapters, write: Function) -> Schedule:
    return Schedule(world.feed, write, write, nothing_here, nothing_here, "token", Path("nowhere"))


def nothing_here(_event: Event, _context: object) -> Event:
    raise AssertionError("no spool here, and nobody sweeps")


@pytest.mark.asyncio
async def test_what_was_written_is_deleted(adapters: LocalAdapters, clock: FakeClock):
    for n in range(3):
        adapters.queue.send(f"message {n}")
    write = FakeFunction(lambda _records: [])
    assert await schedule(adapters, write).drain_once() is False
    assert write.batches == [["message 0", "message 1", "message 2"]]
    clock.advance(HIDDEN_S + 1)
    assert adapters.feed.receive(10, 0) == []


@pytest.mark.asyncio
async def test_a_message_that_keeps_failing_is_buried_and_the_rest_is_not(
    adapters: LocalAdapters, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    for body in ("good", "bad"):
        adapters.queue.send(body)
    write = FakeFunction(lambda records: [r["messageId"] for r in records if r["body"] == "bad"])
    rounds = schedule(adapters, write)
    for _ in range(5):
        await rounds.drain_once()
        clock.advance(HIDDEN_S + 1)
    assert write.batches == [["good", "bad"], ["bad"], ["bad"]]
    assert caplog.text.count("Gave up on message") == 1
    (letter,) = adapters.dead_letters.list()
    assert (letter.body, letter.reason) == ("bad", "The message could not be written; the server's log says why.")


@pytest.mark.asyncio
async def test_what_ends_the_process_takes_no_other_message_along(adapters: LocalAdapters, clock: FakeClock):
    for body in ("one", "killer", "two"):
        adapters.queue.send(body)

    write = FakeFunction(die_of_the_killer)
    rounds = schedule(adapters, write)
    for _ in range(5):
        await rounds.drain_once()
        clock.advance(HIDDEN_S + 1)
    assert write.batches == [["one", "killer", "two"], ["one"], ["killer"], ["two"], ["killer"]]
    assert [(letter.body, letter.reason) for letter in adapters.dead_letters.list()] == [("killer", "killed")]


@pytest.mark.asyncio
async def test_what_was_with_a_process_that_died_is_given_again_at_once_but_only_once(
    adapters: LocalAdapters, clock: FakeClock
):
    for body in ("one", "killer"):
        adapters.queue.send(body)

    write = FakeFunction(die_of_the_killer)
    for _ in range(3):
        await schedule(adapters, write).drain_once()
    assert write.batches == [["one", "killer"], ["one"], ["killer"]], "the third try waits its time"
    clock.advance(HIDDEN_S + 1)
    await schedule(adapters, write).drain_once()
    assert write.batches[3:] == [["killer"]]


@pytest.mark.asyncio
async def test_a_server_that_stops_leaves_its_batch_to_the_next_one(adapters: LocalAdapters):
    adapters.queue.send("message")
    writing = asyncio.Event()

    class Busy(FakeFunction):
        async def __call__(self, event: Event) -> Any:
            writing.set()
            await asyncio.Event().wait()

    round_ = asyncio.create_task(schedule(adapters, Busy(lambda _records: [])).drain_once())
    await writing.wait()
    round_.cancel()
    with pytest.raises(asyncio.CancelledError):
        await round_
    assert [d.body for d in adapters.feed.receive(10, 0)] == ["message"]


@pytest.mark.asyncio
async def test_all_spools_are_taken_in(adapters: LocalAdapters, tmp_path: Path):
    taken = list[str]()

    def ingest(event: Event, _context: object) -> Event:
        taken.append(base64.b64decode(event["body"]).decode())
        return {"statusCode": 200, "body": "{}"}

    folders = [tmp_path / name for name in ("of-the-user", "of-the-data")]
    for folder in folders:
        folder.mkdir()
        for n in range(120):
            (folder / f"{n:03d}.gz.msg").write_text(f"{folder.name} {n}")
    write = FakeFunction(lambda _records: [])
    await Schedule(adapters.feed, write, write, ingest, nothing_here, "token", *folders, folders[0]).take_spool()
    assert taken == [f"{folder.name} {n}" for folder in folders for n in range(120)]
    assert not list(tmp_path.rglob("*.msg"))


@pytest.mark.asyncio
async def test_trouble_of_the_store_buries_nothing(adapters: LocalAdapters, clock: FakeClock):
    adapters.queue.send("message")

    def full(_records: list[Event]) -> list[str]:
        raise StoreError("disk full")

    broken = schedule(adapters, FakeFunction(full))
    for _ in range(5):
        with pytest.raises(StoreError):
            await broken.drain_once()
        clock.advance(HIDDEN_S + 1)
    assert [d.body for d in adapters.feed.receive(10, 0)] == ["message"]


@pytest.mark.asyncio
async def test_what_the_store_did_to_a_message_is_not_held_against_it(adapters: LocalAdapters, clock: FakeClock):
    adapters.queue.send("killer")

    def full(_records: list[Event]) -> list[str]:
        raise StoreError("disk full")

    write = FakeFunction(full)
    rounds = schedule(adapters, write)
    for _ in range(10):
        with pytest.raises(StoreError):
            await rounds.drain_once()
        clock.advance(HIDDEN_S + 1)
    write.answer = die_of_the_killer
    for n in (0, 0, 1):
        await rounds.drain_once()
        assert len(list(adapters.dead_letters.list())) == n
        clock.advance(HIDDEN_S + 1)


@pytest.mark.asyncio
async def test_what_stops_one_message_keeps_nothing_back_behind_it(adapters: LocalAdapters, clock: FakeClock):
    """One that the disk is too full for, and others that still have room."""
    for body in ("large", "small", "smaller"):
        adapters.queue.send(body)

    def nearly_full(records: list[Event]) -> list[str]:
        if any(record["body"] == "large" for record in records):
            raise StoreError("disk full")
        return []

    write = FakeFunction(nearly_full)
    rounds = schedule(adapters, write)
    for _ in range(3):
        with pytest.raises(StoreError, match="disk full"):
            await rounds.drain_once()
        clock.advance(HIDDEN_S + 1)
    assert write.batches == [["large", "small", "smaller"], ["large"], ["small"], ["smaller"], ["large"]]
    assert list(adapters.dead_letters.list()) == []


@pytest.mark.asyncio
async def test_a_sweep_is_no_business_of_the_event_loop(adapters: LocalAdapters):
    swept = list[tuple[str, bool]]()

    def sweep(event: Event, _context: object) -> None:
        swept.append((event["source"], threading.current_thread() is threading.main_thread()))

    write = FakeFunction(lambda _records: [])
    await Schedule(adapters.feed, write, write, nothing_here, sweep, "token", Path("nowhere")).sweep_once()
    assert swept == [("aws.scheduler", False)]


@pytest.mark.asyncio
async def test_a_last_catalog_is_not_waited_for_without_end(
    adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("daskscope_lambdas.embedded.schedule.LAST_S", 0.01)

    class Busy(FakeFunction):
        async def __call__(self, event: Event) -> None:
            await asyncio.Event().wait()

    class Dead(FakeFunction):
        async def __call__(self, event: Event) -> None:
            assert event == compact.CATALOG_ALONE
            raise FunctionDiedError("killed")

    for function in (Busy, Dead):
        await schedule(adapters, function(lambda _: [])).leave_catalog()
    assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["it took more than 0 s", "killed"]


@pytest.mark.asyncio
async def test_the_first_sweep_waits_until_clusters_have_found_the_server_again(
    adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    naps = list[float]()
    all_asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        if not seconds:
            return
        naps.append(seconds)
        if len(naps) == 4:
            all_asleep.set()
        await asyncio.Event().wait()

    class Compact(FakeFunction):
        async def __call__(self, event: Event) -> None:
            pass

    monkeypatch.setattr(asyncio, "sleep", sleep)
    nothing = Compact(lambda _records: [])
    rounds = Schedule(adapters.feed, nothing, nothing, nothing_here, nothing_here, "token", Path("nowhere")).run()
    running = asyncio.create_task(rounds)
    await all_asleep.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(naps) == [WINDOW_S, WINDOW_S, COMPACT_EVERY_S, SWEEP_EVERY_S]
    assert not caplog.text, "a sweep would have failed"
