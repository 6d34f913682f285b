import logging
from collections.abc import Sequence
from typing import Any

import pytest

from daskscope_lambdas.ports import ReportRow, StoreError, Subject
from daskscope_lambdas.service.report_sweep import ABANDONED_S, ReportsSwept, ReportSweeper
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.service.reporting import ANN, EVE, Reporting

DAY_S = 86_400


@pytest.fixture
def reporting(adapters: LocalAdapters) -> Reporting:
    return Reporting(adapters)


@pytest.fixture
def sweeper(adapters: LocalAdapters) -> ReportSweeper:
    return ReportSweeper(adapters)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope_lambdas.service.report_sweep._PAGE", 2)


def numbers(reporting: Reporting, account: str = "acme") -> list[int]:
    return [row.id for row in reporting.world.reports.page(account, 100)]


def test_where_nobody_keeps_reports_there_is_nothing_to_do(sweeper: ReportSweeper):
    assert sweeper.run() == ReportsSwept()


@pytest.mark.usefixtures("small_pages")
def test_reports_go_when_their_account_wants_them_no_longer(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "daskscope.reports")
    for _ in range(5):
        reporting.kept()
        clock.advance(DAY_S)
    others = reporting.kept(EVE)
    reporting.world.policies.set_wish("acme", "reports", {"public": "allow", "keep_days": 3})
    assert sweeper.run() == ReportsSwept(expired=3), "those of 5, 4 and 3 days"
    assert numbers(reporting) == [5, 4]
    assert len(reporting.files()) == 3
    assert numbers(reporting, "other") == [others.id]
    assert "Report 1 of acme is kept no longer" in caplog.text
    clock.advance(DAY_S - 1)
    assert sweeper.run() == ReportsSwept(expired=0)
    clock.advance(1)
    assert sweeper.run() == ReportsSwept(expired=1)


def test_for_ever_is_for_ever(reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock):
    reporting.kept()
    clock.advance(1000 * DAY_S)
    assert sweeper.run() == ReportsSwept()
    assert numbers(reporting) == [1]


