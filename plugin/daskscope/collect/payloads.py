"""What users and Dask put into events, as JSON: bounded, and without running code of theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar, cast

T = TypeVar("T")

MAX_DETAIL = 4_096
"""Characters of texts that are taken out of one payload, and of its JSON; a longer one is cut and says so."""
MAX_NAME = 200
"""Characters of a name or a task's key."""
MAX_ITEMS = 50
"""Items of one list or mapping."""
MAX_ALL_ITEMS = 500
"""Items of all lists and mappings of one payload."""
MAX_DEPTH = 5

_TYPE = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(slots=True)
class _Room:
    """What one payload may still take up."""

    n_items: int = MAX_ALL_ITEMS
    n_characters: int = MAX_DETAIL

    def text(self, text: str) -> str:
        kept = text[: self.n_characters]
        self.n_characters -= len(kept)
        n_cut = len(text) - len(kept)
        return f"{kept}... ({n_cut} more characters)" if n_cut else kept

    def items(self, items: Iterable[T]) -> Iterator[T]:
        for item in islice(items, min(MAX_ITEMS, self.n_items)):
            if not self.n_items:  # those before it were lists themselves
                break
            self.n_items -= 1
            yield item


def as_json(value: object) -> str:
    """JSON text of a payload. Where it is long, its texts and lists are cut and say by how much; it stays JSON, for
    secrets are told by the names that they stand under."""
    n_items, n_characters, n_rounds = MAX_ALL_ITEMS, MAX_DETAIL, 0
    while n_characters > 0:
        text = json.dumps(plain(value, _Room(n_items, n_characters)), ensure_ascii=False)
        over = len(text) - MAX_DETAIL
        if over <= 0:
            return text
        n_rounds += 1
        if n_rounds <= 2 and over < n_characters // 2:  # marks and quotes take room, too
            n_characters -= over
        else:
            n_items, n_characters = n_items // 2, n_characters // 2
    return json.dumps(f"<{type(value).__qualname__[:MAX_NAME]}>")


def plain(value: object, room: _Room, depth: int = 0) -> Any:
    """JSON types only. Of anything else the type's name is taken and never its `repr`, which is the user's code."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return room.text(value)
    if isinstance(value, int):
        return value if value.bit_length() < 64 else f"<an integer of {value.bit_length()} bits>"
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has no infinity and no NaN
    if depth >= MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        pairs = [(as_name(key), plain(item, room, depth + 1)) for key, item in room.items(value.items())]
        left = {} if len(pairs) == len(value) else {"...": f"{len(value) - len(pairs)} more"}
        return {**dict(pairs), **left}
    if isinstance(value, (list, tuple, Set)):
        items = [plain(item, room, depth + 1) for item in room.items(value)]
        return items if len(items) == len(value) else [*items, f"... {len(value) - len(items)} more"]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    return f"<{type(value).__qualname__}>"


def as_name(value: object) -> str:
    """A text for what may be a name, an action or a topic."""
    return _cut(value if isinstance(value, str) else str(plain(value, _Room(), MAX_DEPTH - 2)))


def as_text(value: object) -> str:
    """Texts and numbers as they are; of anything else the type's name, for its `str` is the user's code."""
    return str(value) if type(value) in (str, int, float) else f"<{type(value).__qualname__}>"


def as_key(key: object) -> str:
    """A task's key as Dask writes it: a text, or a tuple's; of what is none, the type's name."""
    return _cut(str(key) if is_plain_key(key) else as_text(key))


def is_plain_key(value: object) -> bool:
    """Whether a key is of texts and numbers alone, whose `str` and `repr` are Python's own."""
    if type(value) is tuple:
        return all(map(is_plain_key, cast("tuple[object, ...]", value)))
    return value is None or type(value) in (str, bytes, int, float, bool)


def exception_type(text: str) -> str:
    """The type's name, which the text of an exception begins with."""
    found = _TYPE.match(text)
    return found[0] if found else "Exception"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}..."
