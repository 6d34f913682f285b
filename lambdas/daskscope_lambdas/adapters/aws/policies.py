"""Policies on DynamoDB."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from daskscope_lambdas.adapters.aws.table import RefusedError, Table
from daskscope_lambdas.ports import Conflict, Subject
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_LIST = "policies"
_NOTHING_LEFT = " AND ".join(f"attribute_not_exists(#{subject})" for subject in get_args(Subject))


class DynamoPolicies:
    """An item per account that wants anything, in the index of lists; an attribute for each subject."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def wish(self, account: str, subject: Subject) -> dict[str, Any]:
        item = self._table.get(_key(account)) or {}
        return json.loads(item.get(subject, "{}"))

    def set_wish(self, account: str, subject: Subject, told: Mapping[str, Any]) -> None:
        key = _key(account)
        if told:
            change = f"SET #{subject} = :told, #account = :account, #{LISTED_IN} = :list, #{LISTED_AT} = :account"
            self._table.update(key, change, {"told": json.dumps(dict(told)), "account": account, "list": _LIST})
            return
        with suppress(RefusedError):
            self._table.update(key, f"REMOVE #{subject}", {}, f"attribute_exists(#{KEY})")
            # Unless somebody wants something meanwhile.
            with suppress(Conflict):
                self._table.delete_if(key, {}, _NOTHING_LEFT)

    def accounts(self) -> Sequence[str]:
        return [entry[LISTED_AT] for entry in self._table.query(LISTING, f"#{LISTED_IN} = :list", {"list": _LIST})]


def _key(account: str) -> str:
    return f"policy/{account}"
