"""The processes of a real cluster: who is there, who came, who went, and what runs where."""

from __future__ import annotations

import platform
import socket
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.config
import psutil
import pytest
from distributed import Client, LocalCluster, Worker

import daskscope
from daskscope import wire
from daskscope.collect import members as module
from daskscope.collect.environments import environment_told
from daskscope.collect.members import MemberReader
from daskscope.collect.topics import Topics
from tests.plugin.collect.member_readers import (
    HELLO,
    NOW_S,
    by_role,
    made,
    plain_scheduler,
    reader,
    settled,
)
from tests.plugin.rig import Cluster, spooled, until

pytestmark = pytest.mark.asyncio


async def test_the_processes_of_a_cluster(cluster: Cluster) -> None:
    reading = reader(cluster)
    told = await settled(reading)
    members, (worker,) = by_role(told), cluster.workers
    assert members.keys() == {"scheduler", "worker", "client"}
    assert sorted(member.no for member in members.values()) == [0, 1, 2]
    told_of = members["worker"]
    assert (told_of.id, told_of.name, told_of.host) == (worker.address, "w0", "127.0.0.1")
    assert (told_of.n_threads, told_of.memory_limit_bytes, told_of.agent) == (1, 1 << 30, "running")
    assert (told_of.left_ms, told_of.hardware) == (None, None)
    assert members["client"].id == cluster.client.id
    assert members["scheduler"].id == cluster.scheduler.address
    assert members["scheduler"].joined_ms == round(cluster.scheduler.time_started * 1e3)
    for role in ("worker", "client"):
        assert members["scheduler"].joined_ms <= members[role].joined_ms < NOW_S * 1e3, (
            "as Dask dates it, not when read"
        )


async def test_software_is_what_each_process_told(cluster: Cluster) -> None:
    members, environments, hardware = told = await settled(reader(cluster))
    for member in members:
        assert member.environment is not None
        environment = environments[member.environment]
        assert environment.python == platform.python_version()
        assert environment.os == f"{platform.system()} {platform.release()}"
        assert environment.machine == platform.machine()
        for package in ("dask", "distributed", "cloudpickle", "tornado", "toolz"):
            assert environment.packages[package] == metadata.version(package), (member.role, package)
    scheduler = by_role(told)["scheduler"]
    assert environments[scheduler.environment or 0].python_path == sys.executable
    assert (hardware[scheduler.hardware or 0].cores, len(hardware)) == (psutil.cpu_count(), 1)
    assert by_role(told)["worker"].environment == by_role(told)["client"].environment, "equal ones are told once"


async def test_without_the_setting_no_machine_is_looked_at(cluster: Cluster) -> None:
    reading = made(cluster.scheduler)
    _, environments, hardware = await settled(reading)
    assert hardware == []
    assert [environment.python_path for environment in environments].count(sys.executable) == 1


async def test_who_comes_and_goes_is_told_at_once_and_once(cluster: Cluster) -> None:
    reading = reader(cluster)
    await settled(reading)
    async with Worker(cluster.scheduler.address, nthreads=3, name=("a", 1), dashboard=False) as second:
        (came,), _, _ = reading.read(NOW_S)
        assert (came.no, came.role, came.id, came.name, came.n_threads) == (3, "worker", second.address, "<tuple>", 3)
        async with Client(cluster.scheduler.address, asynchronous=True) as client:
            (other,), _, _ = reading.read(NOW_S)
            assert (other.no, other.role, other.id, other.left_ms) == (4, "client", client.id, None)
    await until(lambda: len(cluster.scheduler.workers) == 1)
    gone = {member.no: member for member in reading.read(NOW_S)[0]}
    assert gone.keys() == {3, 4}
    for member in (came, other):
        left_ms = gone[member.no].left_ms
        assert left_ms is not None
        assert member.joined_ms <= left_ms < NOW_S * 1e3
    assert reading.read(NOW_S) == ([], [], [])


async def test_times_are_those_of_the_read_where_dask_has_forgotten_them(cluster: Cluster) -> None:
    found = Topics(cluster.scheduler)._find("all")
    assert found is not None
    found[1].clear()
    reading = reader(cluster)
    members = by_role(await settled(reading))
    assert members["worker"].joined_ms == members["client"].joined_ms == NOW_S * 1e3


