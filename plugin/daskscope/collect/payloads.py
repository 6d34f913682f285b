"""What users and Dask put into events, as JSON: bounded, and without running code of theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from itertools import islice
from typing import Any

MAX_DETAIL = 4_096
"""Characters of one event's JSON; a longer one is cut and says so."""
MAX_NAME = 200
"""Characters of a name or a task's key."""
MAX_ITEMS = 50
MAX_DEPTH = 5

_TYPE = re.compile(r"[A-Za-z_][\w.]*")


def as_json(value: object) -> str:
    """JSON text of a payload, cut where it is long."""
    text = json.dumps(plain(value), ensure_ascii=False)
    if len(text) <= MAX_DETAIL:
        return text
    return json.dumps({"cut_characters": len(text) - MAX_DETAIL, "start": text[:MAX_DETAIL]}, ensure_ascii=False)


def plain(value: object, depth: int = 0) -> Any:
    """JSON types only. Of anything else the type's name is taken and never its `repr`, which is the user's code."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 64 else f"<an integer of {value.bit_length()} bits>"
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has no infinity and no NaN
    if depth >= MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        pairs = {as_name(key): plain(item, depth + 1) for key, item in islice(value.items(), MAX_ITEMS)}
        return pairs if len(value) <= MAX_ITEMS else {**pairs, "...": f"{len(value) - MAX_ITEMS} more"}
    if isinstance(value, (list, tuple, Set)):
        items = [plain(item, depth + 1) for item in islice(value, MAX_ITEMS)]
        return items if len(value) <= MAX_ITEMS else [*items, f"... {len(value) - MAX_ITEMS} more"]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    return f"<{type(value).__qualname__}>"


def as_name(value: object) -> str:
    """A text for what may be a name, an action or a topic."""
    return _cut(value if isinstance(value, str) else str(plain(value, MAX_DEPTH - 2)))


def as_key(key: object) -> str:
    """A task's key as Dask writes it: a text, or a tuple's."""
    return _cut(str(key))


def exception_type(text: str) -> str:
    """The type's name, which the text of an exception begins with."""
    found = _TYPE.match(text)
    return found[0] if found else "Exception"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}..."