def test_as_long_as_none_can_be_due_none_is_read(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(3):
        reporting.kept()
        clock.advance(DAY_S)
    reporting.world.policies.set_wish("acme", "reports", {"public": "allow", "keep_days": 30})
    sweeper.run()
    limits, page = list[int](), reporting.world.reports.page

    def watched(account: str, limit: int, number: int | None = None, **options: Any) -> Sequence[ReportRow]:
        if number is None:
            limits.append(limit)
        return page(account, limit, number, **options)

    monkeypatch.setattr(reporting.world.reports, "page", watched)
    clock.advance(27 * DAY_S - 1)
    assert sweeper.run() == ReportsSwept()
    assert limits == [], "the oldest is known to stay"
    clock.advance(1)
    assert sweeper.run() == ReportsSwept(expired=1)
    assert limits == [1]
    assert sweeper.run() == ReportsSwept()
    assert limits == [1]


@pytest.mark.usefixtures("small_pages")
def test_what_never_came_whole_goes_after_a_day(reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock):
    for _ in range(3):
        reporting.kept()
        row, _ = reporting.announce()
        reporting.bring(row)
    clock.advance(ABANDONED_S - 1)
    assert sweeper.run() == ReportsSwept()
    assert len(reporting.files()) == 6
    clock.advance(1)
    assert sweeper.run() == ReportsSwept(abandoned=3)
    assert numbers(reporting) == [5, 3, 1]
    assert [name.partition("/")[0] for name in reporting.files()] == ["public"] * 3


def test_one_that_was_kept_but_never_said_so_leaves_no_file(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock
):
    row, _ = reporting.announce()
    reporting.bring(row)
    reporting.world.report_files.keep(row.link, False)  # and there the function died
    clock.advance(ABANDONED_S)
    assert sweeper.run() == ReportsSwept(abandoned=1)
    assert reporting.files() == []


@pytest.mark.usefixtures("small_pages")
def test_where_none_may_be_public_all_are_hidden_and_stay_so(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock
):
    rows = [reporting.kept() for _ in range(5)]
    clock.advance(2 * DAY_S)
    assert sweeper.run() == ReportsSwept(), "has looked at all of them"
    rows += [reporting.kept(), reporting.announce()[0]]
    reporting.world.policies.set_wish("acme", "reports", {"public": "deny", "keep_days": None})
    others = reporting.kept(EVE)
    assert sweeper.run() == ReportsSwept(hidden=7), "also one that is on its way"
    assert all(reporting.keeper.find("acme", row.id).private for row in rows)
    assert {name.partition("/")[0] for name in reporting.files()} == {"private", "public"}
    assert not reporting.keeper.find("other", others.id).private
    assert sweeper.run() == ReportsSwept()
    reporting.world.policies.set_wish("acme", "reports", {"public": "allow", "keep_days": None})
    assert sweeper.run() == ReportsSwept()
    assert reporting.keeper.find("acme", 1).private
    reporting.keeper.set_private(ANN, 1, False, reporting.note)
    assert sweeper.run() == ReportsSwept()
    reporting.world.policies.set_wish("acme", "reports", {"public": "deny", "keep_days": None})
    assert sweeper.run() == ReportsSwept(hidden=1), "it looks at all again"


def deny(reporting: Reporting, clock: FakeClock, *, public: str = "deny"):
    """As the route of policies says it."""
    told = {"public": public, "keep_days": None, "set_at": clock.now()}
    reporting.world.policies.set_wish("acme", "reports", told)


def test_one_that_was_shown_between_two_sweeps_is_hidden_again(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock
):
    reporting.kept()
    clock.advance(2 * DAY_S)
    deny(reporting, clock)
    assert sweeper.run() == ReportsSwept(hidden=1)
    clock.advance(10)
    deny(reporting, clock, public="allow")
    reporting.keeper.set_private(ANN, 1, False, reporting.note)
    clock.advance(10)
    deny(reporting, clock)
    assert sweeper.run() == ReportsSwept(hidden=1)
    assert reporting.files()[0].startswith("private/")


def test_one_that_is_shown_while_that_is_forbidden_stays_hidden(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    row = reporting.kept(private=True)
    clock.advance(2 * DAY_S)
    set_private = reporting.world.reports.set_private

    def late(account: str, id: int, private: bool) -> ReportRow:
        if not private:
            deny(reporting, clock)
            sweeper.run()
        return set_private(account, id, private)

    monkeypatch.setattr(reporting.world.reports, "set_private", late)
    assert reporting.keeper.set_private(ANN, row.id, False, reporting.note).private
    assert reporting.keeper.find("acme", row.id).private
    assert reporting.files()[0].startswith("private/")


def test_an_account_that_starts_anew_is_looked_at_anew(reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock):
    reporting.kept()
    clock.advance(ABANDONED_S)
    sweeper.run()
    reporting.keeper.delete(ANN, 1, reporting.note)
    reporting.world.reports.forget_numbers("acme")
    sweeper.run()
    reporting.announce()
    clock.advance(ABANDONED_S)
    assert sweeper.run() == ReportsSwept(abandoned=1)


def test_it_remembers_what_needs_no_further_look(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(3):
        reporting.kept()
    clock.advance(ABANDONED_S)
    reporting.kept()
    sweeper.run()
    seen, page = list[int](), reporting.world.reports.page

    def watched(*given: Any, **options: Any) -> Sequence[ReportRow]:
        found = page(*given, **options)
        seen.extend(row.id for row in found)
        return found

    monkeypatch.setattr(reporting.world.reports, "page", watched)
    sweeper.run()
    assert seen == [4]
    seen.clear()
    ReportSweeper(reporting.world).run()
    assert seen == [1, 2, 3, 4], "a new process looks at all once"


def test_a_store_that_fails_at_one_account_keeps_no_other_waiting(
    reporting: Reporting, sweeper: ReportSweeper, clock: FakeClock, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):  # fmt: skip
    for by in (ANN, EVE):
        reporting.announce(by)
    clock.advance(ABANDONED_S)
    wish = reporting.world.policies.wish

    def failing(account: str, subject: Subject) -> dict[str, Any]:
        if account == "acme":
            raise StoreError("throttled")
        return wish(account, subject)

    monkeypatch.setattr(reporting.world.policies, "wish", failing)
    with pytest.raises(StoreError, match="throttled"):
        sweeper.run()
    assert (numbers(reporting), numbers(reporting, "other")) == ([1], [])
    assert "Reports of acme could not all be looked at: throttled" in caplog.text
    monkeypatch.undo()
    assert sweeper.run() == ReportsSwept(abandoned=1)


def test_a_hidden_one_whose_file_is_gone_stops_nothing(reporting: Reporting, sweeper: ReportSweeper):
    lost, other = reporting.kept(), reporting.kept()
    reporting.world.report_files.delete(lost.link)
    reporting.world.policies.set_wish("acme", "reports", {"public": "deny", "keep_days": None})
    assert sweeper.run() == ReportsSwept(hidden=1)
    assert reporting.keeper.find("acme", other.id).private
