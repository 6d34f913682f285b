from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from daskscope_lambdas.ports import Missing, Taken, TokenRow, Tokens
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import Adapters

ROW = TokenRow(
    key_id="k1", secret_sha256="ab" * 32, account="acme", scopes=frozenset({"read", "ingest"}), name="Añn's, 'ü'",
    created_at=100.5,
)  # fmt: skip


FULL = replace(
    ROW, expires_at=4e9 + 0.25, revoked_at=150.0, scopes=frozenset({"admin", "report"}), user="ann@x.org",
    kind="session", parent="k0", used_on=date(2026, 11, 21),
    made_by="ada", replaces="k9",
)  # fmt: skip


@pytest.mark.parametrize("row", [ROW, FULL])
def test_what_was_added_is_found(tokens: Tokens, row: TokenRow) -> None:
    tokens.add(row)
    assert tokens.find("k1") == row


def test_an_unknown_key_id_is_missing(tokens: Tokens) -> None:
    tokens.add(ROW)
    for key_id in ("k2", "K1", "k", "", "k1 "):
        with pytest.raises(Missing):
            tokens.find(key_id)


def test_a_taken_key_id_keeps_its_token(tokens: Tokens) -> None:
    tokens.add(ROW)
    with pytest.raises(Taken):
        tokens.add(replace(ROW, account="other"))
    assert tokens.find("k1") == ROW


def test_one_of_many_racing_adders_wins(connect_again: Callable[[], Adapters]) -> None:
    every = [connect_again().tokens for _ in range(32)]
    outcomes = race(32, lambda n: every[n].add(replace(ROW, name=str(n))))
    winners = [n for n, outcome in enumerate(outcomes) if outcome is None]
    assert len(winners) == 1
    assert sum(isinstance(outcome, Taken) for outcome in outcomes) == 31
    assert every[0].find("k1").name == str(winners[0])


def test_revoking_twice_is_quiet_and_the_first_time_stands(tokens: Tokens) -> None:
    tokens.add(ROW)
    tokens.add(replace(ROW, key_id="k2"))
    tokens.revoke("k1", 150.0)
    tokens.revoke("k1", 160.0)
    assert tokens.find("k1") == replace(ROW, revoked_at=150.0)
    assert tokens.find("k2").revoked_at is None


def test_revoking_an_unknown_one_is_missing(tokens: Tokens) -> None:
    with pytest.raises(Missing):
        tokens.revoke("k1", 150.0)


def test_it_expires_sooner_and_never_later(tokens: Tokens) -> None:
    tokens.add(ROW)
    tokens.add(replace(ROW, key_id="k2"))
    tokens.expire("k1", 4e9 + 0.25)
    assert tokens.find("k1") == replace(ROW, expires_at=4e9 + 0.25)
    tokens.expire("k1", 5e9)
    assert tokens.find("k1").expires_at == 4e9 + 0.25
    tokens.expire("k1", 3e9)
    assert tokens.find("k1") == replace(ROW, expires_at=3e9)
    assert tokens.find("k2").expires_at is None


def test_the_last_day_of_its_use_is_kept(tokens: Tokens) -> None:
    tokens.add(ROW)
    for day, known in ((21, 21), (20, 21), (21, 21), (23, 23)):
        tokens.used("k1", date(2026, 11, day))
        assert tokens.find("k1") == replace(ROW, used_on=date(2026, 11, known))


def test_of_an_unknown_one_nothing_is_written_down(tokens: Tokens) -> None:
    with pytest.raises(Missing):
        tokens.expire("k1", 4e9)
    with pytest.raises(Missing):
        tokens.used("k1", date(2026, 11, 21))
    with pytest.raises(Missing):
        tokens.find("k1")


def test_an_account_lists_its_own_oldest_first(tokens: Tokens) -> None:
    rows = [
        replace(ROW, key_id=key_id, created_at=at) for key_id, at in [("c", 2.0), ("b", 3.0), ("a", 2.0), ("d", 1.0)]
    ]
    for row in rows:
        tokens.add(row)
    tokens.add(replace(ROW, key_id="x", account="other"))
    tokens.revoke("d", 9.0)
    assert [row.key_id for row in tokens.list("acme")] == ["d", "a", "c", "b"]
    assert tokens.list("nobody") == []


def test_an_expired_token_is_found_and_listed_for_a_while(tokens: Tokens, clock: FakeClock) -> None:
    """So that its bearer is told what is wrong. Until when, nobody promises beyond a month."""
    row = replace(ROW, expires_at=clock.now())
    tokens.add(row)
    clock.advance(86_400)
    assert tokens.find("k1") == row
    assert tokens.list("acme") == [row]


def test_all_of_many_are_listed(tokens: Tokens) -> None:
    rows = [replace(ROW, key_id=f"k{n:03}", created_at=float(n // 2)) for n in range(120)]
    for row in reversed(rows):
        tokens.add(row)
    assert tokens.list("acme") == rows


def test_a_forgotten_token_is_known_to_nobody(tokens: Tokens) -> None:
    old, late = replace(ROW, key_id="old", created_at=10.0), replace(ROW, key_id="late", created_at=20.5)
    other = replace(ROW, key_id="other", account="globex", created_at=10.0)
    for row in (old, late, other):
        tokens.add(row)
    tokens.forget(ROW.account, 20.0)
    tokens.forget(ROW.account, 20.0)
    with pytest.raises(Missing):
        tokens.find("old")
    assert list(tokens.list(ROW.account)) == [late]
    assert tokens.find("other") == other
