"""With messages that a server fails at while it takes others: it goes on with those, and gives up one in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from daskscope.buffer import Buffer

TRIES = 8
"""In vain in a row: then the next message has its turn. With the pauses between them, minutes."""
RETRY_S = 600.0
"""One that was passed over is tried again so often."""
GIVE_UP_S = 86_400.0
"""So long after the server first took another in its place."""


@dataclass(slots=True)
class _Trouble:
    n_tries: int = 0
    next_at: float = 0.0
    """Monotonic, as the next."""
    others_since: float | None = None
    """Since when the server takes others. None: it may be that it takes none at all."""


class Patience:
    """With the heads of a buffer; it knows as many messages as were tried in vain and wait."""

    def __init__(self, buffer: Buffer, monotonic: Callable[[], float]) -> None:
        self._buffer, self._monotonic = buffer, monotonic
        self._troubles: dict[str, _Trouble] = {}

    def failed(self, name: str, *, is_closing: bool) -> bool:
        """The head was tried in vain: it may have to wait for others, and before the end for what tells of the end.
        Whether it is to be given up."""
        now_s = self._monotonic()
        trouble = self._troubles.setdefault(name, _Trouble())
        trouble.n_tries += 1
        if trouble.others_since is not None:
            trouble.next_at = now_s + RETRY_S
            if now_s - trouble.others_since >= GIVE_UP_S:
                return True
        if is_closing or trouble.n_tries >= TRIES:
            self._buffer.pass_over(even_alone=trouble.others_since is not None and not is_closing)
        if is_closing:
            self._buffer.last_first()
        return False

    def settled(self, name: str, *, is_taken: bool, is_closing: bool) -> None:
        """What was the head is not to be sent again as it was; `is_taken`: the server has it. Before the end, what was
        passed over is tried once nothing else waits."""
        now_s = self._monotonic()
        self._troubles.pop(name, None)
        for trouble in self._troubles.values():
            if is_taken and trouble.others_since is None:
                trouble.others_since = now_s
        is_last_chance = is_closing and not self._buffer
        self._buffer.bring_back(lambda name: is_last_chance or self._troubles[name].next_at <= now_s)
