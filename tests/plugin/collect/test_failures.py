"""Failures of Dask itself, made to happen in real workers."""

import inspect
import json
from typing import Any

import pytest
from distributed import Worker, wait
from distributed.scheduler import SchedulerState
from distributed.worker_state_machine import (
    InvalidTaskState,
    InvalidTransition,
    TransitionCounterMaxExceeded,
    WorkerState,
)

from daskscope import wire
from daskscope.collect import failures as module
from daskscope.collect.failures import TOPICS, FailureReader
from daskscope.collect.topics import Topics
from tests.plugin.rig import Cluster, boom, look_at, until

pytestmark = pytest.mark.asyncio

STORY = [("x-1", "ensure-task-exists", "released", "stimulus", 1.5), ("x-1", "released", "cancelled", {}, "s", 2.5)]


def of_type(families: list[wire.ExceptionFamily], name: str) -> wire.ExceptionFamily:
    (family,) = [family for family in families if family.type == name]
    return family


async def test_a_worker_that_fails_hard_is_told_with_text_and_place(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=())
    address = cluster.workers[0].address
    nonsense: Any = "no event that Dask knows"
    with pytest.raises(AttributeError):
        cluster.workers[0].handle_stimulus(nonsense)
    await until(lambda: not cluster.scheduler.workers)
    message = look()
    (family,) = message.exceptions
    assert (family.origin, family.type, family.count, family.workers) == ("dask", "AttributeError", 1, [address])
    assert "to_loggable" in family.text
    assert family.traceback == "", "Dask leaves its own frames out"
    assert (family.key, family.prefix, family.group) == ("", "", None)
    assert family.first_ms == family.last_ms <= message.made_at_ms
    assert (message.events, message.totals.n_tasks_erred) == ([], 0)
    assert look().exceptions == []


@pytest.mark.parametrize(
    ("error", "topic", "text"),
    [
        (
            InvalidTransition("x-1", "released", "cancelled", STORY),
            "invalid-worker-transition",
            "released -> cancelled",
        ),
        (InvalidTaskState("x-1", "flight", STORY), "invalid-worker-task-state", "flight"),
        (
            TransitionCounterMaxExceeded("x-1", "released", "cancelled", STORY),
            "transition-counter-max-exceeded",
            "released -> cancelled",
        ),
    ],
)
async def test_a_state_machine_that_breaks(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, error: Exception, topic: str, text: str
) -> None:
    """Raised where Dask raises it, reported by Dask's own worker."""
    look = await look_at(cluster.scheduler, events=())
    real: Any = WorkerState.handle_stimulus
    errors = [error]

    def breaks_once(state: WorkerState, *events: Any) -> Any:
        if errors:
            raise errors.pop()
        return real(state, *events)

    monkeypatch.setattr(WorkerState, "handle_stimulus", breaks_once)
    with pytest.raises(type(error)):
        cluster.workers[0].handle_stimulus()
    await until(lambda: not cluster.scheduler.workers)
    families = look().exceptions
    family = of_type(families, topic)
    assert (family.origin, family.text, family.key, family.prefix) == ("dask", text, "x-1", "x")
    assert family.workers == [cluster.workers[0].address]
    story = [json.loads(line) for line in family.traceback.splitlines()]
    assert story == [json.loads(json.dumps(line)) for line in STORY]
    assert of_type(families, type(error).__name__).origin == "dask", "and the worker failed hard of it"
    assert [family.no for family in families] == [0, 1]


