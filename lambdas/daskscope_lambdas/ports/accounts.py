"""What an account has beside its clusters: tokens, wishes, and what it wants gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Protocol

Scope = Literal["ingest", "read", "control", "report", "admin"]
"""May send messages; may see what happened; may ask a cluster to close; may keep reports here; may look after the
account: its users, tokens and wishes."""


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
    user: str | None = None
    """Whose it is: it acts in each account of theirs, within what they are there. None for one of a site, which is for
    its account alone and is nobody's."""
    kind: Literal["token", "session"] = "token"
    """`session`: a browser has it as its cookie."""
    parent: str | None = None
    """Key id of the token without which this one is not good, either."""
    used_on: date | None = None
    """The last UTC day on which it was used; None if it never was."""
    made_by: str | None = None
    """Of one of a site: the user who was given it. None for a person's own, and where an operator made it."""
    replaces: str | None = None
    """Key id of the one in whose place it was made."""


EXPIRED_KEPT_S = 30 * 86_400.0
"""How long a token is kept after it expired: whoever still uses it is told so."""


class Tokens(Protocol):
    def add(self, row: TokenRow) -> None:
        """Raises Taken if the key id exists."""
        ...

    def find(self, key_id: str) -> TokenRow:
        """Revoked and expired ones too, but a store may forget one EXPIRED_KEPT_S after it expired. Raises Missing."""
        ...

    def revoke(self, key_id: str, at: float) -> None:
        """Quiet if it was revoked before (the first time stands). Raises Missing."""
        ...

    def expire(self, key_id: str, at: float) -> None:
        """It is good until then, and no longer. Quiet if it expires sooner. Raises Missing."""
        ...

    def used(self, key_id: str, on: date) -> None:
        """Write down that it was used on that day; a day before the one known changes nothing. Raises Missing."""
        ...

    def list(self, account: str) -> Sequence[TokenRow]:
        """All of an account's tokens, sessions too, oldest first; ties by key id."""
        ...

    def forget(self, account: str, until: float) -> None:
        """Delete the account's tokens that were made until then: nobody knows them any more."""
        ...


Subject = Literal["retention", "reports", "idle"]
"""Days that rows are kept, by table; what of reports is allowed and how long they are kept; when idle clusters close.
What each tells is the business of the service of that subject."""


class Policies(Protocol):
    """What an account wants of this place."""

    def wish(self, account: str, subject: Subject) -> dict[str, Any]:
        """JSON; empty where nothing was ever said."""
        ...

    def set_wish(self, account: str, subject: Subject, told: Mapping[str, Any]) -> None:
        """In place of all that was said of it before; with nothing in it, as if nothing ever was."""
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
