"""Users on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.aws.again import tries
from daskscope_lambdas.adapters.aws.table import Item, Table, Value
from daskscope_lambdas.ports import Conflict, Membership, Missing, Role, StoreError
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
        self._table.put_new({KEY: _name(user), "user": user, "claimed_at": at})

    def claimed(self, user: str) -> str | None:
        item = self._table.get(_name(user))
        return item["user"] if item else None

    def put(self, membership: Membership) -> None:
        account, user = membership.account, membership.user
        said = {"account": account, "user": user, "role": membership.role, "added_by": membership.added_by}
        member = {KEY: _member(account, user), LISTED_IN: f"members/{account}", LISTED_AT: user, **said}
        joined = {KEY: _joined(account, user), LISTED_IN: f"joined/{user}", LISTED_AT: account}
        # What stands in an index is the same each time, so that it is written once.
        self._table.put({KEY: _peopled(account), LISTED_IN: _ACCOUNTS, LISTED_AT: account})
        self._table.put_all(member | {"added_at": membership.added_at}, joined)

    def set_role(self, account: str, user: str, role: Role, *, last_too: bool = False) -> None:
        for _ in tries():
            item = self._table.get(_member(account, user))
            if item is None:
                raise Missing(f"{user} is not in account {account}.")
            held = self._held(item, last_too=last_too or role == "admin")
            changed = {**item, "role": role, "added_at": float(item["added_at"])}
            with suppress(Conflict):
                return self._table.write_while(held, put=changed)
        raise StoreError(f"{user} of account {account} was changed by others, however often it was tried.")

    def find(self, account: str, user: str) -> Membership:
        item = self._table.get(_member(account, user))
        if item is None:
            raise Missing(f"{user} is not in account {account}.")
        return _membership(item)

    def remove(self, account: str, user: str, *, last_too: bool = False) -> None:
        keys = _member(account, user), _joined(account, user)
        if last_too:
            return self._table.delete_all(*keys)
        for _ in tries():
            item = self._table.get(keys[0])
            if item is None:
                return None
            held = self._held(item, last_too=False)
            with suppress(Conflict):
                return self._table.write_while(held, delete=keys)
        raise StoreError(f"{user} of account {account} was changed by others, however often it was tried.")

    def _held(self, item: Item, *, last_too: bool) -> Mapping[str, Mapping[str, Value]]:
        """What is to be so when a membership is changed: itself, and of the last admin but one, another one."""
        account, user = item["account"], item["user"]
        held = {_member(account, user): {"role": item["role"]}}
        if item["role"] == "admin" and not last_too:
            others = [each.user for each in self.list(account) if each.role == "admin" and each.user != user]
            if not others:
                raise Conflict(f"{user} is the last admin of account {account}.")
            held[_member(account, others[0])] = {"role": "admin"}
        return held

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
                self.remove(account, membership.user, last_too=True)
        if all(membership.added_at <= until for membership in members):
            self._table.delete(_peopled(account))

    def _listed(self, where: str) -> list[str]:
        entries = self._table.query(LISTING, f"#{LISTED_IN} = :where", {"where": where})
        return [entry[LISTED_AT] for entry in entries]

    def _known(self, keys: Sequence[str]) -> Sequence[Membership]:
        return [_membership(item) for item in self._table.get_many(keys)]


def _name(user: str) -> str:
    """The case does not count."""
    return f"user/{user.lower()}"


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
