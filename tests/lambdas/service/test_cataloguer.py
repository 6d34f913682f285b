from collections.abc import Iterator
from typing import Any

import pytest

from daskscope_lambdas.ports import ClusterRow, Deletion, StoreError
from daskscope_lambdas.service import cataloguer as module
from daskscope_lambdas.service.catalog_files import LINGER_S
from daskscope_lambdas.service.catalog_rows import row_of_json
from daskscope_lambdas.service.cataloguer import AGAIN_S, LAG_S
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.price_store import PriceKeeper
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import LocalAdapters
from daskscope_query import files, layout
from daskscope_query.tables import CATALOG
from tests.lambdas.service.cataloguing import ACCOUNT, ids, keys, live, made, run, told, uuid_at

DAY_S = 86_400.0


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large a catalog as it takes is made as often as it is asked for."""
    monkeypatch.setattr(module, "REST_S_A_CLUSTER", 0.0)
    monkeypatch.setattr(module, "_TOGETHER", 3)


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


@pytest.mark.parametrize("error", [StoreError("of this test"), OverflowError("of this test")])
def test_what_fails_with_one_account_keeps_no_other_from_its_turn(
    adapters: LocalAdapters,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    told(adapters, 1)
    told(adapters, 2, account="globex")
    changed = adapters.clusters.changed

    def broken(account: str, *others: Any) -> Iterator[ClusterRow]:
        if account == ACCOUNT:
            raise error
        return changed(account, *others)

    monkeypatch.setattr(adapters.clusters, "changed", broken)
    with pytest.raises(type(error), match="of this test"):
        run(adapters)
    assert (ids(adapters), ids(adapters, "globex")) == ([], [1])
    assert "The catalog of account acme waits for the next run" in caplog.text


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


def test_two_that_run_at_once_make_whole_files(adapters: LocalAdapters, clock: FakeClock) -> None:
    for number in range(1, 9):
        told(adapters, number)
    race(4, lambda _: run(adapters))
    for key in keys(adapters):
        rows = files.decode(adapters.objects.get(key), CATALOG.schema)
        assert rows.column("cluster_id").to_pylist() == list(range(1, 9))
