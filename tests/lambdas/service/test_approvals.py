"""A terminal's login, as far as its service goes; the whole way is in handlers/test_api_login.py."""

import re

import pytest

from daskscope.errors import NotFound, PermissionDenied
from daskscope_lambdas.ports import Missing
from daskscope_lambdas.service.approvals import LETTERS, Approvals, log_out, spelled
from daskscope_lambdas.service.tokens import Principal, mint
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import LocalAdapters

ANN = Principal("acme", frozenset({"read", "ingest"}), "k" * 12, "sign-in", None, "ann", "member")


@pytest.fixture
def approvals(adapters: LocalAdapters, clock: FakeClock) -> Approvals:
    return Approvals(adapters.tickets, clock)


def test_codes_are_of_letters_that_people_tell_apart(approvals: Approvals) -> None:
    codes = {approvals.ask("x").user_code for _ in range(50)}
    assert len(codes) == 50
    assert all(re.fullmatch(f"[{LETTERS}]{{4}}-[{LETTERS}]{{4}}", code) for code in codes)
    assert not set(LETTERS) & set("AEIOUY01")


@pytest.mark.parametrize("typed", ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "B-C-D-F-G-H-J-K"])
def test_a_code_as_people_type_it(typed: str) -> None:
    assert spelled(typed) == "BCDF-GHJK"


def test_of_many_that_fetch_one_gets_the_tokens(
    approvals: Approvals, adapters: LocalAdapters, clock: FakeClock
) -> None:
    asked = approvals.ask("laptop")
    approvals.approve(asked.user_code, ANN, None)

    def fetch(_: int) -> bool:
        try:
            return approvals.fetch(adapters.tokens, asked.device_code) is not None
        except NotFound:
            return False

    assert sorted(race(8, fetch), key=bool) == [False] * 7 + [True]
    made = {row.name for row in adapters.tokens.list("acme")}
    assert made == {"login on laptop", "login on laptop, for its clusters"}


def test_it_is_decided_once(approvals: Approvals, adapters: LocalAdapters) -> None:
    asked = approvals.ask("laptop")
    approvals.deny(asked.user_code)
    with pytest.raises(NotFound):
        approvals.approve(asked.user_code, ANN, None)
    with pytest.raises(PermissionDenied, match="said no"):
        approvals.fetch(adapters.tokens, asked.device_code)


def test_the_code_that_people_see_fetches_nothing(approvals: Approvals, adapters: LocalAdapters) -> None:
    asked = approvals.ask("laptop")
    approvals.approve(asked.user_code, ANN, None)
    with pytest.raises(NotFound):
        approvals.fetch(adapters.tokens, asked.user_code)


def test_an_approval_ends_with_the_token_behind_it(
    approvals: Approvals, adapters: LocalAdapters, clock: FakeClock
) -> None:
    asked = approvals.ask("laptop")
    _, behind = mint(adapters.tokens, clock, "acme", ["read"], "short", clock.at + 60, user="ann")
    approvals.approve(asked.user_code, ANN, behind)
    clock.advance(60)
    with pytest.raises(PermissionDenied, match="has ended meanwhile"):
        approvals.fetch(adapters.tokens, asked.device_code)
    assert adapters.tokens.list("acme") == [behind]


def test_what_is_approved_came_of_the_token_behind_it(
    approvals: Approvals, adapters: LocalAdapters, clock: FakeClock
) -> None:
    _, behind = mint(adapters.tokens, clock, "acme", ["read"], "laptop", user="ann")
    asked = approvals.ask("laptop")
    approvals.approve(asked.user_code, ANN, behind)
    fetched = approvals.fetch(adapters.tokens, asked.device_code)
    assert fetched
    assert fetched.row.parent == behind.key_id
    assert {row.key_id for row in log_out(adapters.tokens, clock, behind.key_id)} == {behind.key_id, fetched.row.key_id}


def test_to_log_out_takes_what_came_of_the_token_and_no_more(adapters: LocalAdapters, clock: FakeClock) -> None:
    tokens = adapters.tokens
    _, login = mint(tokens, clock, "acme", ["read"], "login", user="ann")
    _, child = mint(tokens, clock, "acme", ["ingest"], "child", user="ann", parent=login.key_id)
    _, other = mint(tokens, clock, "acme", ["read"], "other", user="ann")
    assert {row.key_id for row in log_out(tokens, clock, login.key_id)} == {login.key_id, child.key_id}
    assert tokens.find(other.key_id).revoked_at is None
    with pytest.raises(Missing):
        log_out(tokens, clock, "nobody")
