from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from daskscope_lambdas.ports import Missing, ReportDraft, ReportRow, Reports
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

DRAFT = ReportDraft(
    account="acme", link="0" * 22, filename="dask-report.html", title=None, private=False, user=None,
    user_claimed=False, key_id="k1", size_bytes=500_000_000, created_at=100.5,
)  # fmt: skip


@pytest.fixture
def reports(world: Adapters) -> Reports:
    return world.reports


def draft(n: int, account: str = "acme") -> ReportDraft:
    return replace(DRAFT, account=account, link=f"{account}-{n}", created_at=float(n))


def added(reports: Reports, many: int, account: str = "acme") -> list[int]:
    return [reports.add(draft(n, account)).id for n in range(many)]


@pytest.mark.parametrize(
    "given",
    [DRAFT, replace(DRAFT, filename="böse <b>.html", title="Añn's, 'ü'", private=True, user="ann", user_claimed=True)],
)
def test_what_was_added_is_found(reports: Reports, given: ReportDraft) -> None:
    row = reports.add(given)
    assert row == ReportRow(**asdict(given), id=1, kept_at=None)
    assert reports.get("acme", 1) == row


def test_numbers_are_an_accounts_own_and_never_given_twice(reports: Reports) -> None:
    assert added(reports, 2) == [1, 2]
    assert added(reports, 1, "globex") == [1]
    reports.remove("acme", 2)
    reports.remove("acme", 2)
    assert reports.add(draft(9)).id == 3
    with pytest.raises(Missing):
        reports.get("acme", 2)


def test_nobody_gets_the_number_of_another(connect_again: Callable[[], Adapters]) -> None:
    every = [connect_again().reports for _ in range(16)]
    rows = race(16, lambda n: every[n].add(draft(n)))
    numbers = {row.id: row.link for row in rows if isinstance(row, ReportRow)}
    assert len(numbers) == 16
    assert {row.id: row.link for row in every[0].page("acme", 100)} == numbers


@pytest.mark.parametrize("id", [0, 2, -1, 2**63, 2**70])
def test_an_unknown_number_is_missing(reports: Reports, id: int) -> None:
    added(reports, 1)
    for ask in (
        lambda: reports.get("acme", id),
        lambda: reports.get("globex", 1),
        lambda: reports.keep("acme", id, 1.0),
        lambda: reports.keep("globex", 1, 1.0),
        lambda: reports.set_private("acme", id, True),
        lambda: reports.set_private("globex", 1, True),
    ):
        with pytest.raises(Missing):
            ask()
    reports.remove("acme", id)
    reports.remove("globex", 1)
    assert reports.page("acme", 10) == [reports.get("acme", 1)]


def test_it_is_kept_from_the_first_time_on(reports: Reports) -> None:
    row = reports.add(DRAFT)
    assert reports.keep("acme", 1, 200.25) == replace(row, kept_at=200.25)
    assert reports.keep("acme", 1, 300.0) == reports.get("acme", 1) == replace(row, kept_at=200.25)


def test_it_becomes_private_and_public_again(reports: Reports) -> None:
    row = reports.add(DRAFT)
    assert reports.set_private("acme", 1, True) == reports.get("acme", 1) == replace(row, private=True)
    assert reports.set_private("acme", 1, False) == reports.get("acme", 1) == row


def test_pages_go_from_the_newest_or_from_the_oldest(reports: Reports) -> None:
    added(reports, 5)
    added(reports, 2, "acme-2")
    reports.remove("acme", 3)

    def ids(limit: int, before: int | None = None, *, oldest_first: bool = False) -> list[int]:
        return [row.id for row in reports.page("acme", limit, before, oldest_first=oldest_first)]

    assert ids(10) == [5, 4, 2, 1]
    assert (ids(2), ids(2, 4), ids(2, 1)) == ([5, 4], [2, 1], [])
    assert (ids(2, oldest_first=True), ids(2, 2, oldest_first=True), ids(2, 5, oldest_first=True)) == (
        [1, 2], [4, 5], [],
    )  # fmt: skip
    assert (ids(1, 2**70), ids(1, 0), ids(1, -(2**70))) == ([5], [], [])
    assert ids(9, -(2**70), oldest_first=True) == [1, 2, 4, 5]
    assert reports.page("nobody", 10) == []


def test_all_of_many_are_paged(reports: Reports) -> None:
    numbers = added(reports, 120)
    assert [row.id for row in reports.page("acme", 1000)] == numbers[::-1]
    assert [row.id for row in reports.page("acme", 1000, oldest_first=True)] == numbers


@pytest.mark.parametrize("limit", [0, -1])
def test_no_limit_below_one(reports: Reports, limit: int) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        reports.page("acme", limit)


def test_an_account_without_reports_may_start_anew(reports: Reports) -> None:
    added(reports, 2)
    reports.remove("acme", 2)
    reports.forget_numbers("acme")
    assert reports.add(draft(8)).id == 3
    for number in (1, 3):
        reports.remove("acme", number)
    reports.forget_numbers("acme")
    reports.forget_numbers("nobody")
    assert list(reports.accounts()) == []
    assert reports.add(draft(9)).id == 1


def test_accounts_that_ever_had_one_are_told(reports: Reports) -> None:
    assert list(reports.accounts()) == []
    added(reports, 1, "globex")
    added(reports, 2, "acme")
    reports.remove("globex", 1)
    assert list(reports.accounts()) == ["acme", "globex"]
