"""Whatever of ours fails, the workload's results are what they would have been, and hardly anybody hears of it."""

from __future__ import annotations

import ast
import asyncio
import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, Nanny, wait

from daskscope.agent import NAME, OURS
from daskscope.scheduler_plugin import start_watch
from daskscope.watch import EXTENSION, Watch
from tests.plugin.ingest_server import Server, answers
from tests.plugin.planted import KINDS, Garden, garden, modules
from tests.plugin.rig import Cluster, boom, inc, quiet_scheduler, settings, until

pytestmark = pytest.mark.asyncio

GUARDS = {
    "agent.loading:load": "while Dask unpickles: it answers our call with the error",
    "agent.logs:LogSender._plan": "guards _plan_to_send",
    "agent.logs:LogSender.flush": "guards _send_all",
    "agent.plugins:NannyAgent._leave": "guards what it calls",
    "agent.plugins:NannyAgent._sent": "guards what it calls",
    "agent.plugins:NannyAgent.setup": "guards what it calls",
    "agent.plugins:NannyAgent.teardown": "hands _leave to Dask",
    "agent.plugins:WorkerAgent._greet": "guards what it calls, in a thread of its own",
    "agent.plugins:WorkerAgent._leave": "guards what it calls",
    "agent.plugins:WorkerAgent._send": "guards _log_event",
    "agent.plugins:WorkerAgent.setup": "guards what it calls",
    "agent.plugins:WorkerAgent.teardown": "hands _leave to Dask",
    "agent.profile:Profiler._tell": "guards what it calls, in a thread of its own",
    "agent.profile:Profiler._tick": "guards what it calls",
    "agent.tap:Tap.handle": "guards emit",
    "agent.tap:_Factory.__call__": "guards follow",
    "agent.tap:_LastResort.handle": "calls Tap.handle",
    "collect.calls:Calls._work_off": "guards _try",
    "collect.history:History.append": "guards what it calls",
    "collect.mailbox:Mailbox.append": "guards what it calls",
    "collect.members:MemberReader._look_around": "guards what it calls, in a thread of its own",
    "collect.memory:LongMemory.appendleft": "counts, and is the deque's own",
    "collect.memory:LongMemory.clear": "calls Watch._rescue, and is the deque's own",
    "collect.roster:Roster._look_between": "guards look",
    "collect.agents:Agents._look_between": "guards look",
    "collect.tasks:TaskReader._note": "guards all it does",
    "control:Closer._look_now": "guards look",
    "scheduler_plugin:Starter._leave": "takes an entry out of a dict",
    "scheduler_plugin:Starter.start": "calls start_watch",
    "scheduler_plugin:start_watch": "guards install",
    "sender:Sender._run": "guards _step",
    "sender:Sender.close": "teardown guards it; without it the thread goes on until the process ends",
    "transport:Http.close": "ends the thread; what it leaves open, the process's end closes",
    "watch:Watch._end": "guards each step",
    "watch:Watch.poll": "guards all it does",
    "watch:Watch.teardown": "calls _end",
}
"""What others call, and what in it catches errors: all that these call is planted, and they are not."""

TRUSTED = ("attempts:", "agent.texts:told")
"""What all guards are made of."""

HANDED_OVER = {
    ("agent.hardware", "_end"),
    ("agent.logs", "self._plan"),
    ("agent.logs", "self.flush"),
    ("agent.plugins", "lambda task: self._sent(task, payload)"),
    ("agent.plugins", "self._call(payload)"),
    ("agent.plugins", "self._greet"),
    ("agent.profile", "self._tell"),
    ("agent.profile", "self._tick"),
    ("agent.tap", "self._factory"),
    ("agent.tap", "_living(self._factory.before)"),
    ("collect.agents", "self._look_between"),
    ("collect.calls", "running.discard"),
    ("collect.calls", "self._work_off(waiting, deadline_s)"),
    ("collect.members", "self._look_around"),
    ("collect.roster", "self._look_between"),
    ("collect.tasks", "self._originals[op]"),
    ("collect.tasks", "self._wrap(handlers[op], failed=op == 'task-erred')"),
    ("control", "self._end"),
    ("control", "self._look_now"),
    ("scheduler_plugin", "self._leave"),
    ("courier", "self._run"),
    ("sender", "lambda _: self._shown.pop(id(message), None)"),
    ("sender", "self._run"),
    ("watch", "self._rescue"),
    ("watch", "self.describe"),
    ("watch", "self.poll"),
}
"""Callables that are given to event loops, threads, logging and Dask."""

_TAKERS = {
    "PeriodicCallback": 0, "add_callback": 0, "call_later": 1, "call_soon_threadsafe": 0, "add_done_callback": 0,
    "create_task": 0, "setLogRecordFactory": 0, "LongMemory": 1, "spawn_callback": 0, "call_soon": 0,
    "call_at": 1, "ensure_future": 0, "run_in_executor": 1, "register_at_fork": 0,
}  # fmt: skip
"""Functions that take a callable, and at which place."""

