from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from daskscope.errors import NotFound, NotLoggedIn
from daskscope_lambdas.ports import Membership, Role, Scope, StoreError, TokenRow
from daskscope_lambdas.service import gate as gate_module
from daskscope_lambdas.service import kept
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.tokens import OF_ROLES, Principal, mint, parse
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import Adapters
from tests.lambdas.service.memory_people import MemoryTokens, MemoryUsers


@pytest.fixture
def tokens() -> MemoryTokens:
    return MemoryTokens()


@pytest.fixture
def users() -> MemoryUsers:
    return MemoryUsers()


@pytest.fixture
def gate(tokens: MemoryTokens, users: MemoryUsers, clock: FakeClock) -> Gate:
    return Gate(tokens, users, clock)


def member(account: str, user: str, role: Role) -> Membership:
    return Membership(account=account, user=user, role=role, added_at=1.0, added_by="ops")


def test_the_largest_secret_fits(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, _ = mint(tokens, clock, "acme", ["read"], "x", random=lambda size: b"\xff" * size)
    assert gate.principal(f"Bearer {text}").account == "acme"


def test_the_gate_knows_the_bearer(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, row = mint(tokens, clock, "acme", ["ingest"], "site")
    expected = Principal("acme", frozenset({"ingest"}), row.key_id, "site")
    for header in (f"Bearer {text}", f"bearer {text}", f"  BEARER   {text}  "):
        assert gate.principal(header) == expected


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (None, "No token came"),
        ("", "No token came"),
        ("   ", "No token came"),
        ("Basic dXNlcjpwYXNz", "another kind"),
        ("Bearer", "no daskscope token"),
        ("Bearer ghp_0123456789", "no daskscope token"),
        ("Bearer dks_", "damaged"),
        ("Bearer dks_x", "damaged"),
    ],
)
def test_who_brings_no_good_token_is_told_what_to_do(gate: Gate, header: str | None, says: str) -> None:
    with pytest.raises(NotLoggedIn, match=says):
        gate.principal(header)


def test_unknown_and_wrong_secret_are_told_alike(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "x")
    other, _ = mint(MemoryTokens(), clock, "acme", ["read"], "x")
    tokens.rows[row.key_id] = replace(row, secret_sha256="0" * 64)
    answers: list[str] = []
    for bad in (text, other):
        with pytest.raises(NotLoggedIn, match="does not know") as caught:
            gate.principal(f"Bearer {bad}")
        answers.append(str(caught.value))
    assert answers[0] == answers[1]


def test_revoked_is_told_only_to_who_has_the_secret(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "laptop")
    tokens.revoke(row.key_id, clock.at)
    with pytest.raises(NotLoggedIn, match="'laptop' was revoked"):
        gate.principal(f"Bearer {text}")
    tokens.rows[row.key_id] = replace(tokens.rows[row.key_id], secret_sha256="0" * 64)
    clock.advance(60)
    with pytest.raises(NotLoggedIn, match="does not know"):
        gate.principal(f"Bearer {text}")


def test_it_ends_at_its_moment_also_out_of_the_cache(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, _ = mint(tokens, clock, "acme", ["read"], "x", clock.at + 10)
    clock.advance(9.5)
    gate.principal(f"Bearer {text}")
    clock.advance(0.5)
    with pytest.raises(NotLoggedIn, match="has expired"):
        gate.principal(f"Bearer {text}")
    assert tokens.finds == 1


def test_a_row_is_read_once_a_minute_and_a_revocation_seen_by_then(
    tokens: MemoryTokens, clock: FakeClock, gate: Gate
) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "x")
    for _ in range(60):
        gate.principal(f"Bearer {text}")
        clock.advance(0.99)
    assert tokens.finds == 1
    tokens.revoke(row.key_id, clock.at)
    gate.principal(f"Bearer {text}")
    clock.advance(0.61)
    with pytest.raises(NotLoggedIn, match="revoked"):
        gate.principal(f"Bearer {text}")
    assert tokens.finds == 2


def test_a_clock_set_back_does_not_keep_a_row_for_ever(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "x")
    gate.principal(f"Bearer {text}")
    tokens.revoke(row.key_id, clock.at)
    clock.advance(-86400)
    with pytest.raises(NotLoggedIn, match="revoked"):
        gate.principal(f"Bearer {text}")


def test_an_unknown_one_works_as_soon_as_it_is_known(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "x")
    del tokens.rows[row.key_id]
    with pytest.raises(NotLoggedIn):
        gate.principal(f"Bearer {text}")
    tokens.add(row)
    assert gate.principal(f"Bearer {text}").key_id == row.key_id


