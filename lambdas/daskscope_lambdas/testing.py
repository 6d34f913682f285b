"""For tests of whatever stands on the ports."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from daskscope_lambdas.ports import StoreError, Vault

T = TypeVar("T")


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self, at: float = 1_795_248_000.0) -> None:
        self.at = at
        """Epoch seconds; by default 2026-11-21T08:00:00Z."""

    def now(self) -> float:
        """Epoch seconds."""
        return self.at

    def advance(self, seconds: float) -> None:
        """Let time pass; negative sets the clock back."""
        self.at += seconds


def race(runners: int, work: Callable[[int], T]) -> list[T | StoreError]:
    """Call `work(0)` to `work(runners - 1)` at once, each in its thread: what each returned, or its StoreError."""
    line = threading.Barrier(runners)

    def run(number: int) -> T | StoreError:
        line.wait()
        try:
            return work(number)
        except StoreError as error:
            return error

    with ThreadPoolExecutor(runners) as pool:
        return list(pool.map(run, range(runners)))


def seal(vault: Vault, account: str, plain: bytes, context: str) -> bytes:
    """One text alone; see Vault.seal."""
    return vault.seal(account, {context: plain})[context]


def unseal(vault: Vault, account: str, sealed: bytes, context: str) -> bytes:
    """One ciphertext alone; see Vault.open."""
    return vault.open(account, {context: sealed})[context]
