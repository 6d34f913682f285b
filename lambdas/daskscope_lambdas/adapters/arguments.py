"""What the adapters of every world refuse, in the same words: ValueError."""

from __future__ import annotations

import re
from datetime import date

from daskscope_lambdas.ports import MAX_QUEUED_BYTES

_LINK = re.compile(r"[0-9A-Za-z]{22}")


def check_body(body: str) -> None:
    """What no queue takes (see ports.Queue)."""
    # As much in characters as in bytes once it is ASCII, and SQS refuses control characters, NUL above all.
    if not body:
        raise ValueError("A message without a body does not fit the queue.")
    if len(body) > MAX_QUEUED_BYTES:
        raise ValueError(f"A message of {len(body)} characters is too long for the queue: at most {MAX_QUEUED_BYTES}.")
    if not (body.isascii() and body.isprintable()):
        raise ValueError("A message in the queue is printable ASCII: encode what is not.")


def check_limit(limit: int) -> None:
    """How many are wanted at most."""
    if limit < 1:
        raise ValueError(f"A limit is 1 or more, not {limit}.")


def check_forward(expected: date | None, day: date) -> None:
    """How the boundary may move (see ports.Seals)."""
    if expected is not None and day <= expected:
        raise ValueError(f"The boundary moves forward only: {day} is not after {expected}.")


def check_link(link: str) -> None:
    """What a report lies under (see ports.ReportDraft)."""
    if not _LINK.fullmatch(link):
        raise ValueError(f"{link!r} is no link of a report: those are 22 characters of 0-9 A-Z a-z.")