GATE = threading.Event()
PEACE = ("could not be delivered before the scheduler closed",)
"""Said once, at the end."""


def held() -> int:
    assert GATE.wait(30)
    return 7


class Said(logging.Handler):
    """What is logged from WARNING on, with tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[tuple[str, str]] = []
        self._latest: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record is self._latest:  # of Dask's logger and of the root's, where Dask's hands on to that
            return
        self._latest = record
        text = record.getMessage()
        if record.exc_info:
            text += "".join(traceback.format_exception(*record.exc_info))
        self.lines.append((record.name, text))

    @property
    def ours(self) -> list[str]:
        lines = [text for name, text in self.lines if name == "distributed.daskscope"]
        return [text for text in lines if not any(last in text for last in PEACE)]

    @property
    def of_others(self) -> list[tuple[str, str]]:
        """Lines of others that show what was planted."""
        return [
            line
            for line in self.lines
            if line[0] != "distributed.daskscope" and ("planted in" in line[1] or "Mute" in line[1])
        ]


@pytest.fixture
def said() -> Iterator[Said]:
    handler = Said()
    logging.getLogger().addHandler(handler)
    logging.getLogger("distributed").addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
    logging.getLogger("distributed").removeHandler(handler)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A tap whose own leaving fails stays: other tests of this process are not to meet it."""
    factory, last = logging.getLogRecordFactory(), logging.lastResort
    yield
    logging.setLogRecordFactory(factory)
    logging.lastResort = last
    known = [logging.root, *logging.Logger.manager.loggerDict.values()]
    for logger in known:
        if isinstance(logger, logging.Logger):
            for handler in [handler for handler in logger.handlers if getattr(handler, "daskscope", False)]:
                logger.removeHandler(handler)


class Place(Server):
    """With its address."""

    url = ""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Takes every message, and wishes for what there is to wish."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = Place(answers(200, {"id": 1, "url": "c/1", "wish": ["identity"]}))
    with made.running() as made.url:
        yield made


def begin(cluster: Cluster, server: Place) -> Watch | None:
    """With all that can be switched on; None if it did not start."""
    everything: dict[str, Any] = {"tasks": True, "events": ("*",), "logs": logging.WARNING, "idle_timeout_s": 3600.0}
    start_watch(cluster.scheduler, settings(server=server.url, token="t", **everything))
    # A worker in the scheduler's process would leave its lines to it: here it sends them, as any other.
    vars(logging.getLogger(OURS)).get("listeners", {}).pop(cluster.scheduler.id, None)
    found: Watch | None = cluster.scheduler.extensions.get(EXTENSION)
    return found


async def end(cluster: Cluster, watching: Watch | None) -> None:
    """As when the scheduler closes; another watch may begin then."""
    if watching is not None:
        watching.teardown()
        await asyncio.to_thread(watching.sender._thread.join, 20)
        assert not watching.sender._thread.is_alive()
    scheduler: Any = cluster.scheduler
    scheduler.extensions.pop(EXTENSION, None)
    scheduler.handlers.pop(EXTENSION, None)
    for name in ("erred_tasks", "computations"):
        setattr(scheduler, name, deque(getattr(scheduler, name), 100))


async def called(watching: Watch) -> None:
    """The calls to workers and nannies that have begun are over."""
    if calls := watching.readers._agents._calls.running:
        await asyncio.wait(set(calls))


async def work(cluster: Cluster, watching: Watch | None, n_tasks: int = 10) -> None:
    """Tasks, failures, events and lines, and what the agent does meanwhile; all is as it would be without us."""
    client = cluster.client
    futures, failing = client.map(inc, range(n_tasks), pure=False), client.map(boom, range(2), pure=False)
    scattered = await client.scatter([1, 2], hash=False)
    await client.log_event("theirs", {"a": 1})
    assert await client.gather(futures) == [inc(x) for x in range(n_tasks)]
    await wait(failing)
    assert [future.status for future in failing] == ["error", "error"]
    logging.getLogger("theirs").warning("a line")
    if watching is not None:
        await called(watching)
    GATE.clear()
    waiting = client.submit(held, pure=False)
    profiler = getattr(cluster.workers[0].plugins.get(NAME), "_profiler", None)
    await until(lambda: cluster.workers[0].active_threads)
    if profiler is not None:
        profiler._tick()
    GATE.set()
    assert await waiting == 7
    assert await client.gather(scattered) == [1, 2]


async def story(cluster: Cluster, server: Place, made: Garden, *targets: str, kind: type[BaseException]) -> int:
    """A watch from its start to its end with something planted; returns how often that came up."""
    workers = dict(cluster.scheduler.workers)
    with made.planted(*targets, kind=kind):
        watching = begin(cluster, server)
        if watching is not None:
            watching.poll()
        await work(cluster, watching)
        if watching is not None:
            watching.poll()
        await end(cluster, watching)
    assert cluster.scheduler.status.name == "running"
    assert cluster.scheduler.workers == workers, "no worker is lost"
    return made.n_raised


