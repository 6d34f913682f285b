"""What a lake has not. What was asked to be deleted is known to the server alone: here it is gone once its rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daskscope_lambdas.adapters.direct.mapping import refuse
from daskscope_lambdas.ports import Buried, Deletion, Missing, TokenRow


class OwnToken:
    """The one token of this process, made for who opened the lake: what they may is for the store to say."""

    revoke = list = forget = staticmethod(refuse)

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


class NoDeletions:
    ask = swept = done = staticmethod(refuse)

    def pending(self, account: str | None = None) -> Sequence[Deletion]:  # noqa: ARG002  none of any
        return []


class NoPolicies:
    set_retention = staticmethod(refuse)

    def retention(self, account: str) -> dict[str, int]:  # noqa: ARG002  none of any
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
