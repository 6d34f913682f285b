"""Deletions on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.aws.table import Item, RefusedError, Table
from daskscope_lambdas.ports import Deletion, Taken
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_LIST = "deletions"
_ALL = "*"


class DynamoDeletions:
    """An item each until it is done, in the index of lists by account."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def ask(self, deletion: Deletion) -> None:
        with suppress(Taken):
            self._table.put_new(
                {
                    KEY: _key(deletion),
                    "account": deletion.account,
                    "cluster": deletion.cluster or _ALL,
                    "asked_at": deletion.asked_at,
                    "by": deletion.by,
                    LISTED_IN: _LIST,
                    LISTED_AT: f"{deletion.account}/{deletion.cluster or _ALL}",
                }
            )

    def pending(self, account: str | None = None) -> Sequence[Deletion]:
        condition, values = f"#{LISTED_IN} = :list", {"list": _LIST}
        if account is not None:
            condition += f" AND begins_with(#{LISTED_AT}, :start)"
            values["start"] = f"{account}/"
        keys = [entry[KEY] for entry in self._table.query(LISTING, condition, values)]
        return [_deletion(item) for item in self._table.get_many(keys)]

    def swept(self, deletion: Deletion, day: date) -> None:
        with suppress(RefusedError):
            self._table.update(
                _key(deletion), "SET #swept_through = :day", {"day": day.isoformat()}, f"attribute_exists(#{KEY})"
            )

    def done(self, deletion: Deletion) -> None:
        self._table.delete(_key(deletion))


def _key(deletion: Deletion) -> str:
    return f"deletion/{deletion.account}/{deletion.cluster or _ALL}"


def _deletion(item: Item) -> Deletion:
    return Deletion(
        account=item["account"],
        cluster=None if item["cluster"] == _ALL else item["cluster"],
        asked_at=float(item["asked_at"]),
        by=item["by"],
        swept_through=date.fromisoformat(item["swept_through"]) if "swept_through" in item else None,
    )