@pytest.mark.skipif(
    "scheduler-transition-failed" not in inspect.getsource(SchedulerState), reason="this release does not report it"
)
async def test_a_scheduler_s_own_transition_that_fails(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    look = await look_at(cluster.scheduler)
    future = cluster.client.submit(boom, 1, key="boom-7")
    await wait(future)

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("a bookkeeping that does not add up")

    table: Any = cluster.scheduler._TRANSITIONS_TABLE
    monkeypatch.setitem(table, ("erred", "released"), fails)
    with pytest.raises(RuntimeError):
        cluster.scheduler.transition("boom-7", "released", stimulus_id="test")
    monkeypatch.undo()
    families = look().exceptions
    family = of_type(families, "scheduler-transition-failed")
    assert (family.text, family.key, family.prefix) == ("erred -> released", "boom-7", "boom")
    assert family.traceback == "", "the log of all tasks stays where it is"
    assert of_type(families, "ValueError").origin == "user"
    assert sorted(each.no for each in families) == [0, 1], "one numbering"


async def test_alike_failures_of_an_interval_are_one_family(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    for n in range(5):
        story = [(f"x-{n}", "released", n)]
        message = {"key": f"x-{n}", "start": "a", "finish": "b", "story": story, "worker": f"tcp://10.0.0.{n}:1"}
        cluster.scheduler.log_event("invalid-worker-transition", message)
    (family,) = look().exceptions
    assert (family.count, family.key, len(family.workers)) == (5, "x-0", 5)
    cluster.scheduler.log_event("invalid-worker-transition", {"key": "x-9", "start": "a", "finish": "b"})
    (later,) = look().exceptions
    assert (later.no, later.count) == (family.no + 1, 1)


async def test_every_name_that_dask_has_had(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=())
    for topic in TOPICS:
        cluster.scheduler.log_event(topic, {"key": ("x", 0), "state": "flight", "story": []})
    families = look().exceptions
    assert [family.type for family in families] == list(TOPICS)
    assert {(family.key, family.prefix, family.text) for family in families} == {("('x', 0)", "x", "flight")}


async def test_nothing_is_told_where_exceptions_are_not_to_be(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, exceptions=False)
    cluster.scheduler.log_event("worker-fail-hard", {"exception_text": "ValueError('canary')"})
    assert look().exceptions == []


async def test_nonsense_is_left_out_and_counted(cluster: Cluster) -> None:
    reader = FailureReader(Topics(cluster.scheduler))
    for nonsense in ("a text", 7, None, {"story": 5}, {"story": {1: 2}}):
        cluster.scheduler.log_event("invalid-worker-transition", nonsense)
    cluster.scheduler.log_event("worker-fail-hard", {"exception_text": 5, "worker": []})
    (failure,) = reader.read()
    assert (failure.type, failure.text, failure.workers) == ("Exception", "5", frozenset())
    assert reader.lost == {"exceptions": 0, "unreadable-exceptions": 5}
    assert reader.read() == []


async def test_objects_of_a_user_s_own_are_told_by_their_type(cluster: Cluster) -> None:
    class Loud:
        def __str__(self) -> str:
            raise AssertionError("the user's code")

        __repr__ = __str__

    reader = FailureReader(Topics(cluster.scheduler))
    for key in (Loud(), ("x", Loud())):
        told = {"exception_text": Loud(), "traceback_text": Loud(), "key": key}
        cluster.scheduler.log_event("worker-fail-hard", told)
    failures = reader.read()
    assert len(failures) == 2
    assert all(each.endswith((".Loud>", "<tuple>")) for f in failures for each in (f.text, f.traceback, f.key))


async def test_a_long_story_keeps_its_end(cluster: Cluster) -> None:
    reader = FailureReader(Topics(cluster.scheduler))
    cluster.scheduler.log_event("invalid-worker-task-state", {"story": [("x", n) for n in range(1000)]})
    (failure,) = reader.read()
    lines = failure.traceback.splitlines()
    assert (len(lines), lines[-1]) == (module.MAX_STORY, '["x", 999]')


async def test_more_than_one_read_looks_at_wait(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FAILURES", 3)
    topics = Topics(cluster.scheduler)
    reader = FailureReader(topics)
    topics.start()
    for n in range(4):
        cluster.scheduler.log_event("worker-fail-hard", {"exception_text": f"ValueError({n})"})
        cluster.scheduler.log_event("transitions", {"action": "scheduler-transition-failed", "key": n})
    told: list[str] = []
    behind: list[bool] = []
    for _ in range(4):
        told += [failure.text or failure.key for failure in reader.read()]
        behind.append(reader.behind)
    assert told == [f"ValueError({n})" for n in range(4)] + ["0", "1", "2", "3"]
    assert behind == [True, True, False, False]


async def test_a_worker_that_reports_what_is_no_failure_of_its_own(cluster: Cluster) -> None:
    """`get_worker().log_event` may name any topic."""
    look = await look_at(cluster.scheduler)
    worker: Worker = cluster.workers[0]
    worker.log_event("worker-fail-hard", {"exception_text": "MyError('mine')", "traceback_text": "  at home"})
    topics = Topics(cluster.scheduler)
    await until(lambda: list(topics.latest("worker-fail-hard")))
    (family,) = look().exceptions
    assert (family.type, family.text, family.traceback) == ("MyError", "MyError('mine')", "  at home")
