"""What is deleted is gone: from answers at once, from the disk soon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daskscope.errors import Deleted
from daskscope.testing import message
from daskscope_lambdas.adapters.local import DiskObjects
from daskscope_lambdas.ports import Missing, StoreError
from daskscope_lambdas.service.deletion import REST_DAYS, Deleter
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.exclusions import PASS_S
from daskscope_lambdas.service.letters import Letters, Unfit
from daskscope_lambdas.service.price_store import PriceKeeper
from daskscope_lambdas.service.rewrite import Rewriter
from daskscope_lambdas.testing import FakeClock
from daskscope_query import layout
from tests.lambdas.service.deleting import (
    DOOMED,
    MINE,
    SECRETS,
    SHARED,
    THEIRS,
    House,
    found_in,
    is_known,
    tokens,
)

WORDS = ("doomedwords", DOOMED)


@pytest.fixture(autouse=True)
def no_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def house(tmp_path: Path, clock: FakeClock) -> House:
    return House(tmp_path / "data", clock)


@pytest.fixture
def never(tmp_path: Path) -> House:
    """The same as if there never had been what is deleted."""
    return House(tmp_path / "never", FakeClock())


def _both(house: House, never: House, seq: int) -> None:
    house.tell(seq)
    never.tell(seq, MINE, THEIRS)
    for each in (house, never):
        each.write()


def _without_numbers(seen: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """A cluster that never was has given its number to another."""
    return {name: [{k: v for k, v in row.items() if k != "cluster_id"} for row in rows] for name, rows in seen.items()}


def _same(house: House, never: House) -> None:
    for account in ("acme", "globex"):
        assert _without_numbers(house.seen(account)) == _without_numbers(never.seen(account))


def test_a_deleted_cluster_is_in_no_answer_from_the_moment_of_asking_on(house: House, never: House) -> None:
    """On sealed days, on open ones, in what is computed of both; and all others are as if it never had been."""
    _both(house, never, 0)
    for each in (house, never):
        each.days(1)
    _both(house, never, 1)
    assert [row for row in house.seen("acme")["exceptions"] if "doomed" in row["text"]]
    house.delete(DOOMED)
    _same(house, never)
    with pytest.raises(Missing):
        house.world.clusters.find("acme", DOOMED)
    for number in (1, 3):
        for each in (house, never):
            each.days(number)
        _same(house, never)


def test_not_a_byte_of_it_is_left(house: House) -> None:
    house.tell(0)
    house.write()
    house.days(1)
    house.tell(1)
    house.write()
    before = found_in(house.data, *WORDS)
    assert all(len(places) > 10 for places in before.values()), before
    house.delete(DOOMED)
    house.days(1)
    left = found_in(house.data, *WORDS)
    left[DOOMED] = [place for place in left[DOOMED] if not place.endswith("-wal")]
    plans = [f"lake/{layout.plan_key(layout.day_of(house.clock.now() - 86_400))}"]
    assert left == {"doomedwords": [], DOOMED: [*plans, "registry.sqlite"]}, (
        "that it was asked for, and by a day's plan"
    )
    assert house.code("acme") == {SHARED, "def minewords(): pass", "def doomedwords(): pass"}
    house.days(REST_DAYS + 1)
    assert house.code("acme") == {SHARED, "def minewords(): pass"}, "named by nothing for so long"
    assert house.world.deletions.pending() == []
    assert found_in(house.data, *WORDS) == {"doomedwords": [], DOOMED: []}
    assert all(found_in(house.data, SECRETS[MINE], MINE).values())


def test_what_comes_of_it_later_is_refused_or_leaves_no_trace(house: House) -> None:
    house.tell(0)
    house.write()
    house.tell(1)
    house.delete(DOOMED)
    with pytest.raises(Deleted):
        house.post(DOOMED, 2)  # This process knew it, and had put it into the queue by then.
    with pytest.raises(Deleted):
        house.post(DOOMED, 3)
    house.write()
    assert not [row for row in house.seen("acme")["exceptions"] if "doomed" in row["text"]]
    house.days(REST_DAYS + 3)
    assert found_in(house.data, *WORDS) == {"doomedwords": [], DOOMED: []}
    with pytest.raises(Deleted):
        house.post(DOOMED, 4)


def test_a_message_that_comes_when_all_was_done_is_sealed_into_no_day(house: House) -> None:
    """As a dead letter may that somebody sends back: it was in the queue all the time."""
    house.tell(0)
    (last,) = [d for d in house.world.feed.receive(100, 1.0) if d.id == "2"]
    house.delete(DOOMED)
    house.clock.advance(2)
    house.write()
    house.days(REST_DAYS + 2)
    assert house.world.deletions.pending() == []
    house.world.queue.send(last.body)
    house.write()
    house.days(2)
    assert not [row for row in house.seen("acme")["exceptions"] if "doomed" in row["text"]]
    assert found_in(house.data, "doomedwords") == {"doomedwords": []}


def test_a_deleted_account_is_gone_with_all_that_was_its(house: House, never: House) -> None:
    for each, clusters in ((house, (MINE, DOOMED, THEIRS)), (never, (THEIRS,))):
        each.tell(0, *clusters)
        each.write()
        each.days(1)
        each.tell(1, *clusters)
        each.write()
    key_id, other = tokens(house.world, "acme"), tokens(house.world, "globex")
    house.world.policies.set_wish("acme", "retention", {"logs": 3})
    PriceKeeper(house.world.objects, house.clock).set("acme", b"core_hour: 1", "test")
    Deleter(house.world).delete_account("acme", "test")
    assert not is_known(house.world, key_id)
    assert is_known(house.world, other)
    assert house.code("acme") == set()
    assert house.world.clusters.page("acme", None, 10, None).rows == []
    assert not any(house.seen("acme").values())
    house.days(REST_DAYS + 2)
    never.days(REST_DAYS + 2)
    words = ("acme", MINE, DOOMED, SECRETS[MINE], SECRETS[DOOMED])
    assert found_in(house.data, *words) == {word: [] for word in words}
    assert _without_numbers(house.seen("globex")) == _without_numbers(never.seen("globex"))
    assert house.world.clusters.enrol("acme", "d" * 32, 1.0, house.clock.now()).id == 1


def test_an_account_may_be_used_again_at_once(house: House) -> None:
    house.tell(0)
    house.write()
    Deleter(house.world).delete_account("acme", "test")
    house.clock.advance(600)
    house.run()
    new = House(house.data, house.clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.lambdas.service.deleting.OWNERS", {"e" * 32: "acme"})
        patch.setattr("tests.lambdas.service.deleting.SECRETS", {"e" * 32: "newwords"})
        new.tell(0)
        new.write()
        house.days(REST_DAYS + 2)
        assert sorted(row["text"] for row in new.seen("acme")["exceptions"]) == ["all fail", "newwords failed"]
        assert new.code("acme") == {SHARED, "def newwords(): pass"}
    assert new.world.clusters.page("acme", None, 10, None).rows[0].id > 2


@pytest.mark.parametrize("compacted", [True, False])
def test_what_the_new_owner_of_the_name_has_is_left_alone(house: House, compacted: bool) -> None:
    """Whether or not a run of `compact` came between."""
    house.tell(0)
    house.write()
    Deleter(house.world).delete_account("acme", "test")
    house.clock.advance(PASS_S + 1)
    if compacted:
        house.run()
        house.clock.advance(1)
    key_id = tokens(house.world, "acme")
    house.world.policies.set_wish("acme", "retention", {"logs": 3})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.lambdas.service.deleting.OWNERS", {"e" * 32: "acme"})
        patch.setattr("tests.lambdas.service.deleting.SECRETS", {"e" * 32: "newwords"})
        new = House(house.data, house.clock)
        new.tell(0)
        _bury(house, "e" * 32)
        house.run()
        new.write()
        assert new.code("acme") == {SHARED, "def newwords(): pass"}
        house.days(1)
        assert new.code("acme") == {SHARED, "def newwords(): pass"}
    assert is_known(house.world, key_id)
    assert house.world.policies.wish("acme", "retention") == {"logs": 3}
    assert len(_letters(house)) == 1


def test_an_account_that_was_used_again_may_be_deleted_again(house: House) -> None:
    house.tell(0)
    house.write()
    Deleter(house.world).delete_account("acme", "test")
    house.days(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.lambdas.service.deleting.OWNERS", {"e" * 32: "acme"})
        patch.setattr("tests.lambdas.service.deleting.SECRETS", {"e" * 32: "newwords"})
        new = House(house.data, house.clock)
        new.tell(0)
        new.write()
        house.days(2)
        assert found_in(house.data, "newwords")["newwords"]
        Deleter(house.world).delete_account("acme", "test")
        assert not any(new.seen("acme").values())
    house.days(REST_DAYS + 2)
    assert house.world.deletions.pending() == []
    words = ("acme", "newwords", "doomedwords")
    assert found_in(house.data, *words) == {word: [] for word in words}


def test_a_message_of_a_deleted_account_that_could_not_be_kept_goes_when_the_rest_is_over(house: House) -> None:
    house.tell(0)
    house.write()
    _bury(house, MINE)
    Deleter(house.world).delete_account("acme", "test")
    assert _letters(house) == []
    _bury(house, DOOMED)
    house.clock.advance(PASS_S + 1)
    house.run()
    _bury(house, MINE, received_at=house.clock.now() - PASS_S - 2)
    _bury(house, MINE)
    assert len(_letters(house)) == 2
    house.days(REST_DAYS + 2)
    assert house.world.deletions.pending() == []
    assert len(_letters(house)) == 1, "one that came later"


def test_an_open_file_that_is_damaged_has_days_looked_through_once_a_day(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As long as it is there nobody can say that nothing is left; told is that once a day."""
    house.tell(0)
    house.write()
    house.delete(DOOMED)
    damaged = next(key for key in house.world.objects.list("open/events/"))
    (house.data / "lake" / damaged).write_bytes(b"PAR1")
    house.days(REST_DAYS + 1)
    assert len(house.world.deletions.pending()) == 1
    looked: list[object] = []
    clean = Rewriter.clean
    monkeypatch.setattr(
        Rewriter, "clean", lambda self, *arguments: (looked.append(arguments), clean(self, *arguments))[1]
    )
    caplog.clear()
    house.days(1)
    for _ in range(9):
        house.clock.advance(60)
        house.run()
    assert len(looked) == 1
    assert [record.levelname for record in caplog.records if damaged in record.message] == ["WARNING"]
    (house.data / "lake" / damaged).unlink()
    house.run()
    assert house.world.deletions.pending() == []
    assert found_in(house.data, *WORDS) == {"doomedwords": [], DOOMED: []}


