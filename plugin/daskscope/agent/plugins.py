"""The two plugins: what is set up in a worker's and in a nanny's process, and undone when it closes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import NannyPlugin, WorkerPlugin

from daskscope.agent import NAME, TOPIC
from daskscope.agent.hardware import read_hardware
from daskscope.agent.logs import Listener, Route, earlier_records, join
from daskscope.agent.profile import Profiler
from daskscope.agent.texts import told

if TYPE_CHECKING:
    from distributed import Nanny, Worker

CLOSE_S = 0.5
"""A nanny that closes waits so long for its last lines to be taken."""


class WorkerAgent(WorkerPlugin):
    """On a worker: its log lines, its profile, its machine."""

    name = NAME

    def __init__(self, *, cluster: str, level: int | None, profile_interval_s: float | None, hardware: bool) -> None:
        """`cluster`: the scheduler's id; `level`: of log lines, None for none; `profile_interval_s`: None for none."""
        self._cluster, self._level = cluster, level
        self._profile_interval_s, self._hardware = profile_interval_s, hardware
        self._address = ""
        self._listener: Listener | None = None
        self._route: Route | None = None
        self._profiler: Profiler | None = None

    def setup(self, worker: Worker) -> None:
        """Returns at once and never raises; what did not work is told in the greeting."""
        self._worker = worker
        trouble = ""
        try:
            self._address = worker.contact_address or worker.address
            if self._level is not None:
                loop = asyncio.get_running_loop()
                self._route = Route(
                    "worker", lambda: self._address, self._log_event, loop, delay_s=lambda: worker.scheduler_delay
                )
                self._listener = join(self._cluster, self._level, self._route, earlier_records(worker))
            if self._profile_interval_s is not None:
                self._profiler = Profiler(worker, self._profile_interval_s, self._send)
                self._profiler.start()
        except Exception as error:  # noqa: BLE001  # host first
            trouble = told(error)
        # A thread of its own: the executors are the worker's, and would be waited for at its end.
        with contextlib.suppress(RuntimeError):  # no more threads to be had
            threading.Thread(target=self._greet, args=(trouble,), name="daskscope-hello", daemon=True).start()

    def teardown(self, worker: Worker) -> Any:  # noqa: ARG002  # Dask calls it so
        """Undoes all of it, after what other plugins log in theirs. Dask awaits it."""
        return self._leave()

    async def _leave(self) -> None:
        try:
            await asyncio.sleep(0)  # Dask begins all teardowns at once, in the order in which plugins came
        finally:
            with contextlib.suppress(Exception):  # the worker is closing: nobody is left to tell
                if self._profiler is not None:
                    self._profiler.stop()
            with contextlib.suppress(Exception):
                if self._listener is not None and self._route is not None:
                    self._listener.leave(self._route)

    def _greet(self, trouble: str) -> None:
        hello: dict[str, Any] = {"kind": "hello", "python_path": sys.executable or ""}
        try:
            if self._hardware:
                hello |= read_hardware()
        except Exception as error:  # noqa: BLE001
            trouble = trouble or told(error)
        self._send({**hello, "trouble": trouble} if trouble else hello)

    def _send(self, payload: dict[str, Any]) -> None:
        """From any thread. Never raises."""
        with contextlib.suppress(Exception):  # not connected: a worker without its scheduler closes
            self._log_event({**payload, "from": "worker", "worker": self._address})

    def _log_event(self, payload: dict[str, Any]) -> None:
        self._worker.log_event(TOPIC, payload)


class NannyAgent(NannyPlugin):
    """On a nanny: its log lines."""

    name = NAME
    restart = False

    def __init__(self, *, cluster: str, level: int) -> None:
        self._cluster, self._level = cluster, level
        self._address = ""
        self._listener: Listener | None = None
        self._sending: asyncio.Task[None] | None = None

    def setup(self, nanny: Nanny) -> None:
        """Returns at once and never raises."""
        self._nanny = nanny
        with contextlib.suppress(Exception):  # host first; a nanny has no part in the story but its lines
            self._loop = asyncio.get_running_loop()
            # A nanny, unlike a worker, forgets a plugin of the same name without its teardown: one that came late.
            before: Any = vars(nanny).get(NAME)
            if before is not None:
                before.give_way()
            vars(nanny)[NAME] = self
            self._route = Route("nanny", self._worker, self._post, self._loop, lambda: self._sending is None)
            earlier = earlier_records(nanny) if before is None else []
            self._listener = join(self._cluster, self._level, self._route, earlier)

    def give_way(self) -> None:
        """To another agent on the same nanny, which goes on where this one ends."""
        if self._listener is not None:
            self._listener.leave(self._route)
            self._listener = None

    def teardown(self, nanny: Nanny) -> Any:  # noqa: ARG002  # Dask calls it so
        """Undoes it, once the last lines are on their way or the time for that is over. Dask awaits it."""
        return self._leave()

    async def _leave(self) -> None:
        with contextlib.suppress(Exception):  # the nanny is closing: nobody is left to tell
            if self._listener is not None:
                self._listener.flush()
                if self._sending is not None:
                    await asyncio.wait({self._sending}, timeout=CLOSE_S)
                self._listener.leave(self._route)
            if self._sending is not None:
                self._sending.cancel()

    def _worker(self) -> str:
        """Address of its worker, the last one while there is none."""
        self._address = self._nanny.worker_address or self._address
        return self._address

    def _post(self, payload: dict[str, Any]) -> None:
        # Not Nanny.log_event, which lets a failure become an error in the nanny's log.
        self._sending = self._loop.create_task(self._call(payload))
        self._sending.add_done_callback(lambda task: self._sent(task, payload))

    async def _call(self, payload: dict[str, Any]) -> None:
        await self._nanny.scheduler.log_event(topic=TOPIC, msg=payload)

    def _sent(self, task: asyncio.Task[None], payload: dict[str, Any]) -> None:
        self._sending = None
        failed = task.cancelled() or task.exception() is not None  # what waits still, waits for the next line
        with contextlib.suppress(Exception):  # the event loop would log it, and that would come back here
            if self._listener is not None and failed:
                self._listener.lose(payload)
            elif self._listener is not None:
                self._listener.flush()
