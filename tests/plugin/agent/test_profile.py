"""Where a worker's time goes: functions that are known to be running, seen by the profiler of a real worker."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any, cast

import dask.config
import pytest
from distributed import Worker

from daskscope.agent import profile
from daskscope.agent.profile import MAX_DEPTH, OMITTED, Profiler, frame_text, next_pace
from tests.plugin.rig import Cluster, until


class Gate:
    """Holds a task in one place until the test has looked."""

    def __init__(self) -> None:
        self.reached, self.passed = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.passed.wait(60)


gates: dict[str, Gate] = {}


def hot() -> None:
    gates["hot"].wait()


def cold() -> None:
    gates["cold"].wait()


def work(_: int) -> None:
    hot()
    cold()


def sink(depth: int) -> None:
    if depth:
        sink(depth - 1)
    else:
        gates["sink"].wait()


@pytest.fixture(autouse=True)
def _gates() -> None:
    gates.clear()
    gates.update({name: Gate() for name in ("hot", "cold", "sink")})


def profiler(cluster: Cluster, send: Callable[[dict[str, Any]], None] = lambda _: None) -> Profiler:
    return Profiler(cluster.workers[0], 60.0, send)


def looks(profiler: Profiler, n: int) -> None:
    for _ in range(n):
        profiler.look()


def taken(profiler: Profiler) -> dict[str, Any] | None:
    """What the profiler would send now; None if nothing."""
    sent: list[dict[str, Any]] = []
    profiler._send = sent.append
    profiler._tell(profiler._swap(profiler._seen.sample_s))
    return sent[0] if sent else None


def stacks(payload: dict[str, Any]) -> dict[tuple[str, ...], int]:
    frames = payload["frames"]
    return {tuple(frames[n] for n in stack): count
            for stack, count in zip(payload["stack"], payload["count"], strict=True)}  # fmt: skip


def within(payload: dict[str, Any], function: str) -> int:
    """Samples whose stack holds a function of this module."""
    return sum(count for stack, count in stacks(payload).items()
               if any(frame.startswith(f"{function} (") for frame in stack))  # fmt: skip


@pytest.mark.asyncio
async def test_samples_are_counted_where_the_time_went(cluster: Cluster) -> None:
    """One function called for 75 of 100 looks, another by the same caller for 25: Dask's own profile tells neither."""
    seen = profiler(cluster)
    future = cluster.client.submit(work, 1)
    await until(gates["hot"].reached.is_set)
    looks(seen, 75)
    gates["hot"].passed.set()
    await until(gates["cold"].reached.is_set)
    looks(seen, 25)
    gates["cold"].passed.set()
    await future
    looks(seen, 10)  # nothing runs
    payload = taken(seen)
    assert payload is not None
    assert (within(payload, "work"), within(payload, "hot"), within(payload, "cold")) == (100, 75, 25)
    assert set(payload["prefix"]) == {"work"}
    assert (payload["kind"], payload["cut"], payload["sample_us"]) == ("profile", 0, 50_000)
    assert payload["to_ms"] - payload["from_ms"] >= 0
    stack = next(stack for stack in stacks(payload) if any(frame.startswith("hot (") for frame in stack))
    names = [frame.partition(" ")[0] for frame in stack]
    assert names.index("work") < names.index("hot") < names.index("Gate.wait"), "outermost first"
    assert f"hot (agent/test_profile.py:{hot.__code__.co_firstlineno})" in stack
    assert not [frame for frame in stack if "distributed/worker.py" in frame]
    assert taken(seen) is None, "what was taken is not told again"


@pytest.mark.asyncio
async def test_each_task_s_samples_are_under_its_own_prefix(cluster: Cluster) -> None:
    async with Worker(cluster.scheduler.address, nthreads=2, name="two", dashboard=False) as two:
        seen = Profiler(two, 60.0, lambda _: None)
        futures = [cluster.client.submit(task, 1, workers=[two.address]) for task in (work, sink)]
        await until(lambda: gates["hot"].reached.is_set() and gates["sink"].reached.is_set())
        looks(seen, 10)
        for gate in gates.values():
            gate.passed.set()
        await cluster.client.gather(futures)
    payload = taken(seen)
    assert payload is not None
    told = Counter[str]()
    for prefix, count in zip(payload["prefix"], payload["count"], strict=True):
        told[prefix] += count
    assert told == {"work": 10, "sink": 10}


@pytest.mark.parametrize("depth", [MAX_DEPTH * 2, 960])
@pytest.mark.asyncio
async def test_of_a_deep_stack_both_ends_stay(cluster: Cluster, depth: int) -> None:
    seen = profiler(cluster)
    future = cluster.client.submit(sink, depth, key="sink-1")
    await until(gates["sink"].reached.is_set)
    looks(seen, 3)
    gates["sink"].passed.set()
    await future
    payload = taken(seen)
    assert payload is not None
    ((stack, count),) = stacks(payload).items()
    assert count == 3
    assert len(stack) == MAX_DEPTH
    assert stack.count(OMITTED) == 1
    assert "wait (threading.py:" in stack[-1]
    assert [frame for frame in stack[: stack.index(OMITTED)] if frame.startswith("sink (")]


