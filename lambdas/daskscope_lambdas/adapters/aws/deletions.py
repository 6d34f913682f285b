"""Deletions on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.aws.again import tries
from daskscope_lambdas.adapters.aws.table import Item, RefusedError, Table, Value
from daskscope_lambdas.ports import Conflict, Deletion, StoreError, Taken
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_LIST = "deletions"
_ALL = "*"
_SAME = "#asked_at = :asked_at"
"""Nobody asked again since."""


class DynamoDeletions:
    """An item each until it is done, in the index of lists by account."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def ask(self, deletion: Deletion) -> None:
        values: dict[str, Value] = {
            KEY: _key(deletion),
            "account": deletion.account,
            "cluster": deletion.cluster or _ALL,
            "asked_at": deletion.asked_at,
            "by": deletion.by,
            LISTED_IN: _LIST,
            LISTED_AT: f"{deletion.account}/{deletion.cluster or _ALL}",
        }
        for _ in tries():
            try:
                self._table.put_new(values)
            except Taken:
                if deletion.cluster is not None or self._ask_again(deletion):
                    return
            else:
                return
        raise StoreError(f"The deletion of {deletion.account} was done whenever it was to be asked for again.")

    def _ask_again(self, deletion: Deletion) -> bool:
        """False if it was done meanwhile."""
        try:
            self._table.update(
                _key(deletion),
                "SET #asked_at = :asked_at, #by = :by REMOVE #swept_through",
                {"asked_at": deletion.asked_at, "by": deletion.by},
                f"attribute_exists(#{KEY}) AND #asked_at < :asked_at",
            )
        except RefusedError as refused:
            return refused.item is not None
        return True

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
                _key(deletion),
                "SET #swept_through = :day",
                {"day": day.isoformat(), "asked_at": deletion.asked_at},
                _SAME,
            )

    def done(self, deletion: Deletion) -> None:
        with suppress(Conflict):
            self._table.delete_if(_key(deletion), {"asked_at": deletion.asked_at}, _SAME)


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
