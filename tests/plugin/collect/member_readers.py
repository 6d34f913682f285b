"""A reader of members, what stands on workers as the test has it, and what was told."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from types import SimpleNamespace
from typing import Any

from daskscope import wire
from daskscope.collect.members import MemberReader
from daskscope.collect.roster import Roster
from daskscope.collect.topics import Topics
from tests.plugin.rig import Cluster, until

NOW_S = 4e9
"""Later than anything that Dask dates during a test."""
HELLO: dict[str, Any] = {
    "kind": "hello", "python_path": "/opt/py", "cores": 8, "memory_bytes": 1 << 34, "gpus": ("NVIDIA A10G",),
    "provider": "aws", "instance_type": "g5.2xlarge", "region": "us-east-1", "zone": "us-east-1c", "lifecycle": "spot",
}  # fmt: skip

Told = tuple[list[wire.Member], list[wire.Environment], list[wire.Hardware]]


class Agents:
    """What stands on workers, as the test has it."""

    def __init__(self) -> None:
        self.status: dict[str, str] = {}
        self.n_asked = 0

    def __call__(self, address: str) -> str:
        self.n_asked += 1
        return self.status.get(address, "running")


def reader(cluster: Cluster, agents: Agents | None = None) -> MemberReader:
    return made(cluster.scheduler, agents, hardware=True)


def made(scheduler: Any, agents: Agents | None = None, *, hardware: bool = False) -> MemberReader:
    topics, roster = Topics(scheduler), Roster(scheduler)
    return MemberReader(scheduler, topics, roster, hardware=hardware, agent_status=agents or Agents())


def plain_scheduler(workers: dict[str, Any]) -> Any:
    """What is read of a scheduler; its events as before 2024.7.0."""
    return SimpleNamespace(
        address="tcp://127.0.0.1:1", time_started=1.0, clients={}, client_comms={}, workers=workers,
        events=defaultdict[str, deque[Any]](partial(deque[Any], maxlen=1000)), event_counts={},
    )  # fmt: skip


def by_role(told: Told) -> dict[str, wire.Member]:
    members, environments, hardware = told
    message = wire.Message(v=1, cluster="c", boot="b", seq=0, made_at_ms=0, uptime_us=0, next_s=1.0, members=members,
                           environments=environments, hardware=hardware)  # fmt: skip
    assert wire.decode(wire.encode(message)) == message, "what is made is of the format"
    found = {member.role: member for member in members}
    assert len(found) == len(members)
    return found


async def settled(reading: MemberReader) -> Told:
    """Everything there is to tell, the scheduler's own machine among it."""
    reading.start()
    await until(lambda: reading._here is not None)
    told = reading.read(NOW_S)
    assert reading.read(NOW_S) == ([], [], []), "and only once"
    return told
