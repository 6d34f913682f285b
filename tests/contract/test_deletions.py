from dataclasses import replace
from datetime import date

import pytest

from daskscope_lambdas.ports import Deletion, Deletions
from daskscope_lambdas.wiring import Adapters

ONE = Deletion(account="acme", cluster="c1", asked_at=100.5, by="ann")
ALL = Deletion(account="acme", cluster=None, asked_at=101.0, by="ann")
OTHER = Deletion(account="acme-2", cluster="c1", asked_at=102.0, by="bob")


@pytest.fixture
def deletions(world: Adapters) -> Deletions:
    return world.deletions


def _pending(deletions: Deletions, account: str | None = None) -> set[Deletion]:
    found = deletions.pending(account)
    assert len(set(found)) == len(found)
    return set(found)


def test_nothing_is_pending_at_first(deletions: Deletions) -> None:
    assert _pending(deletions) == _pending(deletions, "acme") == set()


def test_what_was_asked_is_pending_until_it_is_done(deletions: Deletions) -> None:
    for each in (ONE, ALL, OTHER):
        deletions.ask(each)
    assert _pending(deletions) == {ONE, ALL, OTHER}
    assert _pending(deletions, "acme") == {ONE, ALL}
    deletions.done(ONE)
    deletions.done(ONE)
    assert _pending(deletions) == {ALL, OTHER}
    deletions.done(ALL)
    assert _pending(deletions, "acme") == set()


def test_of_a_cluster_the_first_time_stands(deletions: Deletions) -> None:
    deletions.ask(ONE)
    deletions.ask(replace(ONE, asked_at=999.0, by="bob"))
    assert _pending(deletions) == {ONE}


def test_of_an_account_the_latest_time_stands_and_all_begins_anew(deletions: Deletions) -> None:
    """Its name may have been used again since."""
    deletions.ask(ALL)
    deletions.swept(ALL, date(2026, 11, 20))
    again = replace(ALL, asked_at=999.25, by="bob")
    deletions.ask(again)
    deletions.ask(replace(ALL, asked_at=500.0))
    deletions.ask(replace(again, by="eve"))
    assert _pending(deletions) == {again}


def test_a_run_that_knows_the_earlier_time_only_settles_nothing_of_the_latest(deletions: Deletions) -> None:
    deletions.ask(ALL)
    again = replace(ALL, asked_at=999.25)
    deletions.ask(again)
    deletions.swept(ALL, date(2026, 11, 20))
    deletions.done(ALL)
    assert _pending(deletions) == {again}


def test_it_may_be_asked_again_once_it_is_done(deletions: Deletions) -> None:
    deletions.ask(ALL)
    deletions.done(ALL)
    again = replace(ALL, asked_at=500.0)
    deletions.ask(again)
    assert _pending(deletions) == {again}


def test_how_far_it_has_come_is_kept(deletions: Deletions) -> None:
    deletions.ask(ONE)
    for day in (date(2026, 11, 20), date(2026, 11, 21)):
        (known,) = deletions.pending()
        deletions.swept(known, day)
        assert _pending(deletions) == {replace(ONE, swept_through=day)}


def test_what_is_done_does_not_come_back(deletions: Deletions) -> None:
    deletions.ask(ONE)
    deletions.done(ONE)
    deletions.swept(ONE, date(2026, 11, 20))
    assert _pending(deletions) == set()


def test_many_are_all_told(deletions: Deletions) -> None:
    every = {replace(ONE, cluster=f"c{n}") for n in range(120)}
    for each in every:
        deletions.ask(each)
    assert _pending(deletions, "acme") == every