def test_a_store_that_fails_for_one_account_keeps_no_other_from_its_turn(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    house.tell(0)
    house.write()
    house.days(1)
    for cluster in (DOOMED, THEIRS):
        house.delete(cluster)
    house.clock.advance(600)
    delete = DiskObjects.delete

    def failing(objects: DiskObjects, key: str) -> None:
        if "account=acme" in key:
            raise StoreError("no right to that")
        delete(objects, key)

    with monkeypatch.context() as broken:
        broken.setattr(DiskObjects, "delete", failing)
        with pytest.raises(StoreError, match="no right to that"):
            Deleter(house.world).run()
    assert "Deleting of account acme goes on with the next run" in caplog.text
    sealed = house.data / "lake" / "sealed"
    assert found_in(sealed, SECRETS[THEIRS])[SECRETS[THEIRS]] == []
    assert found_in(sealed, "doomedwords")["doomedwords"]
    Deleter(house.world).run()
    assert found_in(sealed, "doomedwords")["doomedwords"] == []


def _bury(house: House, cluster: str, received_at: float | None = None) -> None:
    """A message that cannot be kept."""
    at = house.clock.now() if received_at is None else received_at
    body = pack(Envelope(account="acme", cluster_id=1, received_at=at, message=message(cluster=cluster)))
    house.clock.advance(1e-3)
    unfit = Unfit(f"m{house.clock.now()}", body, "for this test")
    assert Letters(house.world.objects, house.clock).put([unfit]) == []


def _letters(house: House) -> list[str]:
    return [name for name, _ in Letters(house.world.objects, house.clock).listed()]


def test_deleting_twice_is_as_once(house: House) -> None:
    house.tell(0)
    house.write()
    row = house.world.clusters.find("acme", DOOMED)
    for _ in range(2):
        Deleter(house.world).delete_cluster(row, "test")
    assert len(house.world.deletions.pending()) == 1


def test_where_nothing_was_ever_kept_it_is_done_all_the_same(house: House) -> None:
    house.world.clusters.enrol("acme", DOOMED, 1.0, 1.0)
    house.delete(DOOMED)
    house.days(REST_DAYS + 3)
    assert house.world.deletions.pending() == []