async def test_what_users_log_beside_dask_s_events_dates_nothing(cluster: Cluster) -> None:
    (worker,) = cluster.workers
    came = "add-worker"
    for event in ("text", None, {"action": [came]}, {"action": came}, {"action": came, "worker": 7}, {1: 2}):
        cluster.scheduler.log_event("all", event)
    assert by_role(await settled(reader(cluster)))["worker"].id == worker.address


async def test_another_process_at_the_same_address_is_another_member(cluster: Cluster) -> None:
    reading = reader(cluster)
    before = by_role(await settled(reading))["worker"]
    state = cluster.scheduler.workers[before.id]
    try:
        cluster.scheduler.workers[before.id] = again = state.clean()  # pyright: ignore[reportArgumentType]
        again.server_id, again.versions = "Worker-another", {}
        left, came = sorted(reading.read(NOW_S)[0], key=lambda member: member.no)
    finally:
        cluster.scheduler.workers[before.id] = state
    assert (left.no, left.left_ms is not None) == (before.no, True)
    assert (came.no, came.id, came.left_ms, came.environment) == (3, before.id, None, None)


VERSIONS: list[Any] = [
    None, "2026.8.0", 7, [], {"host": None}, {"host": {"python": 3.11}}, {"packages": ["dask"]},
    {"packages": {"dask": None, 7: "1", "x" * 500: "1", "y": "z" * 500, "python": "3.11.7.final.0"}},
]  # fmt: skip


@pytest.mark.parametrize("n", range(len(VERSIONS)))
async def test_odd_versions_are_left_out(cluster: Cluster, n: int) -> None:
    cluster.scheduler.workers[cluster.workers[0].address].versions = VERSIONS[n]
    told = by_role(await settled(reader(cluster)))
    assert (told["worker"].environment, told["client"].environment is None) == (None, False)


async def test_versions_of_a_process_that_runs_something_else() -> None:
    host = {"python": "3.13.0.candidate.1", "OS": "Darwin", "machine": "arm64"}
    told = environment_told({"host": host, "packages": {"dask": "2024.1.0", "numpy": None, "odd": 7}})
    assert told == wire.Environment(
        python="3.13.0.candidate.1", os="Darwin", machine="arm64", packages={"dask": "2024.1.0"}
    )


async def test_a_worker_that_cannot_be_read_is_counted_and_the_others_told(cluster: Cluster) -> None:
    odd: dict[str, Any] = {"odd": SimpleNamespace(address="odd")}
    scheduler = plain_scheduler({**odd, **cluster.scheduler.workers})
    reading = made(scheduler)
    assert by_role(reading.read(NOW_S)).keys() == {"scheduler", "worker"}
    assert reading.lost == {"members": 1}
    scheduler.workers = {}
    (left,), _, _ = reading.read(NOW_S)
    assert left.id == cluster.workers[0].address


def crowd(n_workers: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for n in range(n_workers):
        address = f"tcp://10.0.{n >> 8}.{n & 255}:1"
        versions = {"host": {"python": "3.11.7.final.0"}, "packages": {"dask": "2026.8.0"}}
        found[address] = SimpleNamespace(address=address, name=n, nthreads=2, memory_limit=1 << 30, versions=versions)
    return found


def crowded(n: int) -> tuple[Any, MemberReader]:
    scheduler = plain_scheduler(crowd(n))
    return scheduler, made(scheduler)


async def test_many_come_in_several_messages_each_once() -> None:
    _, reading = crowded(2500)
    told: list[list[wire.Member]] = []
    while True:
        members, environments, _ = reading.read(NOW_S)
        assert len(environments) == 1, "all have the same, and it is told once a message"
        told.append(members)
        if not reading.behind:
            break
    assert [len(members) for members in told] == [1000, 1000, 501]
    assert len({member.no for members in told for member in members}) == 2501


async def test_those_that_left_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, reading = crowded(2500)
    while reading.read(NOW_S)[0]:
        pass
    monkeypatch.setattr(module, "MAX_LEFT", 2000)
    scheduler.workers = {}
    n_told = 0
    while members := reading.read(NOW_S)[0]:
        n_told += len(members)
        assert all(member.left_ms is not None for member in members)
    assert (n_told, reading.lost) == (2000, {"members": 500})
    assert (len(reading._kept), reading._workers, reading._changed, reading._unsettled) == (1000, {}, {}, {})


async def test_after_a_loss_all_are_told_again_also_those_that_left(cluster: Cluster) -> None:
    reading = reader(cluster)
    before = await settled(reading)
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False):
        reading.read(NOW_S)
    await until(lambda: len(cluster.scheduler.workers) == 1)
    (left,), _, _ = reading.read(NOW_S)
    reading.resend()
    again = reading.read(NOW_S)
    told = {member.no: member for member in again[0]}
    assert told.keys() == {0, 1, 2, 3}
    assert told[3].left_ms == left.left_ms
    assert {(no, told[no].id) for no in (0, 1, 2)} == {(member.no, member.id) for member in before[0]}
    assert reading.read(NOW_S) == ([], [], [])


