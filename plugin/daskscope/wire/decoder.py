"""msgspec's decoders of dataclasses, each made once and by one thread: two that make one at the same time can end the
process (a fault in the extension's own memory, as of msgspec 0.22), as the first posts to a server would.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import msgspec

T = TypeVar("T")

_made: dict[type[Any], msgspec.json.Decoder[Any]] = {}
_making = threading.Lock()


def decode_json(plain: bytes, kind: type[T]) -> T:
    """Raises what `msgspec.json.decode` does (needs `msgspec`, part of `daskscope[serve]`)."""
    decoder = _made.get(kind) or _make(kind)
    return decoder.decode(plain)


def _make(kind: type[T]) -> msgspec.json.Decoder[T]:
    import msgspec

    with _making:
        # A decoder is whole when it is made; one for a type within another shares what was made for that.
        return _made.get(kind) or _made.setdefault(kind, msgspec.json.Decoder(kind))
