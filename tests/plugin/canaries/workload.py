"""Work that has a canary in everything that a switch governs, and in everything that never leaves.

What a user would type stands in cells, run as a notebook runs them: Dask and tracebacks show their source lines. The
source of this module itself may be among the code that is sent, so no canary stands in it.
"""

from __future__ import annotations

import linecache
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from dask.base import annotate  # pyright: ignore[reportPrivateImportUsage]
from distributed import Client, Queue, Variable, WorkerPlugin, span, wait
from distributed.scheduler import KilledWorker

from tests.plugin.canaries.planted import ALWAYS, NEVER, Canaries, Rule, needs, only_may, secret
from tests.plugin.rig import TAKES_ANY_KEY, Cluster, until

RULES: dict[str, Rule] = {
    # The user's code.
    "line around compute": needs("code"),
    "line in a nested function": needs("code"),
    "line of a lambda": needs("code"),
    "file of a cell": needs("code"),
    "secret in code": secret("code"),
    # Failed tasks. Dask names their keys in lines of its log at DEBUG.
    "text of an exception": needs("exceptions"),
    "argument of an exception, by its repr": needs("exceptions"),
    "line in a traceback": needs("exceptions"),
    "local variable's name in a traceback": needs("exceptions"),
    "file in a traceback": needs("exceptions"),
    "note of an exception": only_may("exceptions"),
    "cause of an exception": only_may("exceptions"),
    "part of a failed task's key": needs("exceptions", may="logs"),
    "text of a failure of Dask": needs("exceptions"),
    "traceback of a failure of Dask": needs("exceptions"),
    "secret in an exception": secret("exceptions"),
    # Events.
    "topic": needs("events"),
    "action": needs("events"),
    "event of a worker": needs("events"),
    "event of a client": needs("events"),
    "event of the scheduler": needs("events"),
    "nested value in an event": needs("events"),
    "nested name in an event": needs("events"),
    "class of an object in an event": needs("events"),
    "what a worker prints": needs("events"),
    "secret in an event": secret("events"),
    # Log lines.
    **{f"line at {level}": needs("logs") for level in ("debug", "info", "warning", "error", "critical")},
    "line of the scheduler": needs("logs"),
    "text of an object that is logged": needs("logs"),
    "logger": needs("logs"),
    "logged exception": needs("logs"),
    "logged traceback": needs("logs"),
    "logged stack": needs("logs"),
    "secret in a line": secret("logs"),
    "name of a worker's plugin": only_may("logs"),
    "folder of a worker": only_may("logs"),
    # Profile and hardware.
    "function that runs": needs("profile"),
    "file of a function that runs": needs("profile"),
    "instance type": needs("hardware"),
    # Names: no switch governs them.
    "cluster": ALWAYS,
    "tag": ALWAYS,
    "name of a tag": ALWAYS,
    "worker": ALWAYS,
    "client": ALWAYS,
    "span": ALWAYS,
    "group": ALWAYS,
    "prefix": ALWAYS,
    "type of a result": ALWAYS,
    "metric of a user's own": ALWAYS,
    "key that a lost worker was given": ALWAYS,
    # Never.
    "part of a key": only_may("logs"),
    "argument": NEVER,
    "keyword argument": NEVER,
    "large argument": NEVER,
    "argument of a failed task": NEVER,
    "local variable of a failed task": NEVER,
    "result": NEVER,
    "large result": NEVER,
    "closure": NEVER,
    "default of a function": NEVER,
    "constant of a function": NEVER,
    "object in a key": only_may("logs"),
    "object in a failed task's key": only_may("logs"),
    "object that a group is called by": only_may("logs"),
    "repr of an argument": NEVER,
    "str of an argument": NEVER,
    "repr in an event": NEVER,
    "repr in a failure of Dask": NEVER,
    "bytes in an event": NEVER,
    "function that is run everywhere": NEVER,
    "argument of a function that is run everywhere": NEVER,
    "exception of a function that is run everywhere": only_may("logs"),
    "extra of a line": NEVER,
    "scattered": NEVER,
    "variable": NEVER,
    "name of a variable": NEVER,
    "queue": NEVER,
    "name of a queue": only_may("logs"),
    "metadata": NEVER,
    "name of metadata": NEVER,
    "published": NEVER,
    "annotation": NEVER,
    "resource": NEVER,
    "plugin": NEVER,
    "plugin of the scheduler": NEVER,
    "state of an actor": NEVER,
    "environment variable": NEVER,
    "command line": NEVER,
    "file at home": NEVER,
    "configuration": NEVER,
}


