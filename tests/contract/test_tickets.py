from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest

from daskscope_lambdas.ports import Missing, Taken, Ticket, TicketKind, Tickets
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import Adapters


@pytest.fixture
def tickets(world: Adapters) -> Tickets:
    return world.tickets


@pytest.fixture
def ticket(clock: FakeClock) -> Ticket:
    told = {"user": None, "account": "acme", "scopes": ["read"], "who": {"name": "Añn's, 'ü'", "n": 1.5}}
    return Ticket(key="ab" * 32, kind="invitation", told=told, expires_at=clock.now() + 600.25)


def test_what_was_added_is_found_until_it_is_taken(tickets: Tickets, ticket: Ticket) -> None:
    tickets.add(ticket)
    assert tickets.find(ticket.key) == tickets.find(ticket.key) == ticket
    assert tickets.take(ticket.key) == ticket
    for again in (tickets.find, tickets.take):
        with pytest.raises(Missing):
            again(ticket.key)


def test_one_that_never_was_is_missing(tickets: Tickets, ticket: Ticket) -> None:
    tickets.add(ticket)
    for key in ("cd" * 32, "AB" * 32, "ab", ""):
        with pytest.raises(Missing):
            tickets.find(key)
        with pytest.raises(Missing):
            tickets.take(key)
    assert tickets.find(ticket.key) == ticket


def test_those_of_an_account_are_forgotten_and_no_others(tickets: Tickets, ticket: Ticket) -> None:
    others = [replace(ticket, key="cd" * 32, told={"account": "other"}), replace(ticket, key="ef" * 32, told={})]
    for each in (ticket, *others):
        tickets.add(each)
    tickets.forget("acme")
    tickets.forget("nobody")
    with pytest.raises(Missing):
        tickets.find(ticket.key)
    assert [tickets.find(each.key) for each in others] == others


def test_a_taken_key_keeps_its_ticket(tickets: Tickets, ticket: Ticket) -> None:
    tickets.add(ticket)
    with pytest.raises(Taken):
        tickets.add(replace(ticket, kind="sign-in", told={}))
    assert tickets.find(ticket.key) == ticket


def test_one_of_many_takers_gets_it(connect_again: Callable[[], Adapters], ticket: Ticket) -> None:
    every = [connect_again().tickets for _ in range(16)]
    every[0].add(ticket)
    outcomes = race(16, lambda n: every[n].take(ticket.key))
    assert outcomes.count(ticket) == 1
    assert sum(isinstance(outcome, Missing) for outcome in outcomes) == 15


@pytest.mark.parametrize("kind", get_args(TicketKind))
def test_every_kind_is_kept(tickets: Tickets, ticket: Ticket, kind: TicketKind) -> None:
    tickets.add(replace(ticket, kind=kind, told={}))
    assert tickets.take(ticket.key) == replace(ticket, kind=kind, told={})


def test_one_that_has_not_expired_outlives_those_that_have(tickets: Tickets, ticket: Ticket, clock: FakeClock) -> None:
    tickets.add(ticket)
    tickets.add(replace(ticket, key="cd" * 32, expires_at=clock.now() + 1.0))
    clock.advance(600.0)
    tickets.add(replace(ticket, key="ef" * 32, expires_at=clock.now() + 60.0))
    assert tickets.find(ticket.key) == ticket


def test_those_of_an_account_are_listed_as_they_end(tickets: Tickets, ticket: Ticket) -> None:
    later = replace(ticket, key="00" * 32, expires_at=ticket.expires_at + 1)
    other = replace(ticket, key="cd" * 32, told={"account": "other"})
    for each in (later, ticket, other, replace(ticket, key="ef" * 32, told={})):
        tickets.add(each)
    assert list(tickets.list("acme")) == [ticket, later]
    assert (list(tickets.list("other")), list(tickets.list("nobody"))) == ([other], [])
    tickets.take(ticket.key)
    assert list(tickets.list("acme")) == [later]
