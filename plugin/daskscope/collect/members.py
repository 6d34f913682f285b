"""The processes of a cluster, when they came and went, and where they run: snapshots, O(changed).

Who came and went between two reads is told by Dask's events (see `lives`), and by whoever saw it (see `roster`).
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec

from distributed.comm.addressing import get_address_host

from daskscope import wire
from daskscope.agent.hardware import read_hardware
from daskscope.collect.agents import ASKED, MAX_REASON, RUNNING
from daskscope.collect.bounds import MAX_BYTES, whole, worker_name
from daskscope.collect.clients import connected_clients
from daskscope.collect.environments import (
    Numbered,
    Shared,
    environment_here,
    environment_told,
    hardware_told,
    python_path_told,
)
from daskscope.collect.lives import Lives, Who
from daskscope.collect.payloads import as_text
from daskscope.collect.roster import Roster
from daskscope.collect.topics import Topics

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import ClientState, WorkerState

P = ParamSpec("P")

MAX_MEMBERS = 1000
"""Of one message; `behind` tells of more."""
MAX_LEFT, MAX_KEPT = 10_000, 1000
"""Processes that went: so many wait to be sent, and so many of those that were are kept, should a message be lost."""
MAX_GREETINGS = 10_000
MAX_THREADS = 1 << 20

_UNSETTLED = ("", ASKED)
"""States of an agent that will change."""


@dataclass(slots=True)
class _Process:
    member: wire.Member
    environment: wire.Environment | None = None
    hardware: wire.Hardware | None = None
    greeted: bool = False


@dataclass(slots=True, frozen=True)
class _Greeting:
    python_path: str
    hardware: wire.Hardware | None
    agent: str


class MemberReader:
    """`agent_status(address)`: whether the worker there has our agent, or why not."""

    def __init__(
        self,
        scheduler: Scheduler,
        topics: Topics,
        roster: Roster,
        *,
        hardware: bool,
        agent_status: Callable[[str], str],
    ) -> None:
        self._scheduler, self._hardware, self._agent_status = scheduler, hardware, agent_status
        self._lives, self._roster = Lives(topics), roster
        self.lost = Counter[str]()
        self._n_members = 0
        self._seen_workers: dict[str, WorkerState] = {}
        self._seen_clients: dict[str, ClientState] = {}
        self._workers: dict[str, _Process] = {}
        self._clients: dict[str, _Process] = {}
        self._unsettled: dict[str, _Process] = {}
        self._greetings: dict[str, _Greeting] = {}
        self._changed: dict[int, _Process] = {}
        """Those present of which something is to be sent, by number."""
        self._left = deque[_Process]()
        self._kept = deque[_Process](maxlen=MAX_KEPT)
        self._here: tuple[wire.Environment, wire.Hardware | None] | None = None
        self._environments, self._machines = Shared[wire.Environment](), Shared[wire.Hardware]()
        address, started_ms = scheduler.address, round(scheduler.time_started * 1e3)
        member = wire.Member(no=0, role="scheduler", id=address, host=get_address_host(address), joined_ms=started_ms)
        self._self = self._add(member, None)

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `members`."""
        return Counter({"members": len(self._changed) + len(self._left)})

    @property
    def behind(self) -> bool:
        """Whether the last read left members for the next."""
        return bool(self._changed or self._left)

    def let_go(self) -> None:
        """Hold nothing that nobody will read; it counts as lost."""
        self._lives.let_go()
        self.lost += self.waiting
        self._changed.clear()
        self._left.clear()

    def start(self) -> None:
        """Looks at the scheduler's own machine, in a thread: that reads from disk, and may ask EC2."""
        threading.Thread(target=self._look_around, name="daskscope-hardware", daemon=True).start()

    def take(self, worker: str, payload: Mapping[str, Any]) -> None:
        """An agent's greeting; counted under `greetings` if it is not what an agent sends."""
        try:
            if len(self._greetings) >= MAX_GREETINGS:
                raise ValueError(f"more than {MAX_GREETINGS} at once")
            agent = as_text(payload.get("trouble", RUNNING))[:MAX_REASON]
            self._greetings[worker] = _Greeting(python_path_told(payload), hardware_told(payload), agent)
        except ValueError:
            self.lost["greetings"] += 1

    def read(self, now_s: float) -> tuple[list[wire.Member], list[wire.Environment], list[wire.Hardware]]:
        """Members of which something changed, with the environments and machines that they point to."""
        self._hear_greetings()  # of those that may have gone by now
        brief = self._look_at_processes(now_s)
        self._hear_greetings(brief)
        if self._greetings:
            self.lost["greetings"] += len(self._greetings)
            self._greetings.clear()
        self._look_at_agents()
        if self._here is not None:
            (environment, machine), self._here = self._here, None
            self._self.environment = self._environments.shared(environment)
            self._self.hardware = self._machines.shared(machine)
            self._changed[self._self.member.no] = self._self
        return self._packed()

    def resend(self) -> None:
        """A message was lost: send all of them again, as they are."""
        self._changed = {process.member.no: process
                         for process in (self._self, *self._workers.values(), *self._clients.values())}  # fmt: skip
        self._left.extendleft(reversed(self._kept))
        self._kept.clear()

    def _look_around(self) -> None:
        try:
            self._here = (environment_here(), wire.Hardware(**read_hardware()) if self._hardware else None)
        except Exception:  # noqa: BLE001  # in a thread nobody else would hear of it
            self.lost["scheduler-environment"] += 1

    def _look_at_processes(self, now_s: float) -> dict[str, _Process]:
        """Those that came or went; returns the workers that did both since the last read, by address."""
        moments = self._lives.read()
        before, workers = self._seen_workers, self._workers_now()
        clients = connected_clients(self._scheduler)
        # Who is another object than before is another process, though it may have the same address.
        for address in (
            [a for a, state in before.items() if workers.get(a) is not state] if workers is not before else ()
        ):
            self._unsettled.pop(address, None)
            self._leave(self._workers.pop(address, None), moments.went.get(("worker", address), now_s))
        for name in [c for c, state in self._seen_clients.items() if clients.get(c) is not state]:
            self._leave(self._clients.pop(name, None), moments.went.get(("client", name), now_s))
        brief: dict[str, _Process] = {}
        for who, came_s, went_s in moments.brief:
            self._guarded(self._add_brief, who, came_s, went_s, brief)
        for address, worker in workers.items() if workers is not before else ():
            if before.get(address) is not worker:
                self._guarded(self._add_worker, worker, moments.came.get(("worker", address), now_s))
        for name, client in clients.items():
            if self._seen_clients.get(name) is not client:
                self._guarded(self._add_client, client, moments.came.get(("client", name), now_s))
        self._seen_workers, self._seen_clients = workers, clients
        return brief

    def _workers_now(self) -> dict[str, WorkerState]:
        """By address; those of the last call, the very same object, if none came or went since."""
        now, before = self._scheduler.workers, self._seen_workers
        return before if [*now.values()] == [*before.values()] else dict(now)

    def _guarded(self, add: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            add(*args, **kwargs)
        except Exception:  # noqa: BLE001  # whatever it told of itself: the others are not to be missed for it
            self.lost["members"] += 1

    def _add_worker(self, worker: WorkerState, at_s: float) -> None:
        process = self._of_worker(worker.address, worker, at_s)
        self._workers[worker.address] = self._unsettled[worker.address] = process

    def _of_worker(self, address: str, state: WorkerState | None, at_s: float) -> _Process:
        member = wire.Member(
            no=self._n_members, role="worker", id=address, host=get_address_host(address), joined_ms=round(at_s * 1e3)
        )
        if state is None:
            return self._add(member, None)
        member.name = worker_name(state.name)
        member.n_threads = whole(state.nthreads, MAX_THREADS)
        member.memory_limit_bytes = whole(state.memory_limit, MAX_BYTES)
        return self._add(member, environment_told(state.versions))

    def _add_client(self, client: ClientState, at_s: float) -> None:
        member = wire.Member(no=self._n_members, role="client", id=client.client_key, joined_ms=round(at_s * 1e3))
        self._clients[member.id] = self._add(member, environment_told(client.versions))

    def _add_brief(self, who: Who, came_s: float, went_s: float, brief: dict[str, _Process]) -> None:
        """One that came and went since the last read."""
        role, name = who
        if role == "worker":
            process = brief[name] = self._of_worker(name, self._roster.find(name, came_s, went_s), came_s)
        else:
            member = wire.Member(no=self._n_members, role="client", id=name, joined_ms=round(came_s * 1e3))
            process = self._add(member, None)
        self._leave(process, went_s)

    def _add(self, member: wire.Member, environment: wire.Environment | None) -> _Process:
        process = self._changed[member.no] = _Process(member, self._environments.shared(environment))
        self._n_members += 1
        return process

    def _leave(self, process: _Process | None, at_s: float) -> None:
        if process is None:  # it could not be read when it came
            return
        member = process.member
        member.left_ms = max(round(at_s * 1e3), member.joined_ms)
        if member.role == "worker" and member.agent in _UNSETTLED and member.id not in self._scheduler.workers:
            member.agent = self._agent_status(member.id) or member.agent
        self._changed.pop(member.no, None)
        if len(self._left) >= MAX_LEFT:
            self._left.popleft()
            self.lost["members"] += 1
        self._left.append(process)

    def _look_at_agents(self) -> None:
        for address, process in list(self._unsettled.items()):
            status = self._agent_status(address)
            if status != process.member.agent:
                process.member.agent = status
                self._changed[process.member.no] = process
            if status not in _UNSETTLED:
                del self._unsettled[address]

    def _hear_greetings(self, gone: Mapping[str, _Process] = MappingProxyType({})) -> None:
        """Those of workers that are known, and of those that are `gone`; the others' wait."""
        for address, greeting in list(self._greetings.items()):
            process = self._workers.get(address)
            if process is None:
                process = gone.get(address)
            elif self._scheduler.workers.get(address) is not self._seen_workers.get(address) and process.greeted:
                continue  # of who came to its address
            if process is None:
                continue
            del self._greetings[address]
            process.greeted = True
            process.member.agent = greeting.agent
            environment = replace(process.environment or wire.Environment(), python_path=greeting.python_path)
            process.environment = self._environments.shared(environment)
            process.hardware = self._machines.shared(greeting.hardware)
            if process.member.left_ms is None:
                self._changed[process.member.no] = process
                self._unsettled[address] = process  # it may have told of trouble

    def _packed(self) -> tuple[list[wire.Member], list[wire.Environment], list[wire.Hardware]]:
        sending = list(islice(self._changed.values(), MAX_MEMBERS))
        for process in sending:
            del self._changed[process.member.no]
        while self._left and len(sending) < MAX_MEMBERS:
            sending.append(self._left.popleft())
            self._kept.append(sending[-1])
        environments, machines = Numbered[wire.Environment](), Numbered[wire.Hardware]()
        # Copies: the message is encoded later, in another thread.
        members = [
            replace(
                process.member,
                environment=environments.number(process.environment),
                hardware=machines.number(process.hardware),
            )
            for process in sending
        ]
        return members, environments.items, machines.items
