"""Tokens on DynamoDB."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, get_args

from daskscope_lambdas.adapters.aws.order import sortable
from daskscope_lambdas.adapters.aws.table import Item, RefusedError, Table, Value
from daskscope_lambdas.ports import Missing, Scope, TokenRow
from daskscope_lambdas.registry import FORGET_AT, KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_KEPT_S = 30 * 86_400.0
"""How long a token is kept after it expired: whoever still uses it is told so."""


class DynamoTokens:
    """An item per token. Revoked ones stay, as long as their account does; expired ones go."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def add(self, row: TokenRow) -> None:
        values: dict[str, Value] = {
            KEY: _key(row.key_id),
            "key_id": row.key_id,
            "secret_sha256": row.secret_sha256,
            "account": row.account,
            "scopes": " ".join(sorted(row.scopes)),
            "name": row.name,
            "created_at": row.created_at,
            LISTED_IN: _list(row.account),
            LISTED_AT: f"{sortable(row.created_at)}/{row.key_id}",
        }
        if row.expires_at is not None:
            values |= {"expires_at": row.expires_at, FORGET_AT: math.ceil(row.expires_at + _KEPT_S)}
        if row.revoked_at is not None:
            values["revoked_at"] = row.revoked_at
        self._table.put_new(values)

    def find(self, key_id: str) -> TokenRow:
        item = self._table.get(_key(key_id))
        if item is None:
            raise Missing(f"No token has key id {key_id}.")
        return _token(item)

    def revoke(self, key_id: str, at: float) -> None:
        try:
            self._table.update(
                _key(key_id),
                "SET #revoked_at = if_not_exists(#revoked_at, :at)",
                {"at": at},
                f"attribute_exists(#{KEY})",
            )
        except RefusedError as error:
            raise Missing(f"No token has key id {key_id}.") from error

    def list(self, account: str) -> Sequence[TokenRow]:
        entries = self._table.query(LISTING, f"#{LISTED_IN} = :account", {"account": _list(account)})
        return [_token(item) for item in self._table.get_many([entry[KEY] for entry in entries])]

    def forget(self, account: str, until: float) -> None:
        for row in self.list(account):
            if row.created_at <= until:
                self._table.delete(_key(row.key_id))


def _key(key_id: str) -> str:
    return f"token/{key_id}"


def _list(account: str) -> str:
    return f"tokens/{account}"


def _token(item: Item) -> TokenRow:
    moments: dict[str, Any] = {
        name: float(item[name]) if name in item else None for name in ("expires_at", "revoked_at")
    }
    return TokenRow(
        key_id=item["key_id"],
        secret_sha256=item["secret_sha256"],
        account=item["account"],
        scopes=frozenset(scope for scope in get_args(Scope) if scope in item["scopes"].split()),
        name=item["name"],
        created_at=float(item["created_at"]),
        **moments,
    )
