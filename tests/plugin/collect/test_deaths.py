"""Workers that went, from real ones: why, with what in their hands, and none told twice."""

import asyncio
import os
import signal
import time
from importlib.metadata import version
from typing import Any

import dask.config
import pytest
from distributed import Client, LocalCluster, Nanny, Worker, wait

from daskscope.collect.deaths import GRACE_S
from tests.plugin.collect.death_readers import Reading, cut_off
from tests.plugin.rig import Cluster, inc, look_at, until

pytestmark = pytest.mark.asyncio

RELEASE = tuple(map(int, version("distributed").split(".")[:3]))
NANNIES_TELL, SCHEDULERS_TELL = RELEASE >= (2024, 4, 2), RELEASE >= (2024, 3, 0)


async def test_a_worker_that_is_cut_off_with_all_it_held(cluster: Cluster) -> None:
    reading = Reading(cluster)
    async with Worker(cluster.scheduler.address, nthreads=1, name="victim", memory_limit="2 GiB") as victim:
        assert reading() == []
        results = cluster.client.map(inc, range(3), workers=[victim.address])
        scattered = await cluster.client.scatter({"given": 1}, workers=[victim.address])
        await wait(results)
        tasks = [
            cluster.client.submit(asyncio.sleep, 60, key=("sleeper", n), workers=[victim.address]) for n in range(30)
        ]
        state = cluster.scheduler.workers[victim.address]
        await until(lambda: len(state.processing) > 20 and state.metrics.get("memory"))
        given = {str(task.key) for task in state.processing}
        cut_off(cluster, victim.address)
        await until(lambda: victim.address not in cluster.scheduler.workers)
        (death,) = reading()
    assert (death.no, death.worker, death.name, death.host) == (0, victim.address, "victim", "127.0.0.1")
    assert (death.expected, death.reason) == (False, "lost")
    assert (death.n_processing, len(death.processing)) == (len(given), 20)
    assert set(death.processing) <= given
    assert death.n_results_lost == (4 if SCHEDULERS_TELL else 0)
    assert death.memory_limit_bytes == 2 << 30
    assert death.memory_bytes == state.metrics["memory"]
    assert abs(death.at_ms - cluster.scheduler.total_nthreads_history[-1][0] * 1e3) < 5_000
    assert (reading.reader.n_unexpected, reading(last=True)) == (1, [])
    del results, scattered, tasks


async def test_who_takes_leave_is_expected(cluster: Cluster) -> None:
    reading = Reading(cluster)
    for n, name in enumerate(("closed", "retired")):
        async with Worker(cluster.scheduler.address, nthreads=1, name=name) as worker:
            reading()
            if name == "retired":
                await cluster.client.retire_workers([worker.address])
            else:
                await worker.close()
            await until(lambda: len(cluster.scheduler.workers) == 1)
            (death,) = reading()
            reason = "retired" if name == "retired" else "worker-close"
            assert (death.no, death.name, death.expected, death.reason) == (n, name, True, reason)
    assert reading.reader.n_unexpected == 0


async def test_a_restart_ends_each_worker_once(cluster: Cluster) -> None:
    reading = Reading(cluster)
    await cluster.client.restart(wait_for_workers=False)
    await until(lambda: not cluster.scheduler.workers)
    await cluster.workers[0].finished()
    (death,) = reading()
    assert (death.name, death.expected) == ("w0", True)
    # Without a nanny, releases before 2024.3.0 do not say what made them remove it.
    assert death.reason == ("client-restart" if SCHEDULERS_TELL else "scheduler-remove-worker")
    assert reading() == []


async def test_a_worker_that_fails_within_dask_was_not_asked_to(cluster: Cluster) -> None:
    reading = Reading(cluster)
    nonsense: Any = "no event that Dask knows"
    with pytest.raises(AttributeError):
        cluster.workers[0].handle_stimulus(nonsense)
    await until(lambda: not cluster.scheduler.workers)
    (death,) = reading()
    assert (death.expected, death.reason) == (False, "worker-fail-hard")


async def test_a_worker_that_was_silent_for_too_long(cluster: Cluster) -> None:
    reading = Reading(cluster)
    state: Any = cluster.scheduler.workers[cluster.workers[0].address]
    state.last_seen -= 10_000
    await cluster.scheduler.check_worker_ttl()
    (death,) = reading()
    assert (death.worker, death.expected, death.reason) == (state.address, False, "worker-ttl")


