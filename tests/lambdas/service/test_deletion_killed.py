"""A deletion that was killed, and the run after it; and two runs at once."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.service.deletion import REST_DAYS, Deleter
from daskscope_lambdas.testing import FakeClock
from tests.lambdas.service.deleting import DOOMED, MINE, OWNERS, House, Mortal, found_in
from tests.lambdas.service.owning import Account


@pytest.fixture(autouse=True)
def no_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _fill(tmp_path: Path, clock: FakeClock) -> Path:
    """One day is sealed, the next one open."""
    house = House(tmp_path / "filled", clock)
    house.tell(0)
    Account(house.world, "acme", "m" * 22)
    house.write()
    house.days(1)
    house.tell(1)
    house.write()
    house.world.close()
    return house.data


def _life(house: House, account: bool) -> None:
    """Ask for it, and all that `compact` does until it is done."""
    if account:
        Deleter(house.world).delete_account("acme", "test")
    elif row := next((r for r in house.world.clusters.page("acme", None, 9, None).rows if r.uuid == DOOMED), None):
        Deleter(house.world).delete_cluster(row, "test")
    house.clock.advance(600)
    house.run()
    house.days(1)
    house.clock.advance(REST_DAYS * 86_400)
    house.days(2)


def _seen(house: House, account: bool) -> dict[str, Any]:
    return house.seen("globex") if account else house.seen("acme") | house.seen("globex")


@pytest.mark.parametrize("account", [False, True])
@pytest.mark.parametrize("some", [True, pytest.param(False, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_killed_after_any_change_and_run_again_leaves_nothing_of_it_and_all_of_the_others(
    tmp_path: Path, account: bool, some: bool
) -> None:
    """After each change of any store in the long form, after two of them in the short one.

    Whoever asks in between sees all of the others, once, and nothing of what was deleted.
    """
    clock = FakeClock()
    filled = _fill(tmp_path, clock)
    asked_at = clock.now()
    words = ["acme", MINE, DOOMED] if account else ["doomedwords", DOOMED]

    def opened(name: str) -> House:
        return House(Path(shutil.copytree(filled, tmp_path / name)), FakeClock(asked_at))

    reference, counting = opened("reference"), Mortal()
    reference.world = counting.holding(reference.world)
    _life(reference, account)
    assert not any(found_in(reference.data, *words).values())
    final = _seen(reference, account)
    assert final["events " + (MINE if not account else next(c for c, a in OWNERS.items() if a == "globex"))]
    assert counting.n_changes > 60
    for n in (
        range(counting.n_changes // 4, counting.n_changes, counting.n_changes // 2)
        if some
        else range(1, counting.n_changes + 1)
    ):
        house = opened(f"killed-{n}")
        living = house.world
        house.world = Mortal(n).holding(living)
        with pytest.raises(StoreError, match="dead"):
            _life(house, account)
        house.world = living
        assert _seen(house, account) == final, n
        _life(house, account)
        assert _seen(house, account) == final, n
        assert not any(found_in(house.data, *words).values()), n
        living.close()
        shutil.rmtree(house.data)


def test_two_runs_at_once_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    houses = [House(_fill(tmp_path, clock), clock)]
    houses.append(House(houses[0].data, clock))
    houses[0].delete(DOOMED)
    expected = _seen(houses[0], False)
    clock.advance(600)
    for _ in range(2):
        threads = [threading.Thread(target=_run, args=(house,)) for house in houses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _seen(houses[0], False) == expected
    for house in houses:
        house.run()
    assert not found_in(houses[0].data / "lake" / "sealed", "doomedwords", DOOMED)["doomedwords"]
    assert not found_in(houses[0].data / "lake" / "rollups", "doomedwords")["doomedwords"]
    assert _seen(houses[0], False) == expected


def _run(house: House) -> None:
    house.run()
