"""Policies on DynamoDB."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.arguments import check_days
from daskscope_lambdas.adapters.aws.table import Table
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_LIST = "policies"


class DynamoPolicies:
    """An item per account that wants anything, in the index of lists."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def retention(self, account: str) -> dict[str, int]:
        item = self._table.get(_key(account))
        return json.loads(item["retention"]) if item else {}

    def set_retention(self, account: str, days: Mapping[str, int]) -> None:
        check_days(days)
        if days:
            told = {"account": account, "retention": json.dumps(dict(days))}
            self._table.put({KEY: _key(account), LISTED_IN: _LIST, LISTED_AT: account, **told})
        else:
            self._table.delete(_key(account))

    def accounts(self) -> Sequence[str]:
        return [entry[LISTED_AT] for entry in self._table.query(LISTING, f"#{LISTED_IN} = :list", {"list": _LIST})]


def _key(account: str) -> str:
    return f"policy/{account}"
