import itertools
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.errors import NotLoggedIn, PermissionDenied
from daskscope_lambdas.ports import Missing, StoreError, TokenRow
from daskscope_lambdas.service import tokens as service
from daskscope_lambdas.service.tokens import Gate, Principal, mint, parse, require
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import Adapters


class MemoryTokens:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.rows: dict[str, TokenRow] = {}
        self.finds = 0

    def add(self, row: TokenRow) -> None:
        self.rows[row.key_id] = row

    def find(self, key_id: str) -> TokenRow:
        self.finds += 1
        if key_id not in self.rows:
            raise Missing(key_id)
        return self.rows[key_id]

    def revoke(self, key_id: str, at: float) -> None:
        self.rows[key_id] = replace(self.rows[key_id], revoked_at=at)

    def list(self, account: str) -> Sequence[TokenRow]:
        return [row for row in self.rows.values() if row.account == account]

    def forget(self, account: str, until: float) -> None:
        self.rows = {k: row for k, row in self.rows.items() if row.account != account or row.created_at > until}


@pytest.fixture
def tokens() -> MemoryTokens:
    return MemoryTokens()


@pytest.fixture
def gate(tokens: MemoryTokens, clock: FakeClock) -> Gate:
    return Gate(tokens, clock)


def counted() -> Callable[[int], bytes]:
    """Random bytes that are not: 0, 1, 2, ... as numbers of the size asked for."""
    numbers = itertools.count()
    return lambda size: next(numbers).to_bytes(size)


def test_the_text_is_as_documented(tokens: MemoryTokens, clock: FakeClock) -> None:
    text, row = mint(tokens, clock, "acme", ["ingest"], "site")
    found = re.fullmatch(r"dks_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})", text)
    assert found
    assert found[1] == row.key_id
    alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    checksum = 0
    for letter in found[3]:
        checksum = checksum * 62 + alphabet.index(letter)
    assert checksum == zlib.crc32(text[:-6].encode())


def test_it_is_made_of_the_random_bytes_alone(tokens: MemoryTokens, clock: FakeClock) -> None:
    text, row = mint(tokens, clock, "acme", ["read", "admin"], "ops", clock.at + 60, random=counted())
    assert text.startswith("dks_000000000000_" + "0" * 42 + "1")
    assert row == tokens.rows["000000000000"]
    assert (row.account, row.scopes, row.name) == ("acme", frozenset({"read", "admin"}), "ops")
    assert (row.created_at, row.expires_at, row.revoked_at) == (clock.at, clock.at + 60, None)


def test_no_two_are_alike(tokens: MemoryTokens, clock: FakeClock) -> None:
    texts = {mint(tokens, clock, "acme", ["read"], "x")[0] for _ in range(100)}
    assert len(texts) == len(tokens.rows) == 100


def test_the_largest_secret_fits(tokens: MemoryTokens, clock: FakeClock, gate: Gate) -> None:
    text, _ = mint(tokens, clock, "acme", ["read"], "x", random=lambda size: b"\xff" * size)
    assert gate.principal(f"Bearer {text}").account == "acme"


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"scopes": []}, "scopes is .* allowed: one or more of ingest, read, control, admin"),
        ({"scopes": ["read", "root"]}, "root"),
        ({"scopes": "read"}, "allowed: one or more of"),
        ({"account": "No Name"}, "'No Name' is no account name"),
        ({"account": "../x"}, "no account name"),
        ({"expires_at": 1_795_248_000.0}, "expires_at .* later than now"),
    ],
)
def test_what_cannot_be_is_not_minted(
    tokens: MemoryTokens, clock: FakeClock, given_: dict[str, Any], says: str
) -> None:
    fine: dict[str, Any] = {"tokens": tokens, "clock": clock, "account": "acme", "scopes": ["read"], "name": "x"}
    with pytest.raises(ValueError, match=says):
        mint(**fine | given_)
    assert tokens.rows == {}


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


def test_not_ours_is_none_and_ours_but_broken_an_error(tokens: MemoryTokens, clock: FakeClock) -> None:
    text, row = mint(tokens, clock, "acme", ["read"], "x")
    parsed = parse(text)
    assert parsed is not None
    assert (parsed.key_id, parsed.secret_sha256) == (row.key_id, row.secret_sha256)
    for foreign in ("", "x", "DKS_" + text[4:], "github_pat_x", " " + text):
        assert parse(foreign) is None
    for broken in (text[:-1], text + "0", text + "\n", text[:-1] + "_", text.replace("_", "-", 2).replace("-", "_", 1)):
        with pytest.raises(NotLoggedIn, match="damaged"):
            parse(broken)


@given(place=st.integers(4, 66), letter=st.sampled_from("0aZ9_€"))
def test_any_one_wrong_letter_is_noticed(place: int, letter: str) -> None:
    text, _ = mint(MemoryTokens(), FakeClock(), "acme", ["read"], "x", random=lambda size: b"\x5a" * size)
    wrong = text[:place] + letter + text[place + 1 :]
    if wrong == text:
        assert parse(wrong) is not None
    else:
        with pytest.raises(NotLoggedIn):
            parse(wrong)


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
    monkeypatch.setattr(service, "_CACHE_ROWS", 3)
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
        Gate(Broken(), clock).principal(f"Bearer {text}")


def test_scopes_imply_no_others() -> None:
    for has in ("ingest", "read", "control", "admin"):
        principal = Principal("acme", frozenset({has}), "k", "site")
        for wants in ("ingest", "read", "control", "admin"):
            if has == wants:
                require(principal, wants)
            else:
                with pytest.raises(PermissionDenied, match=f"'site' may {has}, and this needs one that may {wants}"):
                    require(principal, wants)
    with pytest.raises(PermissionDenied):
        require(Principal("acme", frozenset(), "k", "n"), "read")


def test_the_text_stands_in_no_file(adapters: Adapters, clock: FakeClock, tmp_path: Path) -> None:
    text, row = mint(adapters.tokens, clock, "acme", ["read"], "findable name")
    Gate(adapters.tokens, clock).principal(f"Bearer {text}")
    secret = text.rpartition("_")[2]
    raw = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert row.name.encode() in raw
    assert row.key_id.encode() in raw
    for part in (text, secret, secret[:43], secret[:12], secret[-12:]):
        assert part.encode() not in raw
    assert secret not in repr(row) + repr(parse(text))
