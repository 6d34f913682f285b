"""What an account has beside its clusters: tokens, wishes, and what it wants gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, Protocol

Scope = Literal["ingest", "read", "control", "admin"]
"""May send messages; may see what happened; may ask a cluster to close; may look after tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token as kept: its secret only as SHA-256."""

    key_id: str
    secret_sha256: str
    account: str
    scopes: frozenset[Scope]
    name: str
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None


class Tokens(Protocol):
    def add(self, row: TokenRow) -> None:
        """Raises Taken if the key id exists."""
        ...

    def find(self, key_id: str) -> TokenRow:
        """Revoked and expired ones too, but a store may forget a token 30 days after it expired. Raises Missing."""
        ...

    def revoke(self, key_id: str, at: float) -> None:
        """Quiet if it was revoked before (the first time stands). Raises Missing."""
        ...

    def list(self, account: str) -> Sequence[TokenRow]:
        """All of an account's tokens, oldest first; ties by key id."""
        ...

    def forget(self, account: str, until: float) -> None:
        """Delete the account's tokens that were made until then: nobody knows them any more."""
        ...


class Policies(Protocol):
    """What an account wants of this place."""

    def retention(self, account: str) -> dict[str, int]:
        """Table or roll-up to the days that its rows are kept; what is not in it is kept for ever."""
        ...

    def set_retention(self, account: str, days: Mapping[str, int]) -> None:
        """In place of all that was set before; with none, as if nothing ever was. ValueError for less than a day."""
        ...

    def accounts(self) -> Sequence[str]:
        """Those that want anything, by name. What was just set may be missing for a moment."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    account: str
    cluster: str | None
    """UUID; None: the whole account, with all that was received until `asked_at`, and a little after."""
    asked_at: float
    by: str
    swept_through: date | None = None
    """Sealed days up to this one are known to hold nothing of it; None as long as nobody looked."""


class Deletions(Protocol):
    """What somebody wants gone, until all of it is."""

    def ask(self, deletion: Deletion) -> None:
        """Write it down. Quiet if it was asked before: of a cluster the first time stands, of an account the latest,
        and all of its days are to be looked at anew: the name may have been used again meanwhile.
        """
        ...

    def pending(self, account: str | None = None) -> Sequence[Deletion]:
        """What is not done yet, of an account or of all, in no promised order. What was just asked may be missing for a
        moment.
        """
        ...

    def swept(self, deletion: Deletion, day: date) -> None:
        """Sealed days up to `day` hold nothing of it. Quiet if it is done, or was asked again since."""
        ...

    def done(self, deletion: Deletion) -> None:
        """Nothing is left of it, and it need not be known any more. Quiet if that was said before; one that was asked
        again since stays.
        """
        ...