async def test_a_nanny_that_ends_its_worker_for_its_memory(cluster: Cluster) -> None:
    """With a process of its own, whose nanny looks at it every 50 ms and finds it too large from the start."""
    reading = Reading(cluster)
    thresholds = {"distributed.worker.memory.terminate": 0.5, "distributed.worker.memory.monitor-interval": "50ms"}
    # Room enough until it has come, then none.
    with dask.config.set(thresholds):
        async with Nanny(
            cluster.scheduler.address, nthreads=1, name="big", memory_limit="4 GiB", dashboard=False
        ) as nanny:
            address = nanny.worker_address
            assert address is not None
            state = cluster.scheduler.workers[address]
            await until(lambda: state.metrics.get("memory"))
            assert reading() == []
            nanny.memory_manager.memory_limit = 1 << 20
            await until(lambda: address not in cluster.scheduler.workers)
            nanny.memory_manager.memory_limit = 4 << 30
            found = reading(after_s=time.time() - reading.now_s)
            await until(lambda: len(cluster.scheduler.workers) == 2)  # the nanny brought another one
            deaths = [*found, *reading()]
    (death,) = [death for death in deaths if death.worker == address]
    assert (death.name, death.expected) == ("big", False)
    assert death.memory_bytes > 10 << 20
    assert death.memory_limit_bytes == 4 << 30
    assert death.reason == ("nanny-memory" if NANNIES_TELL else "lost")


async def test_a_worker_process_that_is_killed_and_one_whose_nanny_closes(cluster: Cluster) -> None:
    reading = Reading(cluster)
    async with Nanny(cluster.scheduler.address, nthreads=1, name="own", dashboard=False) as nanny:
        first, pid = nanny.worker_address, nanny.pid
        assert first is not None
        assert pid is not None
        assert reading() == []
        os.kill(pid, signal.SIGKILL)
        await until(lambda: first not in cluster.scheduler.workers)
        await until(lambda: len(cluster.scheduler.workers) == 2)
        (second,) = cluster.scheduler.workers.keys() - {cluster.workers[0].address}
    await until(lambda: len(cluster.scheduler.workers) == 1)
    killed, closed = reading()
    assert (killed.worker, killed.expected, killed.reason) == (first, False, "lost")
    assert (closed.worker, closed.expected, closed.reason) == (second, True, "nanny-close")
    assert reading.reader.n_unexpected == 1


async def test_the_word_of_a_nanny_is_waited_for_but_not_for_ever(cluster: Cluster) -> None:
    for late_s, last, told in ((0.0, True, "lost"), (GRACE_S, False, "lost"), (0.0, False, "nanny-memory")):
        async with Worker(cluster.scheduler.address, nthreads=1, name="nursed") as worker:
            reading = Reading(cluster)
            state: Any = cluster.scheduler.workers[worker.address]
            state.nanny = "tcp://127.0.0.1:1"
            cut_off(cluster, worker.address)
            await until(lambda: len(cluster.scheduler.workers) == 1)
            (gone_s, _) = next(reading.topics.latest("all"))
            deaths = reading(after_s=gone_s - reading.now_s + late_s, last=last)
            if told != "lost":
                assert (deaths, reading.reader.behind) == ([], False), "there is nothing more to tell for now"
                cluster.scheduler.log_event("worker-restart-memory", {"worker": worker.address, "rss": 5 << 30})
                deaths = reading()
        (death,) = deaths
        assert death.reason == told
        assert (death.memory_bytes == 5 << 30) is (told == "nanny-memory")
        assert reading() == []


