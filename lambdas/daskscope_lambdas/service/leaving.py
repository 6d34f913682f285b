"""Which code is about to go: noted by `compact` (unused.py), looked at before code is kept (code.py)."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date

from daskscope_lambdas.ports import Missing, ObjectStore
from daskscope_query import layout


def leaving(objects: ObjectStore, account: str) -> dict[date, list[str]]:
    """By the day on which nothing named them any more, keys of code, as they were called then."""
    found: dict[date, list[str]] = {}
    for mark in list(objects.list(layout.unused_prefix(account))):
        if day := layout.day_in(mark):
            with suppress(Missing):
                found[day] = json.loads(objects.get(mark))
    return found
