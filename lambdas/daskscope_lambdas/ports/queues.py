"""What is taken in and not kept yet, and what could not be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

MAX_QUEUED_BYTES = 1 << 20
"""Longest body of the queue: SQS's own limit."""


class Queue(Protocol):
    """At least once, in no promised order."""

    def send(self, body: str) -> None:
        """Returns once `body` is durable: 1 to MAX_QUEUED_BYTES printable ASCII characters, else ValueError."""
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Done with these deliveries, as QueueFeed and event sources number them. One no longer good is ignored."""
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

    def lasting(self) -> Iterator[str]:
        """Bodies of those that stay until somebody sends them back, however long that takes."""
        ...

    def send_back(self, chosen: Callable[[str], bool]) -> int:
        """Put those whose body is `chosen` into the queue, with all its tries anew; returns how many.

        What dies in the queue meanwhile is left for the next time. Cut short, one may be in both places.
        """
        ...
