"""What clusters cost, as catalogs tell it: which of them the lake is asked about, and when again."""

from typing import Any

import pytest

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import START_MS, member, message
from daskscope_lambdas.service import cataloguer as module
from daskscope_lambdas.service.cataloguer import AGAIN_S, LAG_S
from daskscope_lambdas.service.envelope import unpack
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.service.cataloguing import ACCOUNT, live, made, run, uuid_at


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large a catalog as it takes is made as often as it is asked for."""
    monkeypatch.setattr(module, "REST_S_A_CLUSTER", 0.0)
    monkeypatch.setattr(module, "_TOGETHER", 3)


MACHINE = wire.Hardware(
    cores=2, memory_bytes=8 << 30, provider="aws", instance_type="m6i.large", region="us-east-1", lifecycle="on-demand"
)


class House:
    """Clusters that tell what machines they have, through ingest and write."""

    def __init__(self, world: LocalAdapters) -> None:
        self._world = world
        self._ingest = Ingest.over(world)

    def post(self, number: int, seq: int, phase: Any = "running", account: str = ACCOUNT) -> None:
        """Message `seq` of a cluster with a worker of two threads, an hour after the one before."""
        found = message(
            cluster=uuid_at(number), seq=seq, phase=phase, made_at_ms=START_MS + seq * 3_600_000,
            totals=wire.Totals(n_workers=1, n_threads=2, thread_us=seq * 2 * 3_600_000_000),
            hardware=[MACHINE], members=[member(joined_ms=START_MS, hardware=0)] if seq == 0 else [],
        )  # fmt: skip
        self._ingest.take(account, *compress(wire.encode(found)))

    def write(self) -> None:
        batch = self._world.feed.receive(1000, 60.0)
        Writer(self._world.objects, self._world.seals).write([unpack(each.body) for each in batch], batch[0].id)
        self._world.feed.delete([each.receipt for each in batch])


@pytest.fixture
def house(adapters: LocalAdapters) -> House:
    return House(adapters)


def test_a_cost_is_measured_when_the_lake_has_the_machines(
    adapters: LocalAdapters, house: House, clock: FakeClock
) -> None:
    house.post(1, 0)
    clock.advance(3600.0)
    house.post(1, 1)
    run(adapters)
    (early,) = made(adapters)
    assert (early["quality"], [each["instance_type"] for each in early["machines"]]) == ("estimated", [None])
    house.write()
    clock.advance(AGAIN_S)
    assert run(adapters) == 1
    (told,) = made(adapters)
    assert (told["quality"], told["basis"].partition(":")[0]) == ("measured", "measured")
    (machine,) = told["machines"]
    assert (machine["instance_type"], machine["machine_us"], machine["n_machines"]) == ("m6i.large", 3_600_000_000, 1)
    assert machine["dollars"] == told["dollars"] > 0
    assert live(adapters).table(ACCOUNT).to_pylist()[0]["dollars"] == told["dollars"]


def test_between_two_looks_a_cost_grows_with_the_thread_time(
    adapters: LocalAdapters, house: House, clock: FakeClock
) -> None:
    house.post(1, 0)
    clock.advance(3600.0)
    house.post(1, 1)
    house.write()
    run(adapters)
    (before,) = made(adapters)
    clock.advance(AGAIN_S - 1)
    house.post(1, 3)
    (listed,) = live(adapters).table(ACCOUNT, ["machines"]).to_pylist()
    assert listed["dollars"] == pytest.approx(3 * before["dollars"])
    assert listed["machines"][0]["machine_us"] == 3 * before["machines"][0]["machine_us"], "hours go with the dollars"
    assert listed["basis"].startswith("measured: 3 h of 1 m6i.large")
    run(adapters)
    (after,) = made(adapters)
    assert (after["usage_at"], after["basis"]) == (before["usage_at"], listed["basis"])
    assert after["dollars"] == pytest.approx(3 * before["dollars"])
    house.write()
    clock.advance(1.0)
    run(adapters)
    (told,) = made(adapters)
    assert told["usage_at"] > after["usage_at"]
    assert (told["quality"], told["dollars"]) == ("measured", pytest.approx(after["dollars"]))


def test_of_one_that_has_ended_the_lake_is_asked_until_it_has_all(
    adapters: LocalAdapters, house: House, clock: FakeClock
) -> None:
    house.post(1, 0)
    house.write()
    run(adapters)
    looks = [made(adapters)[0]["usage_at"]]
    clock.advance(60.0)
    house.post(1, 1, "closed")
    house.write()
    for _ in range(30):
        run(adapters)
        looks.append(made(adapters)[0]["usage_at"])
        clock.advance(60.0)
    seconds = [(each - looks[0]).total_seconds() for each in dict.fromkeys(looks)]
    assert seconds == [0.0, 60.0, 60.0 + AGAIN_S, 60.0 + LAG_S], "at once, and then as long as something may come"


def test_a_run_asks_the_lake_for_a_few_clusters_and_the_next_one_goes_on(
    adapters: LocalAdapters, house: House, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASKED_A_RUN", 2)
    for number in range(1, 6):
        house.post(number, 0)
        house.post(number, 1, "closed")
    house.write()
    measured: list[int] = []
    for _ in range(4):
        clock.advance(LAG_S)
        run(adapters)
        measured.append(sum(row["quality"] == "measured" for row in made(adapters)))
        assert len(made(adapters)) == 5
    assert measured == [2, 4, 5, 5]


def test_each_account_has_its_share_of_what_a_run_asks_for(
    adapters: LocalAdapters, house: House, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASKED_A_RUN", 4)
    for number in range(1, 7):
        house.post(number, 0)
    for number in range(7, 10):
        house.post(number, 0, account="globex")
    house.write()
    run(adapters)
    assert [sum(row["usage_at"] is not None for row in made(adapters, who)) for who in (ACCOUNT, "globex")] == [2, 2]


def test_those_that_wait_longest_are_asked_for_first(
    adapters: LocalAdapters, house: House, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASKED_A_RUN", 2)
    for seq in range(4):
        for number in range(1, 6):
            house.post(number, seq)
        house.write()
        run(adapters)
        clock.advance(AGAIN_S)
    looks = [row["usage_at"] for row in made(adapters)]
    assert None not in looks
    assert len(set(looks)) == 3, "those of one run, or of two, would be the same ones each time"
