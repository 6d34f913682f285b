"""Puts our agents on workers and nannies, and takes in what they say.

By RPC, after a worker came, and never by `register_worker_plugin`: a plugin that cannot be unpickled would keep every
worker from starting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from distributed.core import send_recv
from tornado.ioloop import PeriodicCallback

from daskscope.agent import NAME
from daskscope.collect.mailbox import Mailbox
from daskscope.collect.parcels import Parcels
from daskscope.settings import Settings

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState

LOOK_S = 1.0
"""From one look for workers that came to the next."""
MAX_CALLS = 10
"""Workers and nannies that are called at the same time."""
CALL_S = 60.0
"""Who has not answered for so long is left alone."""
MAX_DRAINED = 5_000
"""Messages taken in at once; `behind` tells of more."""
MAX_NANNIES = 10_000
"""So many are remembered; of older ones it is asked again."""
MAX_REASON = 300

RUNNING, ASKED = "running", "asked"

Sinks = Mapping[str, Callable[[str, Mapping[str, Any]], None]]
"""Kind of payload (`hello`, `logs`, `profile`) to who takes it: `take(worker, payload)`."""


class Agents:
    """Who has an agent, and what they say."""

    def __init__(self, scheduler: Scheduler, settings: Settings) -> None:
        self._scheduler = scheduler
        self._wants_nannies = settings.logs is not None
        self._wanted = settings.logs is not None or settings.profile or settings.hardware
        self._parcels = Parcels(scheduler.id, settings)
        self._known: dict[str, WorkerState] = {}
        self._status: dict[str, str] = {}
        self._nannies: dict[str, None] = {}
        self._waiting: deque[tuple[WorkerState, str | None]] = deque()
        """Who is to be called: the worker, or its nanny at this address."""
        self._calls: set[asyncio.Task[None]] = set()
        self.lost: Counter[str] = Counter()
        self._mailbox = Mailbox(self.lost)
        # Oftener than a message is sent: what a worker logs before its agent comes is lost, but for Dask's own lines.
        self._timer = PeriodicCallback(self._look_between, LOOK_S * 1e3)

    @property
    def behind(self) -> bool:
        """Whether the last drain left messages for the next."""
        return bool(self._mailbox)

    def start(self) -> None:
        """Give our topic its memory and look for workers from now on. Does nothing if no setting asks for agents."""
        if not self._wanted:
            return
        try:
            self._mailbox.open(self._scheduler)
            self._timer.start()
        except Exception:  # noqa: BLE001  # a Dask that keeps its events elsewhere
            self._wanted = False
            self.lost["agents"] += 1

    def look(self) -> None:
        """Call workers that came, in tasks of our own. On the event loop; the watch need not, for the timer does."""
        if not self._wanted:
            return
        workers = self._scheduler.workers
        for address in self._known.keys() - workers.keys():
            del self._known[address]
            self._status.pop(address, None)
        for address, worker in workers.items():
            if self._known.get(address) is not worker:  # another process may have taken the address
                self._known[address], self._status[address] = worker, ASKED
                self._waiting.append((worker, None))
                self._look_at_nanny(worker)
        for _ in range(min(MAX_CALLS - len(self._calls), len(self._waiting))):
            call = asyncio.get_running_loop().create_task(self._call_waiting())
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    def drain(self, sinks: Sinks) -> None:
        """Hand on what agents said since the last call; `behind` tells of more."""
        for _ in range(min(MAX_DRAINED, len(self._mailbox))):
            payload = self._mailbox.take()
            try:
                kind, worker = payload["kind"], payload["worker"]
                if not isinstance(worker, str):
                    raise TypeError(worker)
                if kind == "hello" and worker in self._status:
                    self._status[worker] = str(payload.get("trouble", RUNNING))[:MAX_REASON]
                if kind in sinks:
                    sinks[kind](worker, payload)
            except Exception:  # noqa: BLE001  # anybody may write into a topic
                self.lost["unreadable-agent-messages"] += 1

    def status(self, worker: str) -> str:
        """`running`, `asked` if it has not answered yet, or why it does not run; empty if none is wanted there."""
        return self._status.get(worker, "")

    def close(self) -> None:
        """Call nobody any more, and leave the topic as Dask had it. Agents end with their workers."""
        self._timer.stop()
        self._waiting.clear()
        for call in self._calls:
            call.cancel()
        with contextlib.suppress(Exception):  # a scheduler that is half gone
            self._mailbox.close(self._scheduler)

    def _look_between(self) -> None:
        with contextlib.suppress(Exception):  # the watch looks too, and tells of trouble
            self.look()

    def _look_at_nanny(self, worker: WorkerState) -> None:
        if self._wants_nannies and worker.nanny and worker.nanny not in self._nannies:
            self._nannies[worker.nanny] = None
            if len(self._nannies) > MAX_NANNIES:
                del self._nannies[next(iter(self._nannies))]
            self._waiting.append((worker, worker.nanny))

    async def _call_waiting(self) -> None:
        while self._waiting:
            worker, nanny = self._waiting.popleft()
            if self._known.get(worker.address) is not worker:
                continue  # it went while others were called
            told = await self._call(worker, nanny)
            if nanny is not None and told != RUNNING:
                self.lost["nannies-without-agent"] += 1
            elif nanny is None and self._status.get(worker.address) == ASKED:
                self._status[worker.address] = told

    async def _call(self, worker: WorkerState, nanny: str | None) -> str:
        """RUNNING, or in few words why not."""
        try:
            plugin = self._parcels.of(worker.versions, nanny=nanny is not None)
            op = "plugin-add" if nanny is None else "plugin_add"
            answer = await asyncio.wait_for(self._ask(nanny or worker.address, op, plugin), CALL_S)
        except TimeoutError:
            return f"no answer in {CALL_S:.0f} s"
        except Exception as error:  # noqa: BLE001  # whatever is wrong there, it is not the scheduler's trouble
            return _reason(error)
        if answer.get("status") == "OK":
            return RUNNING
        return str(answer.get("text") or answer.get("exception_text") or answer)[:MAX_REASON]

    async def _ask(self, address: str, op: str, plugin: bytes) -> Mapping[str, Any]:
        """Not `Scheduler.broadcast`, which writes an error into the scheduler's log for each worker that went."""
        pool = self._scheduler.rpc
        comm = await pool.connect(address)
        try:
            answer: Any = await send_recv(comm, close=True, op=op, plugin=plugin, name=NAME)
            return answer
        finally:
            pool.reuse(address, comm)


def _reason(error: Exception) -> str:
    """Where the other side's exception cannot be sent, Dask sends an `Exception` whose text is its repr."""
    told = str(error)
    return (told if type(error) is Exception else f"{type(error).__name__}: {told}")[:MAX_REASON]