@pytest.mark.asyncio
async def test_a_stack_too_deep_to_walk_keeps_its_inner_end(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MAX_WALK", 100)
    seen = profiler(cluster)
    future = cluster.client.submit(sink, 200)
    await until(gates["sink"].reached.is_set)
    looks(seen, 1)
    gates["sink"].passed.set()
    await future
    payload = taken(seen)
    assert payload is not None
    ((stack, _),) = stacks(payload).items()
    assert stack[0] == OMITTED
    assert "wait (threading.py:" in stack[-1]
    assert len(stack) <= MAX_DEPTH


class Threads:
    """Stands in for a worker whose task threads the test holds at what they do."""

    address = "tcp://127.0.0.1:1"
    scheduler_delay = 3600.0

    def __init__(self) -> None:
        self.active_threads: dict[int, Any] = {}

    @contextlib.contextmanager
    def task(self, key: Any, source: str) -> Generator[None]:
        """A task of this key in a thread; `source` defines `f`, which is to call `hold`."""
        gate = Gate()
        made: dict[str, Any] = {"hold": gate.wait}
        exec(compile(source, "/home/someone/project/etl/clean.py", "exec"), made)
        exec(compile("def call(): f()", "/x/distributed/worker.py", "exec"), made)
        thread = threading.Thread(target=made["call"])
        thread.start()
        assert gate.reached.wait(60)
        self.active_threads[thread.ident or 0] = key
        yield
        del self.active_threads[thread.ident or 0]
        gate.passed.set()
        thread.join()


def threads_profiler(threads: Threads, send: Callable[[dict[str, Any]], None] = lambda _: None) -> Profiler:
    return Profiler(cast("Worker", threads), 60.0, send)


@pytest.mark.parametrize("limit", ["MAX_STACKS", "MAX_KEPT"])
def test_what_is_too_much_is_counted_as_cut(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(profile, limit, 3)
    threads = Threads()
    seen = threads_profiler(threads)
    for n in range(5):
        with threads.task("x-1", f"def f{n}(): hold()\nf = f{n}"):
            looks(seen, 5 - n)
    payload = taken(seen)
    assert payload is not None
    assert payload["count"] == [5, 4, 3], "the frequent ones stay"
    assert payload["cut"] == 2 + 1
    assert len(payload["frames"]) == len({n for stack in payload["stack"] for n in stack}), "no frame that none uses"


def test_functions_beyond_the_limit_are_left_out_of_their_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MAX_PLACES", 2)
    threads = Threads()
    seen = threads_profiler(threads)
    with threads.task("x-1", "def f(): hold()"):
        looks(seen, 1)
    payload = taken(seen)
    assert payload is not None
    ((stack, count),) = stacks(payload).items()
    assert (stack[0], count) == (OMITTED, 1)


def test_times_are_the_scheduler_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile.time, "time", lambda: 1_000.0)
    threads = Threads()
    seen = threads_profiler(threads)
    with threads.task(("x-1", 7), "def f(): hold()"):
        looks(seen, 1)
    payload = taken(seen)
    assert payload is not None
    assert (payload["from_ms"], payload["to_ms"], payload["prefix"]) == (4_600_000, 4_600_000, ["x"])


def test_a_thread_between_two_tasks_is_not_counted() -> None:
    threads = Threads()
    seen = threads_profiler(threads)
    threads.active_threads[threading.get_ident()] = "x-1"  # no frame of a worker below it
    threads.active_threads[-5] = "x-2"  # ended meanwhile
    looks(seen, 3)
    assert taken(seen) is None


def test_a_look_that_fails_is_counted_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads()
    seen = threads_profiler(threads)
    with threads.task("x-1", "def f(): hold()"):
        with monkeypatch.context() as patched:
            patched.delattr(profile.sys, "_current_frames")
            looks(seen, 2)
        looks(seen, 1)
    payload = taken(seen)
    assert payload is not None
    assert (payload["count"], payload["cut"]) == ([1], 2)


@pytest.mark.asyncio
async def test_it_is_told_when_an_interval_is_over_and_what_is_left_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "SAMPLE_S", 0.001)
    told: list[dict[str, Any]] = []
    threads = Threads()
    seen = Profiler(cast("Worker", threads), 0.0, told.append)
    with threads.task("x-1", "def f(): hold()"):
        seen.start()
        await until(lambda: len(told) >= 2)
        assert all(payload["count"][0] >= 1 for payload in told)
        looks(seen, 7)
        seen.stop()
        assert sum(told[-1]["count"]) >= 7
        n_told = len(told)
        seen.stop()
        assert len(told) == n_told, "only once"


