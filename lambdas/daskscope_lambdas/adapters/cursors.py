"""Cursors of the list of clusters, one text for all worlds: where the page before ended, `<started_at>_<id>`."""

from __future__ import annotations

import re

HIGHEST = 2**63 - 1
"""No cluster's number is above it."""

_CURSOR = re.compile(r"([-+.e0-9]+)_([0-9]+)")


def cursor_at(started_at: float, number: int) -> str:
    """The cursor of what follows that cluster."""
    return f"{started_at!r}_{number}"


def position(cursor: str) -> tuple[float, int]:
    """What `cursor_at` was given. Raises ValueError for a text that it cannot have made."""
    found = _CURSOR.fullmatch(cursor)
    try:
        if found and repr(started_at := float(found[1])) == found[1] and (number := int(found[2])) <= HIGHEST:
            return started_at, number
    except ValueError:
        pass
    raise ValueError(f"{cursor!r} is no cursor of this list: take the one that came with the page before.")
