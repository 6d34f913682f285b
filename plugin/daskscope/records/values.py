"""What the value of a key is, by the key's name: a time, a duration, bytes, dollars; and how people read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dask.utils import format_bytes, format_time

SHOWN = 10
"""Rows that a repr shows; it says how many more there are."""
CELL = 60
"""Characters of a cell that a repr shows; a longer one ends in `…`."""

SIZES = frozenset(
    {"memory", "memory_limit", "peak_memory", "held_bytes", "bytes", "managed", "unmanaged", "spilled", "gpu_memory"}
    | {"size"}
)
"""Bytes."""
TIMES = frozenset(
    {"created", "stopped", "start", "stop", "first", "last", "time", "last_seen", "expires", "revoked"}
    | {
        "joined",
        "left",
        "enqueued",
        "idle_since",
        "asked_at",
        "expected_by",
        "expires_at",
        "created_at",
        "added",
        "day",
        "week",
    }
)
"""Moments, in ISO 8601 of UTC; a `day` or `week` (its Monday) is a date alone."""
DURATIONS = frozenset({"duration", "median_duration", "p95_duration", "idle_timeout"})
"""Seconds that something took by the clock. Sums of work (`seconds`, `thread_seconds`, `thread_hours`) are numbers:
they are multiplied by prices and divided by each other."""
DOLLARS = frozenset({"dollars", "idle", "failed", "cost_median", "median_cost"})
SHARES = frozenset({"share", "shares", "measured_share"})
"""Of 1; shown in percent."""
WHOLE = frozenset({"url"})
"""Never cut: a part of it leads nowhere."""


def printable(text: str) -> str:
    """A task's exception may hold escape sequences: none of them reaches the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def printable_lines(text: str) -> str:
    """The same of a text of several lines."""
    return "\n".join(map(printable, text.expandtabs(4).split("\n")))


def shown(name: str, value: Any, limit: int | None = None) -> str:
    """A record's value as text for people, cut to `limit` characters; `name` is its key, which tells its unit."""
    text = printable(_text(name, value))
    if limit is None or len(text) <= limit or name in WHOLE:
        return text
    return text[: limit - 1] + "…"


class Figure(str):
    """A number that is text for people already."""

    __slots__ = ()


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if is_number(value):
        return _number(name, value)
    if name in TIMES and isinstance(value, str):
        return value.partition(".")[0].replace("T", " ")
    if isinstance(value, Mapping):
        return _mapping(name, value)
    if isinstance(value, (list, tuple)):
        items: Sequence[Any] = value
        return ", ".join(_text(name, item) for item in items)
    return str(value)


def _number(name: str, value: float) -> str:
    if name in SIZES and isinstance(value, int):
        return format_bytes(value)
    if name in DURATIONS and 0 <= value < float("inf"):
        return format_time(value)
    if name in DOLLARS:
        return "<$0.01" if 0 < value < 0.01 else f"${value:,.2f}"
    if name in SHARES:
        return f"{100 * value:.0f} %"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)


def _mapping(name: str, pairs: Mapping[Any, Any]) -> str:
    if name == "cost" and "dollars" in pairs:
        dollars = pairs["dollars"]
        text = _text("dollars", dollars) if is_number(dollars) else ""
        if (currency := pairs.get("currency") or "USD") != "USD" and text:
            text = f"{text.replace('$', '')} {currency}"
        return text if not text or text.startswith("<") or pairs.get("quality") == "measured" else f"~{text}"
    # Its keys are task states and actions, and no fields: `memory` is a count here.
    return ", ".join(f"{key}={_within(item)}" for key, item in pairs.items())


def _within(item: Any) -> str:
    """A value that stands among others: what it is of, and that it is none, has to be seen."""
    if item is None:
        return "none"
    return f"({_text('', item)})" if isinstance(item, Mapping) else _text("", item)