async def test_what_was_handed_out_does_not_change_afterwards(cluster: Cluster) -> None:
    reading = reader(cluster)
    worker = by_role(await settled(reading))["worker"]
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    assert by_role(reading.read(NOW_S))["worker"].left_ms is not None
    assert worker.left_ms is None


async def test_a_machine_that_cannot_be_read_is_counted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_metadata() -> wire.Environment:
        raise OSError(socket.EBADF)

    monkeypatch.setattr(module, "environment_here", no_metadata)
    reading = reader(cluster)
    reading.start()
    await until(lambda: reading.lost)
    assert reading.lost == {"scheduler-environment": 1}
    assert by_role(reading.read(NOW_S))["scheduler"].environment is None


@pytest.mark.parametrize("seen", [True, False])
async def test_who_comes_and_goes_between_two_reads_is_a_member(cluster: Cluster, seen: bool) -> None:
    reading = reader(cluster)
    await settled(reading)
    addresses: list[str] = []
    for _ in range(2):
        async with Worker(cluster.scheduler.address, nthreads=3, name="brief", dashboard=False) as brief:
            if seen:
                reading._roster.look()
            addresses.append(brief.address)
            reading.take(brief.address, HELLO)
    async with Client(cluster.scheduler.address, asynchronous=True) as client:
        pass
    await until(lambda: len(cluster.scheduler.workers) == 1 and client.id not in cluster.scheduler.clients)
    members, environments, hardware = reading.read(NOW_S)
    assert [(member.no, member.role, member.id) for member in members] == [
        (3, "worker", addresses[0]), (4, "worker", addresses[1]), (5, "client", client.id),
    ]  # fmt: skip
    for member in members:
        assert member.left_ms is not None
        assert member.joined_ms <= member.left_ms < NOW_S * 1e3
    for member in members[:2]:
        assert (member.name, member.n_threads) == (("brief", 3) if seen else ("", 0))
        assert member.agent == "running"
        assert environments[member.environment or 0].python_path == "/opt/py"
        assert hardware[member.hardware or 0].cores == 8
    assert (reading.lost, reading.read(NOW_S)) == ({}, ([], [], []))


async def test_a_cluster_that_is_shorter_than_an_interval_is_told_whole(data: Path) -> None:
    """A real process, at the interval as it is by default: one message at the start, one at the end."""
    quiet: Any = {"daskscope.analytics.logs.level": "off", "daskscope.analytics.profile.transmit": False}
    options: dict[str, Any] = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(quiet):
        async with (
            LocalCluster(n_workers=1, asynchronous=True, **options) as local,
            Client(local, asynchronous=True) as client,
        ):
            registered: Any = daskscope.register(client)
            await registered
            scheduler: Any = local.scheduler
            readers = scheduler.extensions["daskscope"].readers
            await until(lambda: readers._agents.behind)
    messages = spooled(data)
    latest = {member.no: (message, member) for message in messages for member in message.members}
    ((message, member),) = [told for told in latest.values() if told[1].role == "worker"]
    assert (member.agent, member.left_ms is None) == ("running", False)
    assert member.hardware is not None
    assert member.environment is not None
    assert message.hardware[member.hardware].cores == psutil.cpu_count()
    assert message.environments[member.environment].python_path == sys.executable
    assert "greetings" not in messages[-1].lost
