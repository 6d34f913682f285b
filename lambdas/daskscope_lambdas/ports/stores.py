"""Time, objects, keys, and which days are sealed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Epoch seconds."""
        ...


class ObjectStore(Protocol):
    """Write-once objects under text keys (`a-z A-Z 0-9 / = . _ -`, no empty or dot segments; else ValueError).

    No key is another one's folder: where `a/b` is, `a` is not used (an adapter may refuse it with StoreError).
    """

    def put_new(self, key: str, body: bytes) -> None:
        """Keep `body` (may be empty) under `key`. Raises Taken if the key exists: of racing writers one wins."""
        ...

    def get(self, key: str) -> bytes:
        """Raises Missing."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Keys that start with `prefix`, as text and not as a folder, in key order; all of them, however many.

        Keys that come or go meanwhile may or may not be among them. ValueError for what no key can start with.
        """
        ...

    def delete(self, key: str) -> None:
        """Quiet if the key is not there."""
        ...


class Seals(Protocol):
    """Which days of the lake are sealed."""

    def boundary(self) -> date | None:
        """The last sealed day; None before the first."""
        ...

    def advance(self, expected: date | None, day: date) -> None:
        """Move the boundary from `expected` forward to `day`; ValueError if that is not later.

        Raises Conflict if the boundary is elsewhere: somebody else was faster.
        """
        ...


class Vault(Protocol):
    """Keeps one key per account. What it sealed can be opened only by it, with the same account and context."""

    def seal(self, account: str, plain: Mapping[str, bytes]) -> dict[str, bytes]:
        """AES-GCM ciphertext for each context and its text, different on each call; makes the account's key if there
        is none. However many they are, the key is asked for once, as in `open`.
        """
        ...

    def open(self, account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
        """The text for each context and its ciphertext.

        Raises Missing if the account has no key, StoreError if the key, a context or a ciphertext is wrong.
        """
        ...

    def forget(self, account: str) -> None:
        """Delete the account's key, for every process: what it sealed is gone for good. Quiet if there is none."""
        ...