def test_the_cache_is_bounded_and_drops_the_least_used(
    tokens: MemoryTokens, clock: FakeClock, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST", 3)
    texts = [mint(tokens, clock, "acme", ["read"], str(n))[0] for n in range(4)]
    for n in (0, 1, 2, 0, 3):
        gate.principal(f"Bearer {texts[n]}")
    assert tokens.finds == 4
    gate.principal(f"Bearer {texts[0]}")
    assert tokens.finds == 4
    gate.principal(f"Bearer {texts[1]}")
    assert tokens.finds == 5


def test_many_threads_pass_the_gate(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    texts = [mint(tokens, clock, "acme", ["read"], str(n))[0] for n in range(32)]
    names = race(32, lambda n: gate.principal(f"Bearer {texts[n]}").name)
    assert names == [str(n) for n in range(32)]


def test_a_store_that_fails_is_not_a_wrong_token(tokens: MemoryTokens, clock: FakeClock) -> None:
    text, _ = mint(tokens, clock, "acme", ["read"], "x")

    class Broken(MemoryTokens):
        def find(self, key_id: str) -> TokenRow:
            raise StoreError("disk gone")

    with pytest.raises(StoreError, match="disk gone"):
        Gate(Broken(), MemoryUsers(), clock).principal(f"Bearer {text}")


def test_the_text_stands_in_no_file(adapters: Adapters, clock: FakeClock, tmp_path: Path) -> None:
    text, row = mint(adapters.tokens, clock, "acme", ["read"], "findable name")
    Gate(adapters.tokens, adapters.users, clock).principal(f"Bearer {text}")
    secret = text.rpartition("_")[2]
    raw = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert row.name.encode() in raw
    assert row.key_id.encode() in raw
    for part in (text, secret, secret[:43], secret[:12], secret[-12:]):
        assert part.encode() not in raw
    assert secret not in repr(row) + repr(parse(text))


@pytest.mark.parametrize("role", list(OF_ROLES))
def test_a_person_may_what_their_role_may_in_each_account(
    tokens: MemoryTokens, users: MemoryUsers, clock: FakeClock, gate: Gate, role: Role
) -> None:
    users.put(member("acme", "ann", role))
    users.put(member("globex", "ann", "viewer"))
    given: tuple[Scope, ...] = ("read", "control", "admin")
    text, row = mint(tokens, clock, "acme", given, "laptop", user="ann")
    expected = Principal("acme", frozenset(given) & OF_ROLES[role], row.key_id, "laptop", None, "ann", role)
    assert gate.principal(f"Bearer {text}") == gate.principal(f"Bearer {text}", "acme") == expected
    assert expected.who == "ann"
    elsewhere = gate.principal(f"Bearer {text}", "globex")
    assert (elsewhere.account, elsewhere.scopes, elsewhere.role) == ("globex", frozenset({"read"}), "viewer")


def test_another_account_is_as_if_it_did_not_exist(
    tokens: MemoryTokens, users: MemoryUsers, clock: FakeClock, gate: Gate
) -> None:
    users.put(member("acme", "ann", "admin"))
    users.put(member("globex", "bob", "admin"))
    of_ann, _ = mint(tokens, clock, "acme", ["read"], "laptop", user="ann")
    of_site, _ = mint(tokens, clock, "acme", ["read"], "site")
    for text, where in ((of_ann, "ann is in acme"), (of_site, "it is of acme")):
        for account in ("globex", "nowhere"):
            with pytest.raises(NotFound, match=f"^No account {account} for this token: {where}.$"):
                gate.principal(f"Bearer {text}", account)


def test_who_was_taken_out_is_out_within_a_minute_and_who_is_let_in_at_once(
    tokens: MemoryTokens, users: MemoryUsers, clock: FakeClock, gate: Gate
) -> None:
    text, _ = mint(tokens, clock, "acme", ["read"], "laptop", user="ann")
    with pytest.raises(NotLoggedIn, match="ann is not in account acme any more"):
        gate.principal(f"Bearer {text}")
    users.put(member("acme", "ann", "viewer"))
    gate.principal(f"Bearer {text}")
    users.remove("acme", "ann")
    clock.advance(59.5)
    gate.principal(f"Bearer {text}")
    clock.advance(0.5)
    with pytest.raises(NotLoggedIn, match="any more"):
        gate.principal(f"Bearer {text}")


def test_a_membership_is_read_once_a_minute(
    tokens: MemoryTokens, users: MemoryUsers, clock: FakeClock, gate: Gate
) -> None:
    users.put(member("acme", "ann", "viewer"))
    text, _ = mint(tokens, clock, "acme", ["read"], "laptop", user="ann")
    for _ in range(60):
        gate.principal(f"Bearer {text}")
        clock.advance(0.99)
    assert (tokens.finds, users.finds) == (1, 1)


def test_what_came_of_a_token_is_not_good_without_it(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    _, parent = mint(tokens, clock, "acme", ["read"], "laptop", clock.at + 100)
    text, _ = mint(tokens, clock, "acme", ["read"], "web", kind="session", parent=parent.key_id)
    assert gate.session(text).account == "acme"
    clock.advance(100)
    with pytest.raises(NotLoggedIn, match="'laptop' has expired"):
        gate.session(text)
    tokens.rows[parent.key_id] = replace(parent, revoked_at=1.0)
    clock.advance(60)
    with pytest.raises(NotLoggedIn, match="'laptop' was revoked"):
        gate.session(text)
    del tokens.rows[parent.key_id]
    clock.advance(60)
    with pytest.raises(NotLoggedIn, match="the session was made with is gone"):
        gate.session(text)


def test_a_session_that_ended_says_to_sign_in_again(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "web", clock.at + 10, kind="session")
    clock.advance(10)
    with pytest.raises(NotLoggedIn, match="The session has expired: sign in again"):
        gate.session(text)
    tokens.rows[row.key_id] = replace(row, revoked_at=1.0)
    clock.advance(60)
    with pytest.raises(NotLoggedIn, match="The session was revoked: sign in again"):
        gate.session(text)


def test_its_use_is_written_down_once_a_day(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "x")
    for _ in range(48):  # hours, from 8 in the morning on
        gate.principal(f"Bearer {text}")
        clock.advance(3600)
    assert tokens.uses == [(row.key_id, date(2026, 11, day)) for day in (21, 22, 23)]


def test_who_may_not_pass_has_used_nothing(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, _ = mint(tokens, clock, "acme", ["read"], "x", clock.at + 1)
    with pytest.raises(NotFound):
        gate.principal(f"Bearer {text}", "globex")
    clock.advance(1)
    with pytest.raises(NotLoggedIn):
        gate.principal(f"Bearer {text}")
    assert tokens.uses == []


def test_a_use_that_cannot_be_kept_keeps_nobody_out(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    class Full(MemoryTokens):
        def used(self, key_id: str, on: date) -> None:
            raise StoreError("disk full")

    tokens = Full()
    text, row = mint(tokens, clock, "acme", ["read"], "x")
    gate = Gate(tokens, MemoryUsers(), clock)
    for _ in range(3):
        assert gate.principal(f"Bearer {text}").key_id == row.key_id
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert row.key_id in caplog.text


def test_a_session_counts_in_its_cookie_alone(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, _ = mint(tokens, clock, "acme", ["read"], "web", kind="session")
    assert gate.session(text).account == "acme"
    for ask in (gate.principal, gate.itself):
        with pytest.raises(NotLoggedIn, match="good in its cookie alone"):
            ask(f"Bearer {text}")


def test_who_is_in_their_account_no_more_may_give_their_token_back_and_no_more(
    tokens: MemoryTokens, users: MemoryUsers, clock: FakeClock, gate: Gate
) -> None:
    users.put(member("beta", "eve", "member"))
    text, row = mint(tokens, clock, "acme", ["read"], "laptop", user="eve")
    with pytest.raises(NotLoggedIn, match="not in account acme any more"):
        gate.principal(f"Bearer {text}")
    assert gate.itself(f"Bearer {text}") == Principal("acme", frozenset(), row.key_id, "laptop", user="eve")
    tokens.revoke(row.key_id, clock.at)
    clock.advance(60)
    with pytest.raises(NotLoggedIn, match="revoked"):
        gate.itself(f"Bearer {text}")


@pytest.mark.parametrize("circle", [False, True])
def test_a_long_row_of_parents_comes_to_an_end(
    tokens: MemoryTokens, clock: FakeClock, gate: Gate, circle: bool
) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "first")
    first = row
    for _ in range(gate_module.MOST_PARENTS):
        text, row = mint(tokens, clock, "acme", ["read"], "next", parent=row.key_id)
    if not circle:
        assert gate.principal(f"Bearer {text}").account == "acme"
        text, _ = mint(tokens, clock, "acme", ["read"], "last", parent=row.key_id)
    else:
        tokens.rows[first.key_id] = replace(first, parent=row.key_id)
    with pytest.raises(NotLoggedIn, match="too many others"):
        gate.principal(f"Bearer {text}")


def test_a_key_id_is_good_as_long_as_its_token_is(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    _, row = mint(tokens, clock, "acme", ["read"], "laptop", clock.at + 10)
    gate.check_key(row.key_id)
    clock.advance(10)
    for key_id, says in ((row.key_id, "has expired"), ("0" * 12, "any more")):
        with pytest.raises(NotLoggedIn, match=says):
            gate.check_key(key_id)