class Loop:
    """Workers of one nanny that ends each for its memory, by what Dask says of them; all that is read is between."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.reading, self.host = cluster, Reading(cluster), "tcp://10.0.0.1"

    def log(self, action: str, port: int) -> None:
        self.cluster.scheduler.log_event(f"{self.host}:{port}", {"action": action})
        self.cluster.scheduler.log_event("all", {"action": action, "worker": f"{self.host}:{port}"})

    def end(self, port: int, called: int, rss: int) -> None:
        event = {"worker": f"{self.host}:{called}", "pid": port, "rss": rss}
        self.cluster.scheduler.log_event("worker-restart-memory", event)
        self.log("remove-worker", port)

    def deaths(self) -> list[tuple[str, str, int]]:
        found = self.reading(after_s=time.time() - self.reading.now_s)
        return [(death.worker.rpartition(":")[2], death.reason, death.memory_bytes) for death in found]


async def test_a_nanny_may_call_its_worker_by_the_address_of_the_one_before(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.log("add-worker", 1)
    loop.end(1, called=1, rss=100)
    for port, called in ((2, 1), (3, 1), (4, 4)):
        loop.log("add-worker", port)
        loop.end(port, called=called, rss=port * 100)
    loop.log("add-worker", 5)
    loop.log("remove-worker", 5)
    killed = [(str(port), "nanny-memory", port * 100) for port in (1, 2, 3, 4)]
    assert loop.deaths() == [*killed, ("5", "lost", 0)]


async def test_the_word_of_another_host_or_of_another_process_is_not_meant(cluster: Cluster) -> None:
    loop = Loop(cluster)
    loop.log("add-worker", 1)
    cluster.scheduler.log_event("worker-restart-memory", {"worker": "tcp://10.0.0.2:9", "pid": 1, "rss": 7})
    cluster.scheduler.log_event("worker-restart-memory", {"worker": cluster.workers[0].address, "pid": 7, "rss": 7})
    cluster.scheduler.log_event("worker-restart-memory", {"worker": "no address", "pid": 1, "rss": 7})
    loop.log("remove-worker", 1)
    assert loop.deaths() == [("1", "lost", 0)]


async def test_who_came_and_went_between_two_reads_is_known_if_it_was_seen(cluster: Cluster) -> None:
    reading = Reading(cluster)
    for name in ("seen", "not seen"):
        async with Worker(cluster.scheduler.address, nthreads=1, name=name, memory_limit="2 GiB") as brief:
            if name == "seen":
                state = cluster.scheduler.workers[brief.address]
                await until(lambda state=state: state.metrics.get("memory"))
                reading.roster.look()
            cut_off(cluster, brief.address)
            await until(lambda: len(cluster.scheduler.workers) == 1)
    seen, unseen = reading()
    assert (seen.name, seen.memory_limit_bytes, seen.reason) == ("seen", 2 << 30, "lost")
    assert seen.memory_bytes > 0
    assert (unseen.name, unseen.memory_limit_bytes, unseen.memory_bytes) == ("", 0, 0)
    reading.roster.forget()
    assert reading.roster.find(seen.worker, 0.0, 4e9) is None


def eat(held: list[bytes]) -> None:
    while True:
        held.append(b"x" * (32 << 20))


@pytest.mark.long
@pytest.mark.skipif(not NANNIES_TELL, reason="nannies of this release do not say it")
async def test_a_cluster_that_runs_out_of_memory_in_a_loop_within_one_interval() -> None:
    """One task that takes three workers along, each ended by its nanny."""
    config = {"distributed.worker.memory.pause": False, "distributed.worker.memory.spill": False,
              "distributed.worker.memory.target": False, "distributed.worker.memory.terminate": 0.5,
              "distributed.scheduler.allowed-failures": 2}  # fmt: skip
    options: dict[str, Any] = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(config):
        async with (
            LocalCluster(n_workers=1, memory_limit="1 GiB", asynchronous=True, **options) as local,
            Client(local, asynchronous=True) as client,
        ):
            scheduler: Any = local.scheduler
            look = await look_at(scheduler)
            eater = client.submit(eat, [])
            await wait(eater)
            await until(lambda: scheduler.workers)
            message = look()
            while look.watch.readers._deaths._waiting:
                message.deaths += look().deaths
            assert eater.status == "error"
    assert len(message.deaths) == 3
    for death in message.deaths:
        assert (death.reason, death.expected, death.name) == ("nanny-memory", False, "0")
        assert death.memory_limit_bytes == 1 << 30
        assert death.memory_bytes > 1 << 29
    gone = {member.id: member for member in message.members if member.left_ms is not None}
    assert gone.keys() >= {death.worker for death in message.deaths}
    assert {gone[death.worker].name for death in message.deaths} == {"0"}


async def test_how_fast_its_memory_grew(cluster: Cluster) -> None:
    reading = Reading(cluster)
    address = cluster.workers[0].address
    for memory_mib in (100, 200, 300, 400):
        reading(after_s=10.0, memory_mib={address: memory_mib})
    cluster.scheduler.workers[address].metrics["memory"] = 1 << 30
    await cluster.workers[0].close()
    (death,) = reading()
    assert death.memory_slope_bytes_s == 10 << 20
    assert death.memory_bytes == 400 << 20, "the last that was read is younger than the last heartbeat"


async def test_two_lives_under_one_address(cluster: Cluster) -> None:
    reading = Reading(cluster)
    ports: list[int] = []
    for name in ("first", "second"):
        options: dict[str, Any] = {"port": ports[0]} if ports else {}
        async with Worker(cluster.scheduler.address, nthreads=1, name=name, **options) as worker:
            ports.append(worker.port)
            if name == "first":
                assert reading() == []
                await cluster.client.retire_workers([worker.address])
            else:
                cut_off(cluster, worker.address)
            await until(lambda: len(cluster.scheduler.workers) == 1)
    retired, lost = reading()
    assert ports[0] == ports[1]
    assert (retired.name, retired.reason, retired.expected) == ("first", "retired", True)
    assert (lost.reason, lost.expected) == ("lost", False)
    assert lost.name == "", "it came and went between two reads"


async def test_who_comes_under_the_address_of_one_that_went_does_not_hide_it(cluster: Cluster) -> None:
    reading = Reading(cluster)
    async with Worker(cluster.scheduler.address, nthreads=1, name="first", memory_limit="2 GiB") as first:
        assert reading() == []
    await until(lambda: len(cluster.scheduler.workers) == 1)
    async with Worker(cluster.scheduler.address, nthreads=1, name="second", port=first.port) as second:
        assert second.address == first.address
        (death,) = reading(memory_mib={second.address: 900})
        assert (death.name, death.memory_limit_bytes) == ("first", 2 << 30)
        reading(after_s=10.0, memory_mib={second.address: 100})
    await until(lambda: len(cluster.scheduler.workers) == 1)
    (death,) = reading()
    assert (death.name, death.memory_slope_bytes_s) == ("second", -80 << 20)
