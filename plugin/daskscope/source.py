"""Who answers calls of the HTTP API, and what an answer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

MOST_SAID = 2_000
"""Characters of what a server said that stand in an error."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: an HTTP status, its reason where there is one, headers (names in lower case) and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    reason: str = ""


class Source(Protocol):
    """Who answers calls of the HTTP API: a server, or a lake that is read in this process."""

    @property
    def name(self) -> str:
        """What it is called in errors: an address, without a secret in it."""
        ...

    @property
    def pages(self) -> str | None:
        """The address under which its pages are, None if it has none."""
        ...

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Answer:
        """The answer at a path under `/api/v1`. Raises ServerUnreachable, ServerError."""
        ...

    def clean(self, text: object) -> str:
        """What it said, for a terminal: on one line, without the token."""
        ...

    def close(self) -> None: ...
