import itertools
import re
import zlib
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.errors import NotLoggedIn, PermissionDenied
from daskscope_lambdas.ports import Role, Scope
from daskscope_lambdas.service.tokens import Principal, mint, parse, require
from daskscope_lambdas.testing import FakeClock
from tests.lambdas.service.memory_people import MemoryTokens


@pytest.fixture
def tokens() -> MemoryTokens:
    return MemoryTokens()


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


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"scopes": []}, "scopes is .* allowed: one or more of ingest, read, control, report, admin"),
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


def test_scopes_imply_no_others() -> None:
    scopes: tuple[Scope, ...] = get_args(Scope)
    for has in scopes:
        principal = Principal("acme", frozenset({has}), "k", "site")
        for wants in scopes:
            if has == wants:
                require(principal, wants)
            else:
                with pytest.raises(PermissionDenied, match=f"'site' may {has}, and this needs one that may {wants}"):
                    require(principal, wants)
    with pytest.raises(PermissionDenied):
        require(Principal("acme", frozenset(), "k", "n"), "read")


@pytest.mark.parametrize(
    ("role", "scopes", "wants", "says"),
    [
        ("viewer", {"read"}, "admin", "bea is a viewer of account acme, and this needs an admin: ask one of its"),
        ("viewer", {"read"}, "ingest", "bea is a viewer of account acme, and this needs a member: ask"),
        ("member", {"read"}, "admin", "bea is a member of account acme, and this needs an admin: ask"),
        ("admin", {"read"}, "admin", "needs one that may admin. bea may, as an admin of acme: log in again, or use"),
        ("member", set(), "read", "The token 'laptop' may do nothing here, and this needs one that may read. bea may"),
    ],
)
def test_a_person_is_told_whether_their_role_or_their_token_stands_in_the_way(
    role: Role, scopes: set[Scope], wants: Scope, says: str
) -> None:
    principal = Principal("acme", frozenset(scopes), "k", "laptop", user="bea", role=role)
    with pytest.raises(PermissionDenied) as refused:
        require(principal, wants)
    assert says in str(refused.value)
