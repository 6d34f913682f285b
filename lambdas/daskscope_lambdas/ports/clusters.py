"""The registry of clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What one message changes in the registry."""

    boot: str
    seq: int
    received_at: float
    made_at: float
    next_s: float
    phase: Literal["running", "closed"]
    reason: str | None
    identity: dict[str, Any] | None
    """None keeps the one already known. JSON types only, as in `totals` and `lost`."""
    totals: dict[str, Any]
    lost: dict[str, int]
    uptime_s: float = 0.0
    skew_s: float | None = None
    """Server's clock less the scheduler's; None tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """The registry's row of a cluster: everything that live and list views show."""

    account: str
    id: int
    uuid: str
    started_at: float
    """Epoch seconds of the scheduler's start, as first told; lists sort by it. Never changes."""
    first_received_at: float
    last_received_at: float
    boot: str = ""
    seq: int = -1
    made_at: float = 0.0
    next_s: float = 0.0
    phase: Literal["running", "closed"] = "running"
    reason: str | None = None
    identity: dict[str, Any] = field(default_factory=dict[str, Any])
    totals: dict[str, Any] = field(default_factory=dict[str, Any])
    lost: dict[str, int] = field(default_factory=dict[str, int])
    uptime_s: float = 0.0
    """Of the boot, by the scheduler's monotonic clock, at its newest message."""
    skew_s: float | None = None
    """Server's clock less the scheduler's, as the newest message gave it that told any; None if none did."""
    skew_of: str = ""
    """Boot and seq (`identity_key`) of that message."""
    identity_of: str = ""
    """Boot and seq (`identity_key`) of the message that told the identity; empty as long as none did."""
    close_asked_at: float | None = None
    """Epoch seconds at which somebody last asked it to close; None if nobody did."""
    close_asked_by: str | None = None
    close_asked_reason: str | None = None


def identity_key(boot: str, seq: int) -> str:
    """Sorts as messages do."""
    return f"{boot}-{seq:012d}"


def start_of_day(at: float) -> float:
    """Epoch seconds of the midnight in UTC before `at`."""
    return at // 86_400.0 * 86_400.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of a beat, and what waits for the cluster."""

    newer: bool
    """Whether the row has taken it in."""
    close_asked_at: float | None
    """As in the row."""


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """`cursor` continues the list, None at its end."""

    rows: Sequence[ClusterRow]
    cursor: str | None


class Clusters(Protocol):
    """The registry of clusters."""

    def enrol(self, account: str, uuid: str, started_at: float, received_at: float) -> ClusterRow:
        """The cluster's row, made with the account's next number if it is new.

        One UUID gets one number, also when many callers race; numbers start at 1, gaps are allowed.
        A UUID belongs to the account that enrolled it first: another account's call raises Taken. Raises Gone for a
        cluster that was deleted.
        """
        ...

    def beat(self, account: str, uuid: str, beat: Beat) -> Heard:
        """Take a message into the row if its (boot, seq) is newer than the row's. Else nothing changes but identity
        and skew, where it tells newer ones than the row's: so messages may come in any order.

        `last_received_at` never goes back, a known identity is never lost, and what was asked of the cluster stays. An
        older message moves `last_received_at` only into a later day: there the lake has it, and is to be asked.
        Raises Missing, also for a cluster of another account, and Gone for one that was deleted.
        """
        ...

    def ask_close(self, account: str, uuid: str, by: str, reason: str | None, at: float) -> bool:
        """Write down that the cluster is asked to close; the last who asks stands. False, and nothing changed, if it
        has closed. Raises Missing, also for a cluster of another account.
        """
        ...

    def get(self, account: str, id: int) -> ClusterRow:
        """Raises Missing, also for a number of another account."""
        ...

    def find(self, account: str, uuid: str) -> ClusterRow:
        """Raises Missing, also for a cluster of another account."""
        ...

    def page(self, account: str, since: float | None, limit: int, cursor: str | None) -> ClusterPage:
        """Clusters last heard of at or after `since` (None: all), latest `started_at` first, then highest number.

        At most `limit` (1 or more) rows. A page may be short or empty although a cursor follows. Clusters that are
        enrolled meanwhile may be missing, no other is left out or told twice. A cursor that this port did not make
        raises ValueError.
        """
        ...

    def get_many(self, account: str, uuids: Sequence[str]) -> list[ClusterRow]:
        """Those of them that are there and the account's, in the order of `uuids`."""
        ...

    def changed(
        self, account: str, since_at: float, last_id: int = 0, running: Collection[str] = ()
    ) -> Iterator[ClusterRow]:
        """The account's clusters last heard of at or after `since_at`, in no promised order, none twice.

        It is for who knows all that was before: its highest number (0: nothing is known) and who was `running` (UUIDs).
        Who has a higher number is new whenever it was heard of: a clock may have been set back.
        Of those that had ended by then, only who lives again is told for sure. What is enrolled or heard of meanwhile
        may be missing.
        """
        ...

    def accounts(self) -> set[str]:
        """Those that have clusters, or had. What was just enrolled may be missing for a moment, and of what an earlier
        release enrolled all that nothing was added to since.
        """
        ...

    def living(self) -> Iterator[ClusterRow]:
        """Clusters of all accounts that neither closed nor were retired, in no promised order.

        One that is enrolled, closes or comes back meanwhile may or may not be among them.
        """
        ...

    def retire(self, row: ClusterRow) -> bool:
        """Leave the cluster out of `living` until its next beat; all else of it stays. Raises Missing.

        False, and nothing changed, if a beat came since `row` was read, or if it is out already: of many callers one
        gets True.
        """
        ...

    def drop(self, row: ClusterRow) -> bool:
        """Delete the row and its number, as if it had never come: its next message enrols it anew. Quiet if it is gone.

        False, and nothing changed, if a beat came since `row` was read.
        """
        ...

    def forget(self, account: str, uuid: str, at: float) -> None:
        """Delete the row and its number. That it was deleted is kept: `enrol` and `beat` raise Gone from now on.

        Quiet if it was deleted before. Raises Missing, also for a cluster of another account.
        """
        ...

    def deleted(self, uuids: Iterable[str]) -> set[str]:
        """Those of them that were deleted."""
        ...

    def forget_numbers(self, account: str) -> None:
        """An account without clusters starts anew at 1. Quiet, and nothing changed, if it has any."""
        ...
