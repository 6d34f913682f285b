"""What a lake has not: who asks for it is told so. What was asked to be deleted is known to the server alone: here it
is gone once its rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from daskscope_lambdas.adapters.direct.mapping import refuse, unknown
from daskscope_lambdas.ports import Buried, Deletion, Missing, TokenRow


class OwnToken:
    """The one token of this process, made for who opened the lake: what they may is for the store to say."""

    revoke = expire = forget = staticmethod(refuse)
    list = staticmethod(unknown("tokens"))

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
    claim = put = set_role = remove = forget = staticmethod(refuse)
    claimed = find = list = of = accounts = staticmethod(unknown("users"))


class NoTickets:
    add = forget = staticmethod(refuse)
    find = take = list = staticmethod(unknown("invitations"))


class NoReports:
    add = keep = set_private = remove = forget_numbers = staticmethod(refuse)
    get = page = accounts = staticmethod(unknown("reports"))


class NoReportFiles:
    offer = arrived = keep = discard = move = delete = address = tidy = staticmethod(refuse)


class NoDeletions:
    ask = swept = done = staticmethod(refuse)

    def pending(self, account: str | None = None) -> Sequence[Deletion]:  # noqa: ARG002  none of any
        return []


class NoPolicies:
    set_wish = staticmethod(refuse)
    wish = accounts = staticmethod(unknown("policy"))


class NoQueue:
    send = delete = staticmethod(refuse)


class NoDeadLetters:
    send_back = staticmethod(refuse)

    def list(self) -> Iterator[Buried]:
        return iter(())

    def lasting(self) -> Iterator[str]:
        return iter(())
