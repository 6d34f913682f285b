"""What the services need from the world, in their words, and the errors they may meet. Standard library only.

Each port has one contract suite in tests/contract, run against every adapter.

StoreError                anything an adapter could not map to one of these; the cause is kept
├── Missing               no such key, row or token
├── Taken                 a write-once key exists already; what it holds is untouched
├── Gone                  the cluster was deleted, for good
└── Conflict              a conditional change found another state than it expected
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, Protocol

Scope = Literal["ingest", "read", "control", "admin"]
"""May send messages; may see what happened; may ask a cluster to close; may look after tokens."""

MAX_QUEUED_BYTES = 1 << 20
"""Longest body of the queue: SQS's own limit."""


class StoreError(Exception):
    """The root of what a port may raise."""


class Missing(StoreError):
    """What was asked for is not there."""


class Taken(StoreError):
    """A write-once key exists already."""


class Gone(StoreError):
    """It was deleted, and is not to come again."""


class Conflict(StoreError):
    """The state is not the one that the change expected."""


class Clock(Protocol):
    def now(self) -> float:
        """Epoch seconds."""
        ...


class ObjectStore(Protocol):
    """Write-once objects under text keys (`a-z A-Z 0-9 / = . _ -`, no empty or dot segments; else ValueError).

    No key is another one's folder: where `a/b` is, `a` is not used (an adapter may refuse it with StoreError).
    """

    def put_new(self, key: str, body: bytes) -> None:
        """Keep `body` (may be empty) under `key`. Raises Taken if the key exists: of racing writers one wins."""
        ...

    def get(self, key: str) -> bytes:
        """Raises Missing."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Keys that start with `prefix`, as text and not as a folder, in key order; all of them, however many.

        Keys that come or go meanwhile may or may not be among them. ValueError for what no key can start with.
        """
        ...

    def delete(self, key: str) -> None:
        """Quiet if the key is not there."""
        ...


class Queue(Protocol):
    """At least once, in no promised order."""

    def send(self, body: str) -> None:
        """Returns once `body` is durable: 1 to MAX_QUEUED_BYTES printable ASCII characters, else ValueError."""
        ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a message; `receipt` is good for `delete` until it is delivered again."""

    id: str
    receipt: str
    body: str
    receive_count: int


class QueueFeed(Protocol):
    """The queue's other end, for who plays SQS's event source mapping: the embedded server. AWS has its own."""

    def receive(self, limit: int, hidden_s: float) -> Sequence[Delivery]:
        """At most `limit` messages, oldest first, each hidden from other calls for `hidden_s` seconds.

        None waits here: an empty queue answers at once.
        """
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Done with these. A receipt that is no longer good is ignored."""
        ...

    def release(self, receipts: Sequence[str]) -> None:
        """Nobody works on these any more: `receive` gives them again at once. A receipt no longer good is ignored."""
        ...

    def bury(self, receipt: str, reason: str) -> None:
        """Move a message out of the queue to the dead letters, with why. A receipt no longer good is ignored."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Buried:
    """What the queue gave up on after its tries; `reason` and `buried_at` are None where it keeps neither."""

    body: str
    reason: str | None
    buried_at: float | None


class DeadLetters(Protocol):
    """Where the queue puts what it gave up on."""

    def list(self) -> Iterator[Buried]:
        """All of them, in no promised order. Those that come or go meanwhile may or may not be among them; others who
        ask meanwhile may not see them for some minutes.
        """
        ...

    def send_back(self, chosen: Callable[[str], bool]) -> int:
        """Put those whose body is `chosen` into the queue, with all its tries anew; returns how many.

        What dies in the queue meanwhile is left for the next time. Cut short, one may be in both places.
        """
        ...


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
    """Server's clock less the scheduler's; None keeps the one already known."""


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
    """Server's clock less the scheduler's when its newest message was sent; None if it never said."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    account: str
    cluster: str | None
    """UUID; None: the whole account, with all that was received until `asked_at`."""
    asked_at: float
    by: str
    swept_through: date | None = None
    """Sealed days up to this one are known to hold nothing of it; None as long as nobody looked."""


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
        """Take a message into the row if its (boot, seq) is newer than the row's. Else nothing changes but the
        identity, where it tells a newer one than the row's: so messages may come in any order.

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


class Deletions(Protocol):
    """What somebody wants gone, until all of it is."""

    def ask(self, deletion: Deletion) -> None:
        """Write it down. Quiet if it was asked before: the first time stands."""
        ...

    def pending(self, account: str | None = None) -> Sequence[Deletion]:
        """What is not done yet, of an account or of all, in no promised order. What was just asked may be missing for a
        moment.
        """
        ...

    def swept(self, deletion: Deletion, day: date) -> None:
        """Sealed days up to `day` hold nothing of it. Quiet if it is done."""
        ...

    def done(self, deletion: Deletion) -> None:
        """Nothing is left of it, and it need not be known any more. Quiet if that was said before."""
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


class Seals(Protocol):
    """Which days of the lake are sealed."""

    def boundary(self) -> date | None:
        """The last sealed day; None before the first."""
        ...

    def advance(self, expected: date | None, day: date) -> None:
        """Move the boundary from `expected` forward to `day`; ValueError if that is not later.

        Raises Conflict if the boundary is elsewhere: somebody else was faster.
        """
        ...


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


class Vault(Protocol):
    """Keeps one key per account. What it sealed can be opened only by it, with the same account and context."""

    def seal(self, account: str, plain: Mapping[str, bytes]) -> dict[str, bytes]:
        """AES-GCM ciphertext for each context and its text, different on each call; makes the account's key if there
        is none. However many they are, the key is asked for once, as in `open`.
        """
        ...

    def open(self, account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
        """The text for each context and its ciphertext.

        Raises Missing if the account has no key, StoreError if the key, a context or a ciphertext is wrong.
        """
        ...

    def forget(self, account: str) -> None:
        """Delete the account's key, for every process: what it sealed is gone for good. Quiet if there is none."""
        ...