@pytest.mark.asyncio
async def test_it_looks_from_the_event_loop_and_tells_from_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that asks for the frames of an event loop's crashes CPython 3.11."""
    monkeypatch.setattr(profile, "SAMPLE_S", 0.001)
    looked: set[int] = set()
    told: list[int] = []
    frames = sys._current_frames

    def current_frames() -> dict[int, Any]:
        looked.add(threading.get_ident())
        return frames()

    monkeypatch.setattr(profile.sys, "_current_frames", current_frames)
    threads = Threads()
    seen = Profiler(cast("Worker", threads), 0.0, lambda _: told.append(threading.get_ident()))
    with threads.task("x-1", "def f(): hold()"):
        seen.start()
        await until(lambda: told)
        assert looked == {threading.get_ident()}
        assert threading.get_ident() not in told
        seen.stop()


@pytest.mark.asyncio
async def test_where_looking_costs_much_it_is_looked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MAX_SHARE", 0.0)  # whatever it costs
    monkeypatch.setattr(profile, "SAMPLE_S", 0.001)
    monkeypatch.setattr(profile, "MAX_SAMPLE_S", 0.004)
    told: list[dict[str, Any]] = []
    threads = Threads()
    seen = Profiler(cast("Worker", threads), 60.0, told.append)
    with threads.task("x-1", "def f(): hold()"):
        seen.start()
        await until(lambda: len(told) == 2)
        looks(seen, 1)
        seen.stop()
    assert sorted(payload["sample_us"] for payload in told) == [1000, 2000, 4000], "each with the pace it was made at"


def test_whoever_cannot_be_told_stops_nothing() -> None:
    def gone(_: dict[str, Any]) -> None:
        raise OSError("closed")

    threads = Threads()
    seen = threads_profiler(threads, gone)
    with threads.task("x-1", "def f(): hold()"):
        looks(seen, 1)
        seen.stop()
    assert taken(seen) is None


@pytest.mark.asyncio
async def test_where_dask_s_profiling_is_off_so_is_this(cluster: Cluster) -> None:
    seen = profiler(cluster)
    with dask.config.set({"distributed.worker.profile.enabled": False}):
        seen.start()
    assert seen._timer is None


def test_the_pace_follows_the_cost() -> None:
    paces = [0.05]
    for share in (0.02, 0.006, 0.003, 0.001, 0.0001, 0.0):
        paces.append(next_pace(paces[-1], share))
    assert paces == [0.05, 0.1, 0.2, 0.2, 0.1, 0.05, 0.05]
    assert next_pace(1.6, 1.0) == 1.6


FILES = [
    ("/opt/conda/lib/python3.11/site-packages/pandas/core/frame.py", "pandas/core/frame.py"),
    ("/usr/lib/python3/dist-packages/numpy/core/numeric.py", "numpy/core/numeric.py"),
    ("/home/alice/.venv/lib/python3.12/site-packages/a.py", "a.py"),
    ("/usr/lib/python3.11/json/decoder.py", "json/decoder.py"),
    ("C:\\Users\\bob\\env\\Lib\\site-packages\\pandas\\io\\sql.py", "pandas/io/sql.py"),
    ("/tmp/dask-scratch-space/worker-9pzxiuyq/etl.py", "etl.py"),
    ("/home/alice/script.py", "script.py"),
    ("/srv/people/eve/script.py", "script.py"),
    ("/srv/people/eve/etl/clean.py", "etl/clean.py"),
    ("C:\\Users\\bob\\script.py", "script.py"),
    ("/nfs/homes/alice/script.py", "script.py"),
    ("/home/alice/customers/acme/etl/clean.py", "etl/clean.py"),
    ("/tmp/ipykernel_12/345.py", "ipykernel_12/345.py"),
    ("<string>", "<string>"),
    ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
    ("script.py", "script.py"),
    (f"/srv/{'a' * 110}/{'b' * 100}/c.py", f"{'b' * 100}/c.py"),
    (f"/srv/{'a' * 50}bcd/{'e' * 110}.py", f".../{'e' * 110}.py"),
    (f"/srv/{'a' * 130}.py", "..."),
]


@pytest.mark.parametrize(("file", "shown"), FILES)
def test_files_are_told_without_where_they_lie(file: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/people/eve")
    assert frame_text(file, 7, "load") == f"load ({shown}:7)"


def test_the_source_line_is_never_told() -> None:
    threads = Threads()
    seen = threads_profiler(threads)
    with threads.task("x-1", "def f():\n    password = 'hunter2'; hold()"):
        looks(seen, 1)
    assert "hunter2" not in str(taken(seen))
