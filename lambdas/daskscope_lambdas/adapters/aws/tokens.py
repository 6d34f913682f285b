"""Tokens on DynamoDB."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, get_args

from daskscope_lambdas.adapters.aws.order import sortable
from daskscope_lambdas.adapters.aws.table import Item, RefusedError, Table, Value
from daskscope_lambdas.ports import EXPIRED_KEPT_S, Missing, Scope, TokenRow
from daskscope_lambdas.registry import FORGET_AT, KEY, LISTED_AT, LISTED_IN, LISTING, USED_ON

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_MAY_BE = ("revoked_at", "user", "parent", "made_by", "replaces")


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
            "kind": row.kind,
            "created_at": row.created_at,
            LISTED_IN: _list(row.account),
            LISTED_AT: f"{sortable(row.created_at)}/{row.key_id}",
        }
        if row.expires_at is not None:
            values |= _expiry(row.expires_at)
        if row.used_on is not None:
            values[USED_ON] = row.used_on.isoformat()
        values |= {name: told for name in _MAY_BE if (told := getattr(row, name)) is not None}
        self._table.put_new(values)

    def find(self, key_id: str) -> TokenRow:
        item = self._table.get(_key(key_id))
        if item is None:
            raise Missing(f"No token has key id {key_id}.")
        return _token(item)

    def revoke(self, key_id: str, at: float) -> None:
        self._change(key_id, "SET #revoked_at = :revoked_at", {"revoked_at": at}, "attribute_not_exists(#revoked_at)")

    def expire(self, key_id: str, at: float) -> None:
        change = f"SET #expires_at = :expires_at, #{FORGET_AT} = :{FORGET_AT}"
        sooner = "(attribute_not_exists(#expires_at) OR #expires_at > :expires_at)"
        self._change(key_id, change, _expiry(at), sooner)

    def used(self, key_id: str, on: date) -> None:
        later = f"attribute_exists(#{KEY}) AND (attribute_not_exists(#{USED_ON}) OR #{USED_ON} < :{USED_ON})"
        change = f"SET #{USED_ON} = :{USED_ON}"
        try:
            self._table.update(_key(key_id), change, {USED_ON: on.isoformat()}, later, unseen=True)
        except RefusedError:
            self.find(key_id)  # It was used that day already, unless this says that there is none.

    def _change(self, key_id: str, change: str, values: Mapping[str, Value], condition: str) -> None:
        """Quiet about a token that does not meet `condition`."""
        try:
            self._table.update(_key(key_id), change, values, f"attribute_exists(#{KEY}) AND {condition}")
        except RefusedError as refused:
            if refused.item is None:
                raise Missing(f"No token has key id {key_id}.") from refused

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


def _expiry(at: float) -> dict[str, Value]:
    return {"expires_at": at, FORGET_AT: math.ceil(at + EXPIRED_KEPT_S)}


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
        user=item.get("user"),
        kind=item.get("kind", "token"),  # Those of earlier releases do not say it.
        parent=item.get("parent"),
        used_on=date.fromisoformat(item[USED_ON]) if USED_ON in item else None,
        made_by=item.get("made_by"),
        replaces=item.get("replaces"),
        **moments,
    )
