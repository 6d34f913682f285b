"""What stands in a message is bounded, and every reader bounds it in the same way."""

from __future__ import annotations

from collections.abc import Sized
from numbers import Real
from typing import Any

from daskscope.collect.payloads import as_text

MAX_BYTES = 1 << 50
"""More than any process or machine has: with a sum of 8,000 such a message would be refused."""
MAX_WORKER_NAME = 100


def worker_name(value: object) -> str:
    """A worker's name as a text, cut where it is long, with a mark: Dask takes any value for one."""
    text = as_text(value)
    return text if len(text) <= MAX_WORKER_NAME else f"{text[: MAX_WORKER_NAME - 3]}..."


def whole(value: object, most: int) -> int:
    """A whole number of 0 to `most`; 0 for anything else."""
    return value if type(value) is int and 0 <= value <= most else 0


def n_bytes(value: object) -> int:
    """A size in whole bytes; 0 for what no process has."""
    return int(value) if isinstance(value, (int, float)) and 0 <= value <= MAX_BYTES else 0


def within(value: object, most: int) -> int | None:
    """Any number as a whole one, at most so far from 0; None for what is no finite number: a user's `sizeof` may say
    anything."""
    try:
        found = value if type(value) is int else _int(value) if isinstance(value, Real) else None
    except (ValueError, OverflowError):
        return None
    return None if found is None else max(-most, min(found, most))


def _int(number: Any) -> int:
    return int(number)


def n_items(value: object) -> int:
    """How many there are; 0 where there is nothing to count."""
    return len(value) if isinstance(value, Sized) else 0


def at_once(n_waiting: int, least: int, most: int) -> int:
    """How many of those that wait one read takes: `least`, or a twentieth of them, lest they become more and more;
    never over `most`."""
    return min(max(least, n_waiting // 20), most)
