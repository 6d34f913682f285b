"""Puts our agents on workers and nannies, and takes in what they say.

By RPC, after a worker came, and never by `register_worker_plugin`: a plugin that cannot be unpickled would keep every
worker from starting.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributed.core import send_recv
from tornado.ioloop import PeriodicCallback

from daskscope.agent import NAME
from daskscope.collect.calls import MAX_REASON, Calls
from daskscope.collect.mailbox import Mailbox
from daskscope.collect.nannies import Nannies
from daskscope.collect.parcels import Parcels
from daskscope.collect.payloads import as_json, as_text
from daskscope.collect.roster import Presence
from daskscope.settings import Settings

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState

LOOK_S = 1.0
"""From one look for workers that came to the next."""
MAX_DRAINED_BYTES = 300_000
"""Of messages taken in at once, which takes some 6 ms; `behind` tells of more. What is beyond that is taken in between
the visits, so much at each look: a thousand workers that say something each interval have it told."""
MESSAGE_S, BYTE_S, CALL_S = 1.5e-6, 20e-9, 1e-3
"""CPU time that is charged: for a message when it comes, for a byte of those that are taken in between, and for a call
to a worker or nanny: as measured once, for a clock would cost as much as most of it."""

RUNNING, ASKED = "running", "asked"

Sinks = Mapping[str, Callable[[str, Mapping[str, Any]], None]]
"""Kind of payload (`hello`, `logs`, `profile`) to who takes it: `take(worker, payload)`."""


@dataclass(frozen=True, eq=False)
class Target:
    """Who is to be called: a worker, or its nanny at this address."""

    worker: WorkerState
    nanny: str | None = None


class Agents:
    """Who has an agent, and what they say."""

    def __init__(self, scheduler: Scheduler, settings: Settings) -> None:
        self._scheduler = scheduler
        self._wants_nannies = settings.logs is not None
        self._wanted = settings.logs is not None or settings.profile or settings.hardware
        self._parcels = Parcels(scheduler.id, settings)
        self._presence = Presence(scheduler)
        self._known: dict[str, WorkerState] = {}
        self._status: dict[str, str] = {}
        self.lost: Counter[str] = Counter()
        self._mailbox = Mailbox(self.lost)
        self._nannies = Nannies(self.lost)
        self._calls = Calls[Target](self._call, self._failed)
        # Oftener than a message is sent: what a worker logs before its agent comes is lost, but for Dask's own lines.
        self._timer = PeriodicCallback(self._look_between, LOOK_S * 1e3)
        self._sinks: Sinks = {}
        self._n_calls = self._n_bytes_between = 0

    @property
    def charged_s(self) -> float:
        """CPU time between the visits of the watch, a running total: an estimate."""
        spent_s = MESSAGE_S * self._mailbox.n_ever + BYTE_S * self._n_bytes_between
        return spent_s + CALL_S * self._n_calls

    @property
    def waiting(self) -> Counter[str]:
        """What the last drain left for the next: `agent-messages`."""
        return Counter({"agent-messages": len(self._mailbox)})

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
        self._presence.look(self._look_at)
        self._calls.start()

    def _look_at(self, states: list[WorkerState]) -> None:
        workers = {state.address: state for state in states}
        for address in self._known.keys() - workers.keys():
            del self._known[address]
            self._status.pop(address, None)
        for address, worker in workers.items():
            if self._known.get(address) is not worker:  # another process may have taken the address
                self._known[address], self._status[address] = worker, ASKED
                self._calls.waiting.append(Target(worker))
                if self._wants_nannies and worker.nanny and self._nannies.look(worker.nanny):
                    self._calls.waiting.append(Target(worker, worker.nanny))

    def drain(self, sinks: Sinks) -> None:
        """Hand on what agents said since the last call; `behind` tells of more."""
        self._sinks = sinks
        until_bytes = max(self._mailbox.n_bytes - MAX_DRAINED_BYTES, 0)
        while self._mailbox and self._mailbox.n_bytes > until_bytes:
            payload = self._mailbox.take()
            try:
                kind, worker = payload["kind"], payload["worker"]
                if not isinstance(worker, str):
                    raise TypeError(worker)
                if kind == "hello" and worker in self._status:
                    self._status[worker] = as_text(payload.get("trouble", RUNNING))[:MAX_REASON]
                if kind in sinks:
                    sinks[kind](worker, payload)
            except Exception:  # noqa: BLE001  # anybody may write into a topic
                self.lost["unreadable-agent-messages"] += 1

    def let_go(self) -> None:
        """Call nobody and hold nothing any more: nobody will read what agents say."""
        self._timer.stop()
        self._calls.close()
        self._mailbox.let_go()

    def status(self, worker: str) -> str:
        """`running`, `asked` if it has not answered yet, or why it does not run; empty if none is wanted there."""
        return self._status.get(worker, "")

    def close(self) -> None:
        """Call nobody any more, and leave the topic as Dask had it. Agents end with their workers."""
        self._timer.stop()
        self._calls.close()
        with contextlib.suppress(Exception):  # a scheduler that is half gone
            self._mailbox.close(self._scheduler)

    def _look_between(self) -> None:
        with contextlib.suppress(Exception):  # the watch looks too, and tells of trouble
            self.look()
            before = self._mailbox.n_bytes
            if self._sinks and before > MAX_DRAINED_BYTES:
                self.drain(self._sinks)
                self._n_bytes_between += before - self._mailbox.n_bytes

    async def _call(self, target: Target) -> None:
        """Put an agent there, if there is one to be put still."""
        worker = target.worker
        if target.nanny is not None:
            await self._call_nanny(worker, target.nanny)
        elif self._is_asked(worker):
            plugin = self._parcels.of(worker.versions, nanny=False, n_workers=len(self._scheduler.workers))
            answer = await self._ask(worker.address, op="plugin-add", plugin=plugin, name=NAME)
            if refusal := _refusal(answer):
                self._failed(target, refusal)
            elif self._is_asked(worker):
                self._status[worker.address] = RUNNING

    async def _call_nanny(self, worker: WorkerState, address: str) -> None:
        """Whether its worker is there or not: it starts another."""
        nanny_id = str((await self._ask(address, op="identity"))["id"])
        if self._nannies.wants(address, nanny_id):
            plugin = self._parcels.of(worker.versions, nanny=True)
            if _refusal(await self._ask(address, op="plugin_add", plugin=plugin, name=NAME)):
                self._nannies.failed(address, nanny_id)
                return
        self._nannies.done(address, nanny_id)

    def _failed(self, target: Target, reason: str) -> None:
        if target.nanny is not None:
            self._nannies.failed(target.nanny)
        elif self._is_asked(target.worker):
            self._status[target.worker.address] = reason

    def _is_asked(self, worker: WorkerState) -> bool:
        """Whether it is there and has not answered: it may have greeted while it was called."""
        return self._known.get(worker.address) is worker and self._status.get(worker.address) == ASKED

    async def _ask(self, address: str, **message: Any) -> Mapping[str, Any]:
        """Not `Scheduler.broadcast`, which writes an error into the scheduler's log for each worker that went."""
        self._n_calls += 1
        pool = self._scheduler.rpc
        comm = await pool.connect(address)
        try:
            answer: Any = await send_recv(comm, close=True, **message)
            return answer
        finally:
            pool.reuse(address, comm)


def _refusal(answer: Mapping[str, Any]) -> str:
    """Why no plugin could be put there, in few words; empty if it was."""
    if answer.get("status") == "OK":
        return ""
    text = answer.get("text") or answer.get("exception_text")
    return (as_text(text) if text else as_json(answer))[:MAX_REASON]
