"""What a lake has not. What was asked to be deleted is known to the server alone: here it is gone once its rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from daskscope_lambdas.adapters.arguments import check_limit
from daskscope_lambdas.adapters.direct.mapping import refuse
from daskscope_lambdas.ports import Buried, Deletion, Membership, Missing, ReportRow, Subject, Ticket, TokenRow


class OwnToken:
    """The one token of this process, made for who opened the lake: what they may is for the store to say."""

    revoke = expire = list = forget = staticmethod(refuse)

    def __init__(self) -> None:
        self._rows: dict[str, TokenRow] = {}

    def add(self, row: TokenRow) -> None:
        if self._rows:
            refuse()
        self._rows[row.key_id] = row

    def find(self, key_id: str) -> TokenRow:
        if key_id not in self._rows:
            raise Missing(f"No token has key id {key_id}.")
        return self._rows[key_id]

    def used(self, key_id: str, on: date) -> None:
        """Nobody asks for it: the token ends with the process."""


class NoUsers:
    claim = put = remove = forget = staticmethod(refuse)

    def is_claimed(self, user: str) -> bool:  # noqa: ARG002  nobody is known
        return False

    def find(self, account: str, user: str) -> Membership:
        raise Missing(f"{user} is not known to be in account {account}: a lake does not tell who is.")

    def list(self, account: str) -> Sequence[Membership]:  # noqa: ARG002  none of any
        return []

    def of(self, user: str) -> Sequence[Membership]:  # noqa: ARG002  none of anybody
        return []

    def accounts(self) -> Sequence[str]:
        return []


class NoTickets:
    add = forget = staticmethod(refuse)

    def find(self, key: str) -> Ticket:  # noqa: ARG002  there is none
        raise Missing("No such ticket.")

    take = find


class NoReports:
    add = keep = set_private = remove = forget_numbers = staticmethod(refuse)

    def get(self, account: str, id: int) -> ReportRow:
        raise Missing(f"No report {id} in account {account}: a lake has none, the server that writes it may.")

    def page(
        self,
        account: str,  # noqa: ARG002  none of any
        limit: int,
        before: int | None = None,  # noqa: ARG002
        *,
        oldest_first: bool = False,  # noqa: ARG002
    ) -> Sequence[ReportRow]:
        check_limit(limit)
        return []

    def accounts(self) -> Sequence[str]:
        return []


class NoReportFiles:
    offer = arrived = keep = discard = move = delete = address = tidy = staticmethod(refuse)


class NoDeletions:
    ask = swept = done = staticmethod(refuse)

    def pending(self, account: str | None = None) -> Sequence[Deletion]:  # noqa: ARG002  none of any
        return []


class NoPolicies:
    set_wish = staticmethod(refuse)

    def wish(self, account: str, subject: Subject) -> dict[str, Any]:  # noqa: ARG002  none of any
        return {}

    def accounts(self) -> Sequence[str]:
        return []


class NoQueue:
    send = delete = staticmethod(refuse)


class NoDeadLetters:
    send_back = staticmethod(refuse)

    def list(self) -> Iterator[Buried]:
        return iter(())

    def lasting(self) -> Iterator[str]:
        return iter(())