class Gate:
    """Holds a task in one place until the test has looked."""

    def __init__(self) -> None:
        self.passed = threading.Event()

    def wait(self) -> None:
        assert self.passed.wait(60)


gates: dict[str, Gate] = {}


def hold(name: str) -> None:
    gates[name].wait()


@contextmanager
def gated(*names: str) -> Generator[None]:
    gates.update({name: Gate() for name in names})
    try:
        yield
    finally:
        for gate in gates.values():
            gate.passed.set()


class Shown:
    """An object of the user's whose `repr` and `str` tell."""

    def __init__(self, told: str, said: str = "") -> None:
        self.told, self.said = told, said or told

    def __repr__(self) -> str:
        return self.told

    def __str__(self) -> str:
        return self.said

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shown) and (other.told, other.said) == (self.told, self.said)


class Tool(WorkerPlugin):
    def __init__(self, name: str, kept: str) -> None:
        self.name, self.kept = name, kept


class Counter:
    def __init__(self, kept: str) -> None:
        self.kept = kept

    def count(self) -> int:
        return len(self.kept)


def run_cell(source: str, file: str, **given: Any) -> dict[str, Any]:
    """What stands in the cell afterwards."""
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    scope: dict[str, Any] = {"__name__": "__main__", **given}
    exec(compile(source, file, "exec"), scope)
    return scope


