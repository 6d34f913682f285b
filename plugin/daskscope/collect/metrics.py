"""Fine performance metrics: which of the running totals that Dask keeps in a dict have changed.

Dask only adds entries to such a dict, so that the order of its values stays; comparing them in order costs a tenth of
looking each up by its key. Keys are `(context, activity, unit)`, `(context, prefix, activity, unit)`, or the name of
one of the oldest metrics. What has another key, a name that is no short text or a value that is no finite number may be
a user's own: it is left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from itertools import islice
from typing import Any

MAX_NAME = 200
"""Characters of a part of a key."""
MAX_VALUE = 1e300
"""As far from 0 as a server takes a value."""
_MAX_WHOLE = 1 << 53
"""Beyond it a float is no exact integer."""


Entry = tuple[str, str, str, str, float]
"""One running total: context, prefix, activity, unit and value, as `wire.Metrics` names them."""


class Ledger:
    """What was told of one dict."""

    __slots__ = ("_left_out", "_limit", "_n_over", "_told")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._told: list[Any] = []
        self._left_out: set[int] = set()
        self._n_over = 0

    def forget(self) -> None:
        """Take everything as changed."""
        self._told = []

    def changed(self, totals: Mapping[Any, Any], lost: Counter[str]) -> list[Entry]:
        """Entries that changed since the last call, of the first `limit` of the dict."""
        values = [*islice(totals.values(), self._limit)]
        told = self._told
        if values == told:
            return []
        if len(values) < len(told):  # no Dask that we know removes any
            told = []
        self._told = values
        if (n_over := len(totals) - self._limit) > self._n_over:
            lost["metrics"] += n_over - self._n_over
            self._n_over = n_over
        entries: list[Entry] = []
        for n, (key, value) in enumerate(zip(totals, values, strict=False)):
            if n < len(told) and value == told[n]:
                continue
            entry = _entry(key, value)
            if entry is not None:
                entries.append(entry)
            elif n not in self._left_out:
                self._left_out.add(n)
                lost["metrics"] += 1
        return entries


class Totals:
    """The scheduler's own running totals, without contexts that somebody else tells; O(new entries + those told)."""

    def __init__(self, limit: int) -> None:
        self._ledger = Ledger(limit)
        self._keys: list[Any] = []
        self._n_seen = 0

    def forget(self) -> None:
        self._ledger.forget()

    def changed(self, totals: Mapping[Any, Any], lost: Counter[str], but: Set[str]) -> list[Entry]:
        """Entries that changed since the last call, without those of contexts in `but`."""
        fresh = [*islice(totals, self._n_seen, None)]
        self._n_seen += len(fresh)
        self._keys += [key for key in fresh if not (isinstance(key, tuple) and key and key[0] in but)]
        return self._ledger.changed({key: totals[key] for key in self._keys if key in totals}, lost)


def number(value: Any) -> float | None:
    """A number within MAX_VALUE of 0, whole ones as integers; None for anything else."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not abs(found) <= MAX_VALUE:  # nor is what is no number
        return None
    return int(found) if found.is_integer() and abs(found) < _MAX_WHOLE else found


def _entry(key: Any, value: Any) -> Entry | None:
    found = number(value)
    if found is None:
        return None
    parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if not isinstance(part, str) or len(part) > MAX_NAME:
            return None
    if len(parts) == 4:
        context, prefix, activity, unit = parts
    elif len(parts) == 3:
        (context, activity, unit), prefix = parts, ""
    elif len(parts) == 1:  # `latency`, `tick-duration`, ...; but `transfer-bandwidth` is a sum of rates
        (context,), prefix, activity = parts, "", ""
        unit = "seconds" if context == "latency" or context.endswith("-duration") else ""
    else:
        return None
    return context, prefix, activity, unit, round(found, 6) if unit == "seconds" else found
