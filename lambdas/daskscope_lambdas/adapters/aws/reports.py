"""Reports on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from daskscope_lambdas.adapters.arguments import check_limit
from daskscope_lambdas.adapters.aws.table import Item, RefusedError, Table, Value
from daskscope_lambdas.adapters.cursors import HIGHEST
from daskscope_lambdas.ports import Missing, ReportDraft, ReportRow
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_ACCOUNTS = "reporters"
_TEXTS = ("account", "link", "filename", "key_id")
_MAY_BE = ("title", "user")
_TRUTHS = ("private", "user_claimed")
_TOGETHER = 100
"""Reports that are asked for at a time, at most."""


class DynamoReports:
    """An item per report, and one per account with the last number given out."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def add(self, draft: ReportDraft) -> ReportRow:
        # What stands in an index is the same each time, so that it is written once.
        listed: dict[str, Value] = {LISTED_IN: _ACCOUNTS, LISTED_AT: draft.account}
        row = ReportRow(**asdict(draft), id=self._table.count_up(_numbers(draft.account), "last", listed))
        self._table.put_new(_item(row))
        return row

    def get(self, account: str, id: int) -> ReportRow:
        item = self._table.get(_key(account, id))
        if item is None:
            raise _missing(account, id)
        return _report(item)

    def keep(self, account: str, id: int, at: float) -> ReportRow:
        return self._set(account, id, "#kept_at = if_not_exists(#kept_at, :value)", at)

    def set_private(self, account: str, id: int, private: bool) -> ReportRow:
        return self._set(account, id, "#private = :value", int(private))

    def _set(self, account: str, id: int, change: str, value: Value) -> ReportRow:
        try:
            known = f"attribute_exists(#{KEY})"
            return _report(self._table.update(_key(account, id), f"SET {change}", {"value": value}, known))
        except RefusedError as error:
            raise _missing(account, id) from error

    def remove(self, account: str, id: int) -> None:
        self._table.delete(_key(account, id))

    def page(
        self, account: str, limit: int, before: int | None = None, *, oldest_first: bool = False
    ) -> Sequence[ReportRow]:
        check_limit(limit)
        condition, values = f"#{LISTED_IN} = :account", {"account": _list(account)}
        if before is not None:
            condition += f" AND #{LISTED_AT} {'>' if oldest_first else '<'} :before"
            values["before"] = _place(before)
        together = min(limit, _TOGETHER)
        entries = self._table.query(LISTING, condition, values, backwards=not oldest_first, limit=together)
        return list(islice(self._there(entries, together), limit))

    def _there(self, entries: Iterator[Item], together: int) -> Iterator[ReportRow]:
        """The index is a moment late: what it still names may be gone, and then the next one fills its place."""
        while keys := [entry[KEY] for entry in islice(entries, together)]:
            yield from map(_report, self._table.get_many(keys))

    def accounts(self) -> Sequence[str]:
        return [entry[LISTED_AT] for entry in self._table.query(LISTING, f"#{LISTED_IN} = :list", {"list": _ACCOUNTS})]

    def forget_numbers(self, account: str) -> None:
        if not next(self._table.query(LISTING, f"#{LISTED_IN} = :account", {"account": _list(account)}), None):
            self._table.delete(_numbers(account))


def _key(account: str, id: int) -> str:
    return f"report/{account}/{id}"


def _numbers(account: str) -> str:
    return f"reporter/{account}"


def _list(account: str) -> str:
    return f"reports/{account}"


def _place(id: int) -> str:
    """Text that sorts like the numbers."""
    return f"{min(max(id, 0), HIGHEST):016x}"


def _missing(account: str, id: int) -> Missing:
    return Missing(f"No report {id} in account {account}.")


def _item(row: ReportRow) -> dict[str, Value]:
    told = asdict(row)
    item: dict[str, Value] = {name: told[name] for name in (*_TEXTS, "id", "size_bytes", "created_at")}
    item |= {name: told[name] for name in (*_MAY_BE, "kept_at") if told[name] is not None}
    item |= {name: int(told[name]) for name in _TRUTHS}
    return item | {KEY: _key(row.account, row.id), LISTED_IN: _list(row.account), LISTED_AT: _place(row.id)}


def _report(item: Item) -> ReportRow:
    values: dict[str, Any] = {name: item[name] for name in _TEXTS}
    values |= {name: item.get(name) for name in _MAY_BE}
    values |= {name: bool(int(item[name])) for name in _TRUTHS}
    values |= {name: int(item[name]) for name in ("id", "size_bytes")}
    kept_at = float(item["kept_at"]) if "kept_at" in item else None
    return ReportRow(created_at=float(item["created_at"]), kept_at=kept_at, **values)
