"""A cluster's long life on a fleet: groups, workers and clients with ever new names, and always something to tell."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any

from distributed.scheduler import ClientState

from bench.fleet import STAGES, Fleet

LIFE = 20
"""Rounds that a worker or client of those that come and go stays."""


@dataclass(frozen=True, slots=True)
class Life:
    """How often a message is made, and how many names there are in all that time."""

    n_rounds: int = 8_640
    n_groups: int = 100_000
    n_workers: int = 10_000
    n_clients: int = 10_000

    def so_far(self, n_all: int, n_rounds: int) -> int:
        return n_all * n_rounds // self.n_rounds


class Churn:
    """Lets a fleet live. `round()` is what happens from one message to the next."""

    def __init__(self, fleet: Fleet, life: Life, agents_topic: str | None = None) -> None:
        """`agents_topic`: where an agent on a worker talks, if there is one."""
        self.fleet, self.life, self._agents_topic = fleet, life, agents_topic
        self.n_rounds = 0
        self._n_groups = self._n_workers = self._n_clients = 0
        self._workers: deque[tuple[int, str]] = deque()
        self._clients: deque[tuple[int, str]] = deque()
        self._numbers = itertools.count()

    async def round(self) -> None:
        self.n_rounds += 1
        await self._come_and_go()
        while self._n_groups < self.life.so_far(self.life.n_groups, self.n_rounds):
            self._n_groups += len(STAGES)
            keys = self.fleet.submit_stages(len(STAGES))
            self.fleet.finish(len(STAGES))
            self.fleet.release(keys)
        self._fail()
        self._say()
        self.fleet.beat()
        await asyncio.sleep(0)

    async def _come_and_go(self) -> None:
        scheduler: Any = self.fleet.scheduler
        while self._workers and self._workers[0][0] < self.n_rounds - LIFE:
            _, address = self._workers.popleft()
            await self.fleet.leave(address)
        while self._n_workers < self.life.so_far(self.life.n_workers, self.n_rounds):
            number, self._n_workers = 1_000 + self._n_workers, self._n_workers + 1
            address = f"tcp://10.{1 + number // 62_500}.{number // 250 % 250}.{number % 250 + 2}:40000"
            await self.fleet.join(address, number)
            self._workers.append((self.n_rounds, address))
        while self._clients and self._clients[0][0] < self.n_rounds - LIFE:
            _, client = self._clients.popleft()
            scheduler.remove_client(client=client, stimulus_id="churn")
        while self._n_clients < self.life.so_far(self.life.n_clients, self.n_rounds):
            client, self._n_clients = f"Client-{self._n_clients:036d}", self._n_clients + 1
            scheduler.log_event(["all", client], {"action": "add-client", "client": client})
            scheduler.clients[client] = ClientState(client, versions={})
            self._clients.append((self.n_rounds, client))

    def _fail(self) -> None:
        """A task whose failure is like no other."""
        number = next(self._numbers)
        key = f"boom-{number:032x}"
        self.fleet.fail(key, f"ValueError({number})", f"  File 'job.py', line {number}, in boom\n" * 20)

    def _say(self) -> None:
        """What users log, and what an agent tells."""
        number = next(self._numbers)
        scheduler = self.fleet.scheduler
        scheduler.log_event("progress", {"action": "step", "number": number, "note": "x" * 200})
        if self._agents_topic is None:
            return
        worker, at_ms = next(iter(scheduler.workers)), 1_795_248_000_000 + number
        lines = [[at_ms, 30, "distributed.worker", f"{number}: unmanaged memory is high", 0]] * 3
        frames = [f"f{n};{number}.py;{n}" for n in range(50)]
        stacks = [[n, n + 1] for n in range(0, 50, 2)]
        logs = {"kind": "logs", "worker": worker, "from": "worker", "lines": lines}
        profile = {
            "kind": "profile", "worker": worker, "from_ms": at_ms, "to_ms": at_ms + 1, "sample_us": 10_000, "cut": 0,
            "frames": frames, "prefix": ["x"] * 25, "stack": stacks, "count": [1] * 25,
        }  # fmt: skip
        for payload in (logs, profile):
            scheduler.log_event(self._agents_topic, payload)
