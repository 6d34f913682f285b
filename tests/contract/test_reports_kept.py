"""Reports from their announcement to their end, by the services that api and sweep call, in each world."""

import pytest

from daskscope.errors import NotFound
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.service.report_checks import BadReportError
from daskscope_lambdas.service.report_policy import ReportPolicy
from daskscope_lambdas.service.report_sweep import ReportsSwept, ReportSweeper
from daskscope_lambdas.service.reports import Announced, ReportKeeper
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters
from tests.contract.test_report_files import Outside
from tests.lambdas.service.reporting import ANN, HTML

DAY_S = 86_400


@pytest.fixture
def outside(world: Adapters, clock: FakeClock) -> Outside:
    return Outside(world, clock)


@pytest.fixture
def keeper(world: Adapters) -> ReportKeeper:
    return ReportKeeper(world)


def announced(body: bytes = HTML) -> Announced:
    return Announced(filename="dask-report.html", size_bytes=len(body))


def test_one_is_kept_hidden_shown_and_deleted(world: Adapters, keeper: ReportKeeper, outside: Outside):
    row, _ = keeper.offer(ANN, announced())
    with pytest.raises(NotFound, match="No file has come"):
        keeper.uploaded(ANN, row.id)
    outside.bring(row.link, HTML)
    assert keeper.uploaded(ANN, row.id).kept_at is not None
    public = world.report_files.address(row.link, False)
    assert outside.see(public) == HTML
    noted = list[int]()
    keeper.set_private(ANN, row.id, True, lambda told: noted.append(told.id))
    with pytest.raises(StoreError):
        outside.see(public)
    private = world.report_files.address(row.link, True)
    assert outside.see(private) == HTML
    keeper.set_private(ANN, row.id, False, lambda told: noted.append(told.id))
    assert outside.see(world.report_files.address(row.link, False)) == HTML
    keeper.delete(ANN, row.id, lambda told: noted.append(told.id))
    assert noted == [row.id] * 3
    with pytest.raises(StoreError):
        outside.see(public)
    with pytest.raises(NotFound):
        keeper.find("acme", row.id)


def test_what_is_no_report_leaves_nothing(world: Adapters, keeper: ReportKeeper, outside: Outside):
    row, _ = keeper.offer(ANN, announced(b"%PDF-1.7"))
    outside.bring(row.link, b"%PDF-1.7")
    with pytest.raises(BadReportError):
        keeper.uploaded(ANN, row.id)
    with pytest.raises(StoreError):
        world.report_files.arrived(row.link, 1)
    assert world.reports.page("acme", 10) == []


def test_the_sweep_hides_and_ends_them(world: Adapters, keeper: ReportKeeper, outside: Outside, clock: FakeClock):
    sweeper = ReportSweeper(world)
    kept, _ = keeper.offer(ANN, announced())
    outside.bring(kept.link, HTML)
    keeper.uploaded(ANN, kept.id)
    public = world.report_files.address(kept.link, False)
    keeper.offer(ANN, announced())
    world.policies.set_wish("acme", "reports", {"public": "deny", "keep_days": 2})
    assert keeper.policy("acme") == ReportPolicy(public=False, keep_days=2)
    assert sweeper.run() == ReportsSwept(hidden=2)
    with pytest.raises(StoreError):
        outside.see(public)
    clock.advance(DAY_S)
    assert sweeper.run() == ReportsSwept(abandoned=1)
    assert outside.see(world.report_files.address(kept.link, True)) == HTML
    clock.advance(DAY_S)
    assert sweeper.run() == ReportsSwept(expired=1)
    assert world.reports.page("acme", 10) == []
    with pytest.raises(StoreError):
        world.report_files.address(kept.link, True)
