"""A day of intervals in short: what is held stays within its bounds, and nothing of Dask's is alive for our sake.

Names of groups, workers and clients come and go without end; sizes are counted object by object, not taken from the
operating system, so that they can be asserted.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

import dask.config
import pytest

from bench.churn import LIFE, Life
from bench.fleet import Fleet
from bench.held import held_bytes, kept_alive, there_before
from bench.soak import N_WORKERS, Soak
from daskscope import buffer
from daskscope.collect import computations, groups, members, spans
from daskscope.collect.roster import Roster
from daskscope.privacy import names, scrubber, words

pytestmark = pytest.mark.asyncio

MIB = 1 << 20
BUDGET_BYTES = 32 * MIB
GROWTH_BYTES = MIB / 1000
"""That an interval may leave behind."""
SHORT = Life(n_rounds=100, n_groups=1_200, n_workers=120, n_clients=120)
"""Names come as fast as in a whole day."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept, should a message be lost or a text come again, is as much as it ever gets within a few
    intervals."""
    monkeypatch.setattr(groups, "MAX_KEPT", 50)
    monkeypatch.setattr(computations, "MAX_KEPT", 20)
    monkeypatch.setattr(members, "MAX_KEPT", 20)
    monkeypatch.setattr(spans, "SETTLED_KEPT", 20)
    monkeypatch.setattr(buffer, "MAX_MESSAGES", 20)
    monkeypatch.setattr(buffer, "MAX_BYTES", 50_000)
    monkeypatch.setattr(scrubber, "MAX_CLEAN", 200)
    monkeypatch.setattr(words, "MAX_WORDS", 200)
    monkeypatch.setattr(names, "MAX_KNOWN", 200)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Dask's news of thousands of workers are nobody's news."""
    caplog.set_level(logging.CRITICAL, "distributed")


@contextlib.asynccontextmanager
async def soaking(life: Life, *, up: bool) -> AsyncGenerator[tuple[Soak, list[object]]]:
    with dask.config.set({"distributed.scheduler.events-cleanup-delay": "1ms"}):
        others = there_before()
        soak = Soak(await Fleet.of(N_WORKERS), life, up=up)
        try:
            yield soak, others
        finally:
            soak.watch.teardown()
            soak.watch._scheduler.http_server.stop()
            await asyncio.sleep(0)


async def lived(soak: Soak, n_rounds: int) -> int:
    """What is held after so many intervals."""
    for _ in range(n_rounds):
        await soak.interval()
    return held_bytes(soak.watch)


@pytest.mark.parametrize("up", [True, False], ids=["server up", "server down"])
async def test_what_is_held_does_not_grow_with_the_names_that_came_and_went(up: bool, small: None) -> None:
    async with soaking(SHORT, up=up) as (soak, others):
        half = SHORT.n_rounds // 2
        before, after = await lived(soak, half), await lived(soak, half)
        assert after - before <= GROWTH_BYTES * half
        assert after + soak.peak_bytes() <= BUDGET_BYTES
        assert not kept_alive(soak.watch._scheduler, others)
        scheduler = soak.watch._scheduler
        assert len(scheduler.workers) < N_WORKERS + 2 * LIFE < SHORT.n_workers, "they came and went"
        assert soak.watch.readers._groups.n_groups >= SHORT.n_groups
        assert soak.watch.readers.lost().total() == 0


async def test_a_leak_of_what_is_told_would_be_seen(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MAX_KEPT", None)
    async with soaking(SHORT, up=True) as (soak, _):
        half = SHORT.n_rounds // 2
        before, after = await lived(soak, half), await lived(soak, half)
        assert after - before > GROWTH_BYTES * half


async def test_dask_s_own_objects_that_we_kept_alive_would_be_seen(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Roster, "forget", lambda self: None)
    life = Life(n_rounds=LIFE + 20, n_groups=0, n_workers=60, n_clients=0)
    async with soaking(life, up=True) as (soak, others):
        await lived(soak, life.n_rounds)
        assert kept_alive(soak.watch._scheduler, others)["WorkerState"] > 0


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("up", [True, False], ids=["server up", "server down"])
async def test_a_whole_day_stays_within_its_budget(up: bool) -> None:
    day, held = Life(), list[int]()
    async with soaking(day, up=up) as (soak, others):
        eighth = day.n_rounds // 8
        for _ in range(8):
            held.append(await lived(soak, eighth))
            assert held[-1] + soak.peak_bytes() <= BUDGET_BYTES
        assert held[-1] - held[3] <= GROWTH_BYTES * 4 * eighth, held
        assert not kept_alive(soak.watch._scheduler, others)
        assert soak.watch.readers._groups.n_groups >= day.n_groups
