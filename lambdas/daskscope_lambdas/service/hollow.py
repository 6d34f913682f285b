"""How many things a message may become is told from its bytes before they are decoded.

16 MiB of `{},` are five million objects: most of a minute and a gigabyte, whatever is said of them afterwards.
"""

from __future__ import annotations

import re

from daskscope.errors import TooLarge
from daskscope_lambdas.service.check import MAX_ENTRIES

MAX_OBJECTS = MAX_ENTRIES + 50_000
"""Braces that open. Each entry has one at most; an environment has a second, the message's parts are few."""
MAX_LISTS = 2 * MAX_ENTRIES
"""Brackets that open. A task group, which counts once, has two."""
MAX_ITEMS = 8 * MAX_ENTRIES
"""Commas. A row has up to nineteen columns; all that 10,000 workers, 10,000 groups, 20,000 computations and 20,000
failed tasks may say has some 1.5 million."""
MAX_TEXTS = 4 * MAX_ENTRIES
"""Texts with such characters in them, of which only an odd body has many: it bounds the cost of leaving them out."""

_KEPT = b'"{[,'
_LEFT_OUT = bytes(byte for byte in range(256) if byte not in _KEPT)
_TEXT = re.compile(rb'"[^"]*"')


def refuse_hollow(plain: bytes) -> None:
    """Raises TooLarge for the JSON of more objects, lists or items than any message has. Texts may hold whatever they
    like: log lines and code are full of braces."""
    if _over(plain):
        # Only now are texts told from the rest: a usual message is done with three passes in C.
        bare = plain.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _LEFT_OUT).replace(b'""', b"")
        if bare.count(b'"') > 2 * MAX_TEXTS or _over(_TEXT.sub(b"", bare)):
            raise TooLarge(
                f"The message has more than {MAX_OBJECTS} objects, {MAX_LISTS} lists or {MAX_ITEMS} items: "
                "send less at a time."
            )


def _over(found: bytes) -> bool:
    return found.count(b"{") > MAX_OBJECTS or found.count(b"[") > MAX_LISTS or found.count(b",") > MAX_ITEMS
