"""What an account has beside its clusters, when it is deleted."""

import pytest

from daskscope_lambdas.ports import Missing
from daskscope_lambdas.service.belongings import going_until
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.exclusions import PASS_S
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.service.owning import Account

ALL = {"users", "tokens", "reports", "reports' files", "wishes", "audit", "tickets"}


def test_a_deleted_account_takes_all_along_and_nothing_of_another(adapters: LocalAdapters, clock: FakeClock) -> None:
    mine, theirs = Account(adapters, "acme", "m" * 22), Account(adapters, "globex", "t" * 22)
    assert (mine.left(), theirs.left()) == (ALL, ALL)
    clock.advance(1)
    Deleter(adapters).delete_account("acme", "root")
    assert (mine.left(), theirs.left()) == (set(), ALL)
    assert adapters.users.claimed("ann") == "ann", "a name is not for somebody else to have"
    with pytest.raises(Missing):
        adapters.reports.get("acme", mine.report.id)


def test_what_comes_of_a_deleted_account_a_moment_later_goes_all_of_it(
    adapters: LocalAdapters, clock: FakeClock
) -> None:
    Account(adapters, "acme", "m" * 22)
    Deleter(adapters).delete_account("acme", "root")
    asked_at = clock.now()
    clock.advance(PASS_S)
    late = Account(adapters, "acme", "n" * 22)
    assert going_until(adapters, "acme") == asked_at + PASS_S
    assert going_until(adapters, "globex") == 0.0
    Deleter(adapters).run()
    assert late.left() == set()


def test_what_the_next_owner_of_the_name_has_is_left_alone(adapters: LocalAdapters, clock: FakeClock) -> None:
    Account(adapters, "acme", "m" * 22)
    clock.advance(1)
    Deleter(adapters).delete_account("acme", "root")
    clock.advance(1 + PASS_S)
    theirs = Account(adapters, "acme", "n" * 22)
    Deleter(adapters).run()
    assert theirs.left() == ALL
