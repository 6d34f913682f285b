"""Dead letters of both kinds as one: what `write` put aside, and what the queue gave up on. Seen, and sent back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal

from daskscope.errors import BadMessage
from daskscope_lambdas.ports import DeadLetters, Queue
from daskscope_lambdas.service.exclusions import Exclusions
from daskscope_lambdas.service.letters import Letters, Sender, letter_id, sender_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """One letter. Of what it gave up on itself, SQS knows no reason: there the log of `write` has it."""

    id: str
    place: Literal["store", "queue"]
    reason: str | None
    died_at: float | None
    """Epoch seconds."""
    sender: Sender


def dead(letters: Letters, dead_letters: DeadLetters) -> Iterator[Dead]:
    """All of them. Raises StoreError."""
    for name, keys in letters.listed():
        try:
            letter = letters.read(keys)
        except BadMessage as error:
            yield Dead(id=name, place="store", reason=str(error), died_at=None, sender=Sender())
            continue
        if letter:
            sender = sender_of(letter.body)
            yield Dead(id=name, place="store", reason=letter.reason, died_at=letter.died_at, sender=sender)
    for each in dead_letters.list():
        name, sender = letter_id(each.body), sender_of(each.body)
        yield Dead(id=name, place="queue", reason=each.reason, died_at=each.buried_at, sender=sender)


@dataclass(slots=True)
class Replayed:
    sent: int = 0
    left: int = 0
    """Those that were not asked for, and those that could not be sent."""
    problems: list[str] = field(default_factory=list[str])
    """A sentence for each of the latter."""
    unknown: set[str] = field(default_factory=set[str])
    """Ids that no letter has."""


def replay(
    letters: Letters,
    dead_letters: DeadLetters,
    queue: Queue,
    ids: Collection[str] | None = None,
    exclusions: Exclusions | None = None,
) -> Replayed:
    """Send letters back into the queue: those with `ids`, or all. Raises StoreError.

    `exclusions` tells what was deleted (without, nothing was): no letter of that is sent, or answers would show it
    again.

    Each is in the queue before it goes here: cut short, one may be sent once more, and readers drop the repeat. One
    that is still not fit for the lake comes back as the same letter.
    """
    told = Replayed(unknown=set(ids or ()))

    def chosen(name: str) -> bool:
        told.left += 1
        told.unknown.discard(name)
        return ids is None or name in ids

    def deleted(name: str, body: str) -> bool:
        if exclusions is None or not _was_deleted(sender_of(body), exclusions):
            return False
        told.problems.append(f"{name}: its cluster or account was deleted.")
        return True

    for name, keys in letters.listed():
        if chosen(name):
            try:
                letter = letters.read(keys)
                if letter and deleted(name, letter.body):
                    continue
                if letter:
                    queue.send(letter.body)
            except ValueError as error:  # no letter, or nothing that the queue takes: somebody else put it there
                told.problems.append(f"{name}: {error}")
                continue
            letters.take_away(keys)
            told.sent += letter is not None
            told.left -= 1
    moved = dead_letters.send_back(lambda body: chosen(name := letter_id(body)) and not deleted(name, body))
    told.sent += moved
    told.left -= moved
    return told


def _was_deleted(sender: Sender, exclusions: Exclusions) -> bool:
    if sender.account is None or sender.cluster is None:
        return False
    without = exclusions.among([(sender.account, sender.cluster)]).get(sender.account)
    if without is None:
        return False
    until = without.until.timestamp() if without.until else 0.0
    return sender.cluster in without.clusters or (sender.received_at or 0.0) <= until