def check(said: Said, what: str) -> None:
    assert not said.of_others, f"{what}: {said.of_others[0]}"
    assert len(said.ours) <= 1, f"{what}: {said.ours}"
    said.lines.clear()


def plants(made: Garden) -> list[str]:
    """Where something may be planted: everywhere but in the guards, and in what all of them guard with."""
    return [name for name in made.names if name not in GUARDS and not name.startswith(TRUSTED)]


def places() -> list[str]:
    with garden() as made:
        return sorted({name.partition(":")[0] for name in plants(made)})


async def each_alone(cluster: Cluster, server: Place, said: Said, place: str) -> None:
    with garden() as made:
        for n, name in enumerate(name for name in plants(made) if name.partition(":")[0] == place):
            await story(cluster, server, made, name, kind=KINDS[n % len(KINDS)])
            check(said, name)


@pytest.mark.parametrize("place", ["agent.tap", "collect.calls", "watch"])
async def test_one_function_that_fails_is_nobody_s_trouble(
    cluster: Cluster, server: Place, said: Said, place: str
) -> None:
    await each_alone(cluster, server, said, place)


@pytest.mark.long
@pytest.mark.timeout(600)
# A connection that fails while it is made, or closed, is closed when it is collected, as Python says then.
@pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning")
@pytest.mark.parametrize("place", places())
async def test_any_one_function_that_fails_is_nobody_s_trouble(
    cluster: Cluster, server: Place, said: Said, place: str
) -> None:
    await each_alone(cluster, server, said, place)


async def rain(cluster: Cluster, server: Place, said: Said, n_rounds: int, n_tasks: int, share: float) -> None:
    """Everything fails now and then, all at once, while the watch goes on; then nothing does, and all is told again."""
    workers, began_s = dict(cluster.scheduler.workers), time.monotonic()
    with garden() as made:
        watching = begin(cluster, server)
        assert watching is not None
        with made.planted(*plants(made), share=share):
            for _ in range(n_rounds):
                watching.poll()
                await work(cluster, watching, n_tasks)
                watching.poll()
        assert made.n_raised >= n_rounds
        n_posts = len(server.posts)
        watching.poll()
        await end(cluster, watching)
        assert len(server.posts) > n_posts
    assert cluster.scheduler.workers == workers
    assert not said.of_others
    minutes = 1 + (time.monotonic() - began_s) // 60
    assert len(said.ours) <= 2 * minutes, "readers and sender, once a minute each"


async def test_whatever_fails_now_and_then_results_are_the_same(cluster: Cluster, server: Place, said: Said) -> None:
    await rain(cluster, server, said, n_rounds=3, n_tasks=100, share=0.03)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_whatever_fails_now_and_then_ten_thousand_results_are_the_same(
    cluster: Cluster, server: Place, said: Said
) -> None:
    await rain(cluster, server, said, n_rounds=10, n_tasks=1000, share=0.03)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_an_agent_on_a_nanny_that_fails_is_nobody_s_trouble(server: Place, said: Said) -> None:
    async with (
        quiet_scheduler() as scheduler,
        Nanny(scheduler.address, nthreads=1, dashboard=False) as nanny,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        await until(lambda: scheduler.workers)
        pid = nanny.pid
        with garden() as made:
            targets = [name for name in plants(made) if "NannyAgent" in name or "Nannies." in name]
            for n, name in enumerate(targets):
                with made.planted(name, kind=KINDS[n % len(KINDS)]):
                    cluster = Cluster(scheduler, client, [])
                    watching = begin(cluster, server)
                    if watching is not None:
                        watching.poll()
                        await called(watching)
                    logging.getLogger("theirs").warning("a line")
                    assert await client.submit(inc, n, pure=False) == n + 1
                    await end(cluster, watching)
                check(said, name)
        assert nanny.pid == pid, "it was not restarted"


async def test_what_is_left_out_of_the_planting_is_there() -> None:
    with garden() as made:
        assert GUARDS.keys() <= set(made.names)


async def test_every_callable_that_is_given_away_is_known_here() -> None:
    """Each of these is entered by others: it stands among the guards, or all of what calls it does."""
    found: set[tuple[str, str]] = set()
    for module in modules():
        source = Path(module.__file__ or "").read_text()
        place = module.__name__.removeprefix("daskscope.")
        found |= {(place, each) for each in given_away(ast.parse(source))}
    assert found == HANDED_OVER


def given_away(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("Thread", "Timer"):
                yield from (ast.unparse(each.value) for each in node.keywords if each.arg == "target")
                yield from map(ast.unparse, node.args[1:2] if name == "Timer" else [])
            elif name in _TAKERS and len(node.args) > _TAKERS[name]:
                yield ast.unparse(node.args[_TAKERS[name]])
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _is_table(target.value):
                    yield ast.unparse(node.value)


def _is_table(node: ast.expr) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) in ("handlers", "stream_handlers")
