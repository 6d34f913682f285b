"""A disk without room, and a database that somebody else holds: only what is kept is acknowledged, then all goes on."""

import asyncio
import contextlib
import resource
import sqlite3
from pathlib import Path

import pytest

from daskscope_lambdas.adapters.local import database
from daskscope_lambdas.embedded.schedule import HIDDEN_S, Schedule
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import ingest, sweep, write
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from daskscope_query import layout
from tests.faults import killed
from tests.faults.functions import Here, functions, posted
from tests.faults.stores import opened
from tests.faults.telemetry import ACCOUNT, Id, body, ids, owed


def post(token: str, one: Id) -> int:
    status: int = ingest.handler(posted(*body(one), token), None)["statusCode"]
    return status


def drain(world: LocalAdapters, clock: FakeClock) -> bool:
    """One round; whether it went well."""
    schedule = Schedule(
        world.feed, Here(write.handler), Here(write.handler), ingest.handler, sweep.handler, "token", Path("nowhere")
    )
    clock.advance(HIDDEN_S + 1)
    with contextlib.suppress(StoreError):
        asyncio.run(schedule.drain_once())
        return True
    return False


def no_room(data: str) -> tuple[list[int], bool, list[int], int, int]:
    """Posts and a round of the writer while no file may grow, then with room again; what was lost and doubled of what
    was acknowledged."""
    clock = FakeClock()
    env = LocalEnv(data=data)
    wanted = ids(40, 5)
    with opened(connect(env, clock)) as world, functions(world, env):
        token, _ = mint(world.tokens, clock, ACCOUNT, ["ingest"], "room")
        before = [post(token, one) for one in wanted[:10]]
        assert before == [200] * 10
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, limit[1]))
        refused = [post(token, one) for one in wanted[10:]]
        written = drain(world, clock)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        after = [post(token, one) for one in wanted[10:]]
        while not drain(world, clock) or world.feed.receive(1, 0.0):
            pass
        first = layout.day_of(FakeClock().now())
        return refused, written, after, *owed(wanted, world.lake_root, None, first)


def test_without_room_on_the_disk_nothing_is_acknowledged_and_then_all_goes_on(tmp_path: Path):
    refused, written, after, lost, doubled = killed.outcome(no_room, str(tmp_path / "data"))
    assert refused == [500] * 30
    assert not written
    assert after == [200] * 30
    assert (lost, doubled) == (0, 0)


def test_a_database_that_is_held_for_long_is_an_error_of_the_server_and_no_loss(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(database, "_BUSY_S", 0.01)
    clock, env = FakeClock(), LocalEnv(data=str(tmp_path / "data"))
    first = layout.day_of(clock.now())
    with opened(connect(env, clock)) as world, functions(world, env):
        token, _ = mint(world.tokens, clock, ACCOUNT, ["ingest"], "held")
        kept, refused = ids(3, 1), ids(6, 2, first=7)
        assert [post(token, one) for one in kept] == [200] * 3
        with contextlib.closing(sqlite3.connect(Path(env.data) / "registry.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert [post(token, one) for one in refused] == [500] * 6
            assert not drain(world, clock)
            assert world.clusters.get(ACCOUNT, 1).seq == 2, "reading goes on"
        assert "locked" in caplog.text
        assert [post(token, one) for one in refused] == [200] * 6
        assert drain(world, clock)
        assert owed([*kept, *refused], world.lake_root, None, first) == (0, 0)
