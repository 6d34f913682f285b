"""What a worker's agent says of its machine, and what becomes of agents."""

from __future__ import annotations

import platform
from typing import Any

import pytest
from distributed import Worker

from daskscope import wire
from daskscope.collect import members as module
from tests.plugin.collect.member_readers import (
    HELLO,
    NOW_S,
    Agents,
    by_role,
    reader,
    settled,
)
from tests.plugin.rig import Cluster, until

pytestmark = pytest.mark.asyncio


async def test_a_greeting_tells_the_machine(cluster: Cluster) -> None:
    reading, (worker,) = reader(cluster), cluster.workers
    before = by_role(await settled(reading))["worker"]
    reading.take(worker.address, HELLO)
    (member,), (environment,), (hardware,) = reading.read(NOW_S)
    assert member.no == before.no
    assert (environment.python_path, environment.python) == ("/opt/py", platform.python_version())
    assert hardware == wire.Hardware(
        cores=8, memory_bytes=1 << 34, gpus=["NVIDIA A10G"], provider="aws", instance_type="g5.2xlarge",
        region="us-east-1", zone="us-east-1c", lifecycle="spot",
    )  # fmt: skip
    reading.take(worker.address, {"kind": "hello", "python_path": "/opt/py"})
    _, _, hardware = reading.read(NOW_S)
    assert hardware == [], "where the setting is off"


async def test_a_greeting_may_come_before_its_worker_was_seen(cluster: Cluster) -> None:
    reading, (worker,) = reader(cluster), cluster.workers
    reading.take(worker.address, HELLO)
    told = reading.read(NOW_S)
    assert told[2][by_role(told)["worker"].hardware or 0].instance_type == "g5.2xlarge"


async def test_what_an_agent_s_state_becomes_is_told(cluster: Cluster) -> None:
    agents, (worker,) = Agents(), cluster.workers
    agents.status[worker.address] = "asked"
    reading = reader(cluster, agents)
    assert by_role(await settled(reading))["worker"].agent == "asked"
    agents.status[worker.address] = "no answer in 60 s"
    assert by_role(reading.read(NOW_S))["worker"].agent == "no answer in 60 s"
    n_asked = agents.n_asked
    reading.read(NOW_S)
    assert agents.n_asked == n_asked, "nobody is asked about any more"
    agents.status[worker.address] = "running"
    reading.take(worker.address, HELLO)
    assert by_role(reading.read(NOW_S))["worker"].agent == "running", "it spoke after all"


BAD: list[dict[str, Any]] = [
    {"python_path": 7},
    {"python_path": "x" * 5000},
    {"cores": "8"},
    {"cores": -1},
    {"cores": True},
    {"memory_bytes": 1 << 70},
    {"gpus": "NVIDIA"},
    {"gpus": [7]},
    {"gpus": ["x"] * 1000},
    {"zone": None},
    {"region": "x" * 500},
]


async def test_a_greeting_that_is_none_is_left_out_and_counted(cluster: Cluster) -> None:
    reading, (worker,) = reader(cluster), cluster.workers
    await settled(reading)
    for changes in BAD:
        reading.take(worker.address, {**HELLO, **changes})
        assert reading.read(NOW_S) == ([], [], []), changes
    reading.take("tcp://10.9.9.9:1", HELLO)
    assert reading.read(NOW_S) == ([], [], []), "nobody is there"
    assert reading.lost == {"greetings": len(BAD) + 1}


async def test_greetings_do_not_pile_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_GREETINGS", 2)
    reading = reader(cluster)
    for n in range(5):
        reading.take(f"tcp://10.0.0.{n}:1", HELLO)
    assert reading.lost == {"greetings": 3}


async def test_a_worker_that_greets_and_goes_before_the_next_read_is_told_whole(cluster: Cluster) -> None:
    agents = Agents()
    reading = reader(cluster, agents)
    await settled(reading)
    async with Worker(cluster.scheduler.address, nthreads=1, name="known", dashboard=False) as known:
        agents.status[known.address] = "asked"
        (before,), _, _ = reading.read(NOW_S)
        reading.take(known.address, HELLO)
    await until(lambda: len(cluster.scheduler.workers) == 1)
    agents.status[known.address] = ""
    (after,), (environment,), (hardware,) = reading.read(NOW_S)
    assert (before.no, before.agent, after.no, after.agent) == (3, "asked", 3, "running")
    assert (environment.python_path, hardware.instance_type) == ("/opt/py", "g5.2xlarge")
    assert after.left_ms is not None
    assert reading.lost == {}


async def test_why_there_was_no_agent_is_told_of_who_goes(cluster: Cluster) -> None:
    agents = Agents()
    reading = reader(cluster, agents)
    await settled(reading)
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False) as worker:
        agents.status[worker.address] = "asked"
        reading.read(NOW_S)
        agents.status[worker.address] = "no answer in 60 s"
    await until(lambda: len(cluster.scheduler.workers) == 1)
    (left,), _, _ = reading.read(NOW_S)
    assert (left.left_ms is None, left.agent) == (False, "no answer in 60 s")
