"""Tickets on DynamoDB."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.aws.table import Item, Table, Value
from daskscope_lambdas.ports import Missing, Ticket
from daskscope_lambdas.registry import FORGET_AT, KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


class DynamoTickets:
    """An item each, in the list of the account that it tells of, if it does. Expired ones go by themselves."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def add(self, ticket: Ticket) -> None:
        item: dict[str, Value] = {
            KEY: _key(ticket.key),
            "kind": ticket.kind,
            "told": json.dumps(dict(ticket.told)),
            "expires_at": ticket.expires_at,
            FORGET_AT: math.ceil(ticket.expires_at),
        }
        if account := ticket.told.get("account"):
            item |= {LISTED_IN: _list(account), LISTED_AT: ticket.key}
        self._table.put_new(item)

    def find(self, key: str) -> Ticket:
        return _ticket(key, self._table.get(_key(key)))

    def take(self, key: str) -> Ticket:
        return _ticket(key, self._table.take(_key(key)))

    def list(self, account: str) -> Sequence[Ticket]:
        found = [
            _ticket(item[KEY].removeprefix(_key("")), item) for item in self._table.get_many(self._listed(account))
        ]
        return sorted(found, key=lambda ticket: (ticket.expires_at, ticket.key))

    def forget(self, account: str) -> None:
        for key in self._listed(account):
            self._table.delete(key)

    def _listed(self, account: str) -> Sequence[str]:
        entries = self._table.query(LISTING, f"#{LISTED_IN} = :where", {"where": _list(account)})
        return [entry[KEY] for entry in entries]


def _key(key: str) -> str:
    return f"ticket/{key}"


def _list(account: str) -> str:
    return f"tickets/{account}"


def _ticket(key: str, item: Item | None) -> Ticket:
    if item is None:
        raise Missing("No such ticket.")
    return Ticket(key=key, kind=item["kind"], told=json.loads(item["told"]), expires_at=float(item["expires_at"]))