class Work:
    """One workload; whoever runs it must have opened the gates `profile` and `killed`."""

    def __init__(self, cluster: Cluster, canaries: Canaries) -> None:
        self.cluster, self.client, self.canaries = cluster, cluster.client, canaries

    async def all(self) -> None:
        await self.names()
        await self.values()
        await self.code()
        await self.failures()
        await self.events()
        await self.lines()
        await self.everywhere()
        await self.inside()

    async def code(self) -> None:
        c = self.canaries
        source = f"""
{c["line around compute"]} = client.submit(int, 1)
password = "{c["secret in code"]}"
def outer():
    def inner():
        {c["line in a nested function"]} = 2
        return client.submit(int, {2})
    return inner()
nested = outer()
of_lambda = (lambda {c["line of a lambda"]}: client.submit(int, {c["line of a lambda"]}))(3)
"""
        scope = run_cell(source, f"/ipykernel_1/{c['file of a cell']}.py", client=self.client)
        await self.client.gather([scope["nested"], scope["of_lambda"]])

    async def failures(self) -> None:
        c = self.canaries
        source = f"""
def text():
    return "{c["text of an exception"]} password={c["secret in an exception"]}"
def fail(argument, shown):
    kept = argument[::-1][::-1]
    try:
        raise KeyError("{c["cause of an exception"]}"[:])
    except KeyError as cause:
        error = ValueError(text(), shown)
        note(error)
        {c["local variable's name in a traceback"]} = None
        raise error from cause  # {c["line in a traceback"]} {c["local variable's name in a traceback"]}
def note(error):
    error.add_note("{c["note of an exception"]}")
"""
        fail = run_cell(source, f"/ipykernel_1/{c['file in a traceback']}.py")["fail"]
        shown = Shown(c["argument of an exception, by its repr"])
        key = "failing", c["part of a failed task's key"]
        given = c["argument of a failed task"] + c["local variable of a failed task"]
        failing = self.client.submit(fail, given, shown, key=key)
        await wait([failing])
        self.cluster.scheduler.log_event(
            "worker-fail-hard",
            {
                "exception_text": f"OSError({c['text of a failure of Dask']})",
                "traceback_text": c["traceback of a failure of Dask"],
                "key": Shown(c["repr in a failure of Dask"]),
            },
        )
        self.failing = failing

    async def events(self) -> None:
        c = self.canaries
        odd = type(c["class of an object in an event"], (Shown,), {})(c["repr in an event"])
        nested = {c["nested name in an event"]: [{"deep": c["nested value in an event"]}]}
        of_client = {"text": c["event of a client"], "nested": nested, "password": c["secret in an event"]}
        await self.client.log_event(c["topic"], of_client)
        await self.client.submit(_event, "plain", c["event of a worker"], c["what a worker prints"], pure=False)
        of_scheduler: dict[Any, Any] = {
            "action": c["action"],
            "text": c["event of the scheduler"],
            "odd": odd,
            odd: odd,
        }
        of_scheduler["raw"] = c["bytes in an event"].encode()
        self.cluster.scheduler.log_event("plain", of_scheduler)

    async def lines(self) -> None:
        c = self.canaries
        source = f"""
import logging
def say(shown):
    logger = logging.getLogger("{c["logger"]}")
    for level in ("debug", "info", "warning", "error", "critical"):
        getattr(logger, level)("said %s at %s", said[level], level, extra={{"more": "{c["extra of a line"]}"}})
    logger.warning("an object: %s, password=%s", shown, "{c["secret in a line"]}")
    logger.error("a stack", stack_info=True)  # {c["logged stack"]}
    try:
        raise KeyError(said["exception"])  # {c["logged traceback"]}
    except KeyError:
        logger.exception("it failed")
"""
        said = {level: c[f"line at {level}"] for level in ("debug", "info", "warning", "error", "critical")}
        said["exception"] = c["logged exception"]
        say = run_cell(source, "/ipykernel_1/lines.py", said=said)["say"]
        await self.client.submit(say, Shown("not this one", c["text of an object that is logged"]))
        logging.getLogger("users").warning("here: %s", c["line of the scheduler"])

    async def inside(self) -> None:
        """A function that takes time, and a worker that is lost while it computes."""
        c = self.canaries
        source = f"""
def {c["function that runs"]}():
    hold("profile")
def run():
    {c["function that runs"]}()
"""
        scope = run_cell(source, f"/ipykernel_1/{c['file of a function that runs']}.py", hold=hold)
        self.running = self.client.submit(scope["run"], workers=["w0"], pure=False)
        self.cluster.scheduler.allowed_failures = 0
        key = "killed", c["key that a lost worker was given"]
        self.killed = self.client.submit(hold, "killed", key=key, workers=[c["worker"]])

    async def lose_worker(self) -> None:
        """Once the task is on it."""
        scheduler, worker = self.cluster.scheduler, self.cluster.workers[1]
        await until(lambda: worker.address in scheduler.workers and scheduler.workers[worker.address].processing)
        await scheduler.remove_worker(worker.address, stimulus_id="a test")  # not expected, as all tell it by default
        assert isinstance(await self.killed.exception(), KilledWorker)

    async def names(self) -> None:
        c = self.canaries
        made = type(c["type of a result"], (), {})
        with span(c["span"]):
            typed = self.client.submit(lambda: made(), key=f"{c['group']}-1")
        prefixed = self.client.map(_metric, [c["metric of a user's own"]], key=c["prefix"], workers=["w0"])
        key = "parts", c["part of a key"], 0
        with annotate(note=c["annotation"], priority=1):
            parted = self.client.submit(int, 4, key=key)
        await wait([typed, *prefixed, parted])
        await self._keys()
        totals: Any = self.cluster.scheduler.cumulative_worker_metrics  # with a heartbeat
        await until(lambda: any(c["metric of a user's own"] in key for key in totals))
        async with Client(self.client.scheduler.address, asynchronous=True, name=c["client"]) as other:
            await other.submit(int, 5)

    async def _keys(self) -> None:
        c = self.canaries
        grouped = Shown(c["object that a group is called by"]), 0
        parted = "parts", Shown(c["object in a key"])
        failed = "failing", Shown(c["object in a failed task's key"])
        graph = {grouped: (int, 1), parted: (int, 2), "keyed": (max, grouped, parted),
                 failed: (int, "x"), "wrongly-keyed": (int, failed)}  # fmt: skip
        if TAKES_ANY_KEY:
            client: Any = self.client
            assert await client.get(graph, "keyed", sync=False) == 2
            with suppress(ValueError):
                await client.get(graph, "wrongly-keyed", sync=False)

    async def values(self) -> None:
        c = self.canaries
        closed_over = c["closure"], c["result"], c["large result"]
        scope: dict[str, Any] = {}
        exec(f"def constant(): return len('{c['constant of a function']}')", scope)  # no source is kept of it

        def given(*args: Any, default: str = c["default of a function"], **kwargs: Any) -> str:
            return closed_over[1] + closed_over[0][:0] + default[:0]

        shown = Shown(c["repr of an argument"], c["str of an argument"])
        nested = {"deep": [c["argument"], {shown: shown}]}
        large = [bytes(50_000), c["large argument"]] * 3
        futures = [
            self.client.submit(given, c["argument"], nested, named=c["keyword argument"], pure=False),
            self.client.submit(given, large, pure=False),
            self.client.submit(lambda: [closed_over[2]] * 5_000, pure=False),
            self.client.submit(scope["constant"], pure=False),
        ]
        futures += await self.client.scatter([c["scattered"]])
        results = await self.client.gather(futures)
        assert results[0] == c["result"]
        await Variable("a-variable").set(c["variable"])
        queue: Any = await Queue("a-queue")
        await queue.put(c["queue"])
        # For what they hold, Dask keeps clients that are called like them.
        await Variable(c["name of a variable"]).set(futures[0])
        queue = await Queue(c["name of a queue"])
        await queue.put(futures[0])
        await self.client.set_metadata(["a", c["name of metadata"]], c["metadata"])
        await self.client.publish_dataset(futures[0], name=c["published"])
        actor = await self.client.submit(Counter, c["state of an actor"], actor=True)
        await actor.count()

    async def everywhere(self) -> None:
        c = self.canaries
        scope: dict[str, Any] = {}
        exec(f"def everywhere(x): return '{c['function that is run everywhere']}' + x", scope)
        exec(f"def raises(x): raise OSError('{c['exception of a function that is run everywhere']}')", scope)
        argument = c["argument of a function that is run everywhere"]
        await self.client.run(scope["everywhere"], argument)
        await self.client.run_on_scheduler(scope["everywhere"], argument)
        await self.client.run(scope["raises"], argument, on_error="return")


def _event(topic: str, text: str, printed: str) -> None:
    import distributed

    distributed.get_worker().log_event(topic, {"text": text})
    distributed.print(printed)


def _metric(label: str) -> None:
    from distributed.metrics import context_meter

    context_meter.digest_metric(label, 1, "count")


async def plugins(cluster: Cluster, canaries: Canaries) -> None:
    from distributed import SchedulerPlugin

    class Observer(SchedulerPlugin):
        """Has what it keeps, and does nothing with it."""

        def __init__(self) -> None:
            self.kept = canaries["plugin of the scheduler"]

    tool = Tool(canaries["name of a worker's plugin"], canaries["plugin"])
    await cluster.client.register_plugin(tool)
    cluster.scheduler.add_plugin(Observer(), name="observer")
