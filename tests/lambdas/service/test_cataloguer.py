from collections.abc import Iterator
from typing import Any

import pytest

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import START_MS, member, message
from daskscope_lambdas.ports import ClusterRow, Deletion, StoreError
from daskscope_lambdas.service import cataloguer as module
from daskscope_lambdas.service.catalog_files import LINGER_S, CatalogFiles
from daskscope_lambdas.service.catalog_rows import row_of_json
from daskscope_lambdas.service.cataloguer import AGAIN_S, LAG_S, Cataloguer
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.envelope import unpack
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.price_store import PriceKeeper
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import LocalAdapters
from daskscope_query import files, layout
from daskscope_query.tables import CATALOG
from tests.lambdas.service.cataloguing import ACCOUNT, live, told, uuid_at

DAY_S = 86_400.0


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large a catalog as it takes is made as often as it is asked for."""
    monkeypatch.setattr(module, "REST_S_A_CLUSTER", 0.0)
    monkeypatch.setattr(module, "_TOGETHER", 3)


def keys(world: LocalAdapters, account: str = ACCOUNT) -> list[str]:
    return list(world.objects.list(layout.catalog_prefix(account)))


def made(world: LocalAdapters, account: str = ACCOUNT) -> list[dict[str, Any]]:
    """Rows of the newest file."""
    found = CatalogFiles(world.objects).newest(account, CATALOG.schema.names)
    return found.rows.to_pylist(maps_as_pydicts="strict") if found else []


def ids(world: LocalAdapters, account: str = ACCOUNT) -> list[int]:
    return [row["cluster_id"] for row in made(world, account)]


def run(world: LocalAdapters) -> int:
    return Cataloguer(world).run()


def test_each_account_has_its_own(adapters: LocalAdapters, clock: FakeClock) -> None:
    rows = [
        told(adapters, number, name=f"job {number}", totals={"thread_us": 10**6 * number}) for number in range(1, 9)
    ]
    theirs = told(adapters, 9, account="globex")
    assert run(adapters) == 2
    assert [row_of_json(row["row"]) for row in made(adapters)] == rows
    assert [row_of_json(row["row"]) for row in made(adapters, "globex")] == [theirs]
    (key,) = keys(adapters)
    assert layout.catalog_as_of(key) == clock.now()


def test_without_a_change_there_is_no_new_file(adapters: LocalAdapters, clock: FakeClock) -> None:
    told(adapters, 1, phase="closed")
    run(adapters)
    clock.advance(LAG_S + AGAIN_S)
    assert run(adapters) == 1, "what the lake told of it is final now"
    before = keys(adapters)
    for _ in range(3):
        clock.advance(60.0)
        assert run(adapters) == 0
    assert keys(adapters)[-1:] == before[-1:]


def test_who_changed_is_taken_in_and_the_others_stay(adapters: LocalAdapters, clock: FakeClock) -> None:
    for number in range(1, 9):
        told(adapters, number, phase="closed" if number % 2 else "running", name=f"job {number}")
    run(adapters)
    clock.advance(900.0)
    told(adapters, 4, seq=1, phase="closed", name="job 4", totals={"n_tasks": 7})
    told(adapters, 20)
    assert run(adapters) == 1
    assert ids(adapters) == [*range(1, 9), adapters.clusters.find(ACCOUNT, uuid_at(20)).id]
    assert [(row["phase"], row["n_tasks"]) for row in made(adapters)[2:5]] == [
        ("closed", 0), ("closed", 7), ("closed", 0),
    ]  # fmt: skip


def test_what_is_superseded_goes_when_nobody_can_be_reading_it(adapters: LocalAdapters, clock: FakeClock) -> None:
    told(adapters, 1)
    run(adapters)
    (first,) = keys(adapters)
    clock.advance(60.0)
    told(adapters, 1, seq=1)
    run(adapters)
    clock.advance(LINGER_S - 1)
    run(adapters)
    assert first in keys(adapters)
    clock.advance(1.0)
    run(adapters)
    assert first not in keys(adapters)
    assert ids(adapters) == [1]


def test_a_large_one_is_made_more_seldom(
    adapters: LocalAdapters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_S_A_CLUSTER", 50.0)
    told(adapters, 1)
    told(adapters, 2)
    assert run(adapters) == 1
    clock.advance(99.0)
    told(adapters, 2, seq=1, phase="closed")
    assert run(adapters) == 0
    assert sorted(live(adapters).table(ACCOUNT).column("phase").to_pylist()) == ["closed", "running"], (
        "who asks sees it"
    )
    clock.advance(1.0)
    assert run(adapters) == 1


def test_once_a_day_it_is_made_of_the_registry_alone(adapters: LocalAdapters, clock: FakeClock) -> None:
    told(adapters, 1, phase="closed")
    told(adapters, 2, phase="closed")
    run(adapters)
    adapters.clusters.drop(adapters.clusters.get(ACCOUNT, 1))
    row = adapters.clusters.get(ACCOUNT, 2)
    clock.advance(3600.0)
    run(adapters)
    assert ids(adapters) == [1, 2], "who is dropped is in no list, but nobody tells"
    clock.advance(DAY_S)
    run(adapters)
    assert [row_of_json(each["row"]) for each in made(adapters)] == [row]


def test_what_cannot_be_read_is_made_anew(
    adapters: LocalAdapters, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    told(adapters, 1)
    run(adapters)
    clock.advance(60.0)
    adapters.objects.put_new(layout.catalog_key(ACCOUNT, clock.now(), "ab"), b"PAR1 not really")
    assert live(adapters).table(ACCOUNT).num_rows == 1, "the one before stands in"
    assert "cannot be read" in caplog.text
    clock.advance(60.0)
    run(adapters)
    assert ids(adapters) == [1]
    assert len(keys(adapters)) == 3


def test_a_clock_that_was_set_back_stops_no_catalog(adapters: LocalAdapters, clock: FakeClock) -> None:
    told(adapters, 1)
    run(adapters)
    clock.advance(-7200.0)
    told(adapters, 2)
    assert run(adapters) == 1
    assert ids(adapters) == [1, 2]
    assert len(keys(adapters)) == 1


def test_other_prices_make_other_costs(adapters: LocalAdapters, clock: FakeClock) -> None:
    told(adapters, 1, phase="closed", totals={"thread_us": 3_600_000_000, "n_threads": 1})
    run(adapters)
    (before,) = made(adapters)
    clock.advance(120.0)
    PriceKeeper(adapters.objects, clock).set(ACCOUNT, b"core_hour: 5.0\ngib_hour: 0\n", "prices.yaml")
    assert run(adapters) == 1
    (after,) = made(adapters)
    assert (before["quality"], after["quality"], after["dollars"]) == ("estimated", "measured", 5.0)
    assert after["prices"] != before["prices"]


def test_what_was_deleted_is_hidden_at_once_and_then_gone(adapters: LocalAdapters, clock: FakeClock) -> None:
    for number in (1, 2):
        told(adapters, number, name=f"secret-{number}", phase="closed")
    run(adapters)
    clock.advance(60.0)
    # Whoever deletes writes it down before anything else: nobody has forgotten the row yet.
    adapters.deletions.ask(Deletion(account=ACCOUNT, cluster=uuid_at(1), asked_at=clock.now(), by="test"))
    assert live(adapters).table(ACCOUNT).column("cluster_id").to_pylist() == [2]
    assert run(adapters) == 1
    assert ids(adapters) == [2]
    Deleter(adapters).delete_cluster(adapters.clusters.get(ACCOUNT, 1), "test")
    clock.advance(LINGER_S)
    run(adapters)
    assert not [key for key in keys(adapters) if b"secret-1" in adapters.objects.get(key)]
    assert ids(adapters) == [2]


def test_of_a_deleted_account_no_file_is_left(adapters: LocalAdapters, clock: FakeClock) -> None:
    told(adapters, 1)
    told(adapters, 2, account="globex")
    run(adapters)
    Deleter(adapters).delete_account(ACCOUNT, "test")
    assert live(adapters).table(ACCOUNT).num_rows == 0
    run(adapters)
    assert keys(adapters) == []
    assert ids(adapters, "globex") == [1]
    clock.advance(3600.0)
    told(adapters, 3)
    run(adapters)
    assert [row["cluster"] for row in made(adapters)] == [uuid_at(3)], "the name may be used again"


def test_an_account_that_the_registry_does_not_name_is_found_by_its_sealed_days(
    adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(adapters, 1, phase="closed")
    monkeypatch.setattr(adapters.clusters, "accounts", set[str])
    assert run(adapters) == 0
    assert live(adapters).table(ACCOUNT).num_rows == 1
    adapters.objects.put_new(layout.sealed_key("samples", ACCOUNT, layout.day_of(adapters.clock.now()), 0), b"")
    assert run(adapters) == 1
    assert ids(adapters) == [1]


def test_what_fails_with_one_account_keeps_no_other_from_its_turn(
    adapters: LocalAdapters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(adapters, 1)
    told(adapters, 2, account="globex")
    changed = adapters.clusters.changed

    def broken(account: str, *others: Any) -> Iterator[ClusterRow]:
        if account == ACCOUNT:
            raise StoreError("broken for this test")
        return changed(account, *others)

    monkeypatch.setattr(adapters.clusters, "changed", broken)
    with pytest.raises(StoreError, match="for this test"):
        run(adapters)
    assert (ids(adapters), ids(adapters, "globex")) == ([], [1])


def test_what_nobody_thought_of_keeps_no_other_account_from_its_turn(
    adapters: LocalAdapters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told(adapters, 1)
    told(adapters, 2, account="globex")
    changed = adapters.clusters.changed

    def broken(account: str, *others: Any) -> Iterator[ClusterRow]:
        if account == ACCOUNT:
            raise OverflowError("of this test")
        return changed(account, *others)

    monkeypatch.setattr(adapters.clusters, "changed", broken)
    with pytest.raises(OverflowError, match="of this test"):
        run(adapters)
    assert (ids(adapters), ids(adapters, "globex")) == ([], [1])
    assert "The catalog of account acme waits for the next run." in caplog.text


def test_a_cluster_of_which_no_row_can_be_made_stays_as_it_was_and_stops_no_other(
    adapters: LocalAdapters, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        told(adapters, number)
    run(adapters)
    clock.advance(60.0)
    for number in (1, 2, 3):
        told(adapters, number, seq=1, totals={"peak_workers": 1 << 40 if number == 2 else 7})
    assert run(adapters) == 1
    assert [row["peak_workers"] for row in made(adapters)] == [7, 0, 7]
    assert "Cluster 2 of account acme stays in its catalog as it was." in caplog.text


def test_a_lake_that_cannot_tell_of_machines_leaves_estimates(
    adapters: LocalAdapters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(adapters, 1, totals={"thread_us": 3_600_000_000})
    with monkeypatch.context() as patch:
        patch.setattr(module.UsageReader, "of", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            run(adapters)
    (row,) = made(adapters)
    assert (row["quality"], row["usage_at"]) == ("estimated", None)
    clock.advance(60.0)
    run(adapters)
    assert made(adapters)[0]["usage_at"] is not None


MACHINE = wire.Hardware(
    cores=2, memory_bytes=8 << 30, provider="aws", instance_type="m6i.large", region="us-east-1", lifecycle="on-demand"
)


class House:
    """Clusters that tell what machines they have, through ingest and write."""

    def __init__(self, world: LocalAdapters) -> None:
        self._world = world
        self._ingest = Ingest(world.queue, world.clusters, CodeKeeper(world.objects, world.vault), world.clock)

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


def test_two_that_run_at_once_make_whole_files(adapters: LocalAdapters, clock: FakeClock) -> None:
    for number in range(1, 9):
        told(adapters, number)
    race(4, lambda _: run(adapters))
    for key in keys(adapters):
        rows = files.decode(adapters.objects.get(key), CATALOG.schema)
        assert rows.column("cluster_id").to_pylist() == list(range(1, 9))
