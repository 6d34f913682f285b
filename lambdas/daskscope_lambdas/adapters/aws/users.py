"""Users on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.aws.table import Item, Table
from daskscope_lambdas.ports import Membership, Missing
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_ACCOUNTS = "peopled"


class DynamoUsers:
    """An item per name that was ever claimed, two per membership: an item stands in one list only, and this is in that
    of the account and in that of the person. Both come and go together, and the first alone says what they are. And
    one per account, for the list of accounts.
    """

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def claim(self, user: str, at: float) -> None:
        self._table.put_new({KEY: f"user/{user}", "claimed_at": at})

    def is_claimed(self, user: str) -> bool:
        return self._table.get(f"user/{user}") is not None

    def put(self, membership: Membership) -> None:
        account, user = membership.account, membership.user
        said = {"account": account, "user": user, "role": membership.role, "added_by": membership.added_by}
        member = {KEY: _member(account, user), LISTED_IN: f"members/{account}", LISTED_AT: user, **said}
        joined = {KEY: _joined(account, user), LISTED_IN: f"joined/{user}", LISTED_AT: account}
        # What stands in an index is the same each time, so that it is written once.
        self._table.put({KEY: _peopled(account), LISTED_IN: _ACCOUNTS, LISTED_AT: account})
        self._table.put_all(member | {"added_at": membership.added_at}, joined)

    def find(self, account: str, user: str) -> Membership:
        item = self._table.get(_member(account, user))
        if item is None:
            raise Missing(f"{user} is not in account {account}.")
        return _membership(item)

    def remove(self, account: str, user: str) -> None:
        self._table.delete_all(_member(account, user), _joined(account, user))

    def list(self, account: str) -> Sequence[Membership]:
        return self._known([_member(account, user) for user in self._listed(f"members/{account}")])

    def of(self, user: str) -> Sequence[Membership]:
        return self._known([_member(account, user) for account in self._listed(f"joined/{user}")])

    def accounts(self) -> Sequence[str]:
        return self._listed(_ACCOUNTS)

    def forget(self, account: str, until: float) -> None:
        members = self.list(account)
        for membership in members:
            if membership.added_at <= until:
                self.remove(account, membership.user)
        if all(membership.added_at <= until for membership in members):
            self._table.delete(_peopled(account))

    def _listed(self, where: str) -> list[str]:
        entries = self._table.query(LISTING, f"#{LISTED_IN} = :where", {"where": where})
        return [entry[LISTED_AT] for entry in entries]

    def _known(self, keys: Sequence[str]) -> Sequence[Membership]:
        return [_membership(item) for item in self._table.get_many(keys)]


def _peopled(account: str) -> str:
    return f"peopled/{account}"


def _member(account: str, user: str) -> str:
    return f"member/{account}/{user}"


def _joined(account: str, user: str) -> str:
    return f"joined/{user}/{account}"


def _membership(item: Item) -> Membership:
    return Membership(
        account=item["account"],
        user=item["user"],
        role=item["role"],
        added_at=float(item["added_at"]),
        added_by=item["added_by"],
    )
