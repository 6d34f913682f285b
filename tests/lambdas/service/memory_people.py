"""Tokens and memberships in memory, which count what they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from daskscope_lambdas.ports import Membership, Missing, Role, TokenRow


class MemoryTokens:
    def __init__(self) -> None:
        self.rows: dict[str, TokenRow] = {}
        self.finds = 0
        self.uses: list[tuple[str, date]] = []

    def add(self, row: TokenRow) -> None:
        self.rows[row.key_id] = row

    def find(self, key_id: str) -> TokenRow:
        self.finds += 1
        if key_id not in self.rows:
            raise Missing(key_id)
        return self.rows[key_id]

    def revoke(self, key_id: str, at: float) -> None:
        self.rows[key_id] = replace(self.rows[key_id], revoked_at=at)

    def expire(self, key_id: str, at: float) -> None:
        self.rows[key_id] = replace(self.rows[key_id], expires_at=at)

    def used(self, key_id: str, on: date) -> None:
        self.uses.append((key_id, on))
        self.rows[key_id] = replace(self.rows[key_id], used_on=on)

    def list(self, account: str) -> Sequence[TokenRow]:
        return [row for row in self.rows.values() if row.account == account]

    def forget(self, account: str, until: float) -> None:
        self.rows = {k: row for k, row in self.rows.items() if row.account != account or row.created_at > until}


class MemoryUsers:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Membership] = {}
        self.names: set[str] = set()
        self.finds = 0

    def claim(self, user: str, at: float) -> None:
        self.names.add(user)

    def claimed(self, user: str) -> str | None:
        return user if user in self.names else None

    def put(self, membership: Membership) -> None:
        self.rows[membership.account, membership.user] = membership

    def find(self, account: str, user: str) -> Membership:
        self.finds += 1
        if (account, user) not in self.rows:
            raise Missing(user)
        return self.rows[account, user]

    def set_role(self, account: str, user: str, role: Role, *, last_too: bool = False) -> None:
        self.rows[account, user] = replace(self.find(account, user), role=role)

    def remove(self, account: str, user: str, *, last_too: bool = False) -> None:
        self.rows.pop((account, user), None)

    def list(self, account: str) -> Sequence[Membership]:
        return [row for row in self.rows.values() if row.account == account]

    def of(self, user: str) -> Sequence[Membership]:
        return [row for row in self.rows.values() if row.user == user]

    def accounts(self) -> Sequence[str]:
        return sorted({account for account, _ in self.rows})

    def forget(self, account: str, until: float) -> None:
        self.rows = {k: row for k, row in self.rows.items() if row.account != account or row.added_at > until}
