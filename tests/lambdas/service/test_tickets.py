"""Codes that are good once, and what is kept of them."""

import hashlib
import re

import pytest

from daskscope.errors import NotFound
from daskscope_lambdas.service import tickets
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import LocalAdapters


def test_a_link_is_128_random_bits_of_which_a_hash_is_kept(adapters: LocalAdapters, clock: FakeClock) -> None:
    link = tickets.sign_in_link(adapters.tickets, clock, "acme", ["read"], user="ann", parent="k" * 12)
    found = re.fullmatch(r"login\?code=([0-9A-Za-z]{22})", link.url)
    assert found
    assert link.expires_at == clock.at + 3600
    ticket = adapters.tickets.find(hashlib.sha256(f"sign-in:{found[1]}".encode()).hexdigest())
    assert ticket.told == {"account": "acme", "scopes": ["read"], "user": "ann", "parent": "k" * 12}
    assert found[1] not in repr(ticket)


def test_it_is_made_of_the_random_bytes_alone(adapters: LocalAdapters, clock: FakeClock) -> None:
    link = tickets.invitation(adapters.tickets, clock, "acme", "viewer", "ann", random=lambda size: b"\xff" * size)
    assert link == tickets.Link("join?code=7n42DGM5Tflk9n8mt7Fhc7", clock.at + 7 * 86_400)


def test_no_two_are_alike(adapters: LocalAdapters, clock: FakeClock) -> None:
    made = {tickets.sign_in_link(adapters.tickets, clock, "acme", ["read"]).url for _ in range(100)}
    assert len(made) == 100


def test_of_many_that_take_it_one_gets_it(adapters: LocalAdapters, clock: FakeClock) -> None:
    text, _ = tickets.issue(adapters.tickets, clock, "invitation", {"role": "admin"}, 60)

    def take(_: int) -> bool:
        try:
            tickets.take(adapters.tickets, clock, "invitation", text)
        except NotFound:
            return False
        return True

    assert sorted(race(8, take), key=bool) == [False] * 7 + [True]


def test_a_code_of_one_kind_is_none_of_another(adapters: LocalAdapters, clock: FakeClock) -> None:
    text, _ = tickets.issue(adapters.tickets, clock, "invitation", {}, 60)
    with pytest.raises(NotFound, match="This sign-in link is not known here"):
        tickets.take(adapters.tickets, clock, "sign-in", text)
    assert tickets.take(adapters.tickets, clock, "invitation", text)


def test_one_that_has_expired_is_as_one_that_was_used(adapters: LocalAdapters, clock: FakeClock) -> None:
    text, _ = tickets.issue(adapters.tickets, clock, "sign-in", {}, 60)
    clock.advance(59.9)
    assert tickets.look(adapters.tickets, clock, "sign-in", text)
    clock.advance(0.1)
    for ask in (tickets.look, tickets.take):
        with pytest.raises(NotFound, match="was used, or has expired"):
            ask(adapters.tickets, clock, "sign-in", text)


@pytest.mark.parametrize(("account", "scopes"), [("No Name", ["read"]), ("acme", [])])
def test_what_no_link_can_be_made_of(
    adapters: LocalAdapters, clock: FakeClock, account: str, scopes: list[tickets.Scope]
) -> None:
    with pytest.raises(ValueError, match=r"no account name|scopes is empty"):
        tickets.sign_in_link(adapters.tickets, clock, account, scopes)
