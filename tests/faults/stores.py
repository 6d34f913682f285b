"""Stores that fail: at random, before or after the effect, or all of them at once. For any adapter of any port."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields, replace
from random import Random
from threading import Lock
from typing import Any, Literal, TypeVar

from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.wiring import Adapters

Harm = Literal["", "before", "after"]
"""What becomes of a call: nothing, it fails and nothing is done, it is done and its caller does not learn of it."""

World = TypeVar("World", bound=Adapters)

_NO_STORES = ("clock", "lake_root", "warm", "close")
_RETRIED = ("objects", "seals", "feed")


class Trouble:
    """Decides which calls fail. `share` of them (0 to 1) do, and all while `out`; counts them. For many threads."""

    def __init__(self, seed: int, share: float = 0.0) -> None:
        self.share, self.out = share, False
        self.calls = self.failed = 0
        self._random = Random(seed)
        self._turn = Lock()

    def strike(self) -> Harm:
        with self._turn:
            self.calls += 1
            if not self.out and self._random.random() >= self.share:
                return ""
            self.failed += 1
            # A store that is out does nothing at all.
            return "before" if self.out or self._random.random() < 0.5 else "after"


class Failing:
    """An adapter behind `trouble`."""

    def __init__(self, adapter: Any, trouble: Trouble, tries: int = 1) -> None:
        self._adapter, self._trouble, self._tries = adapter, trouble, tries

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._adapter, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            for _ in range(self._tries):
                harm = self._trouble.strike()
                if harm != "before":
                    answer = found(*args, **options)
                    if not harm:
                        return answer
            raise StoreError(f"{name}: failed {self._tries} times")

        return call


def failing(world: World, trouble: Trouble) -> World:
    """The same world with each of its adapters behind `trouble`.

    What `write` and `compact` use is tried three times, as AWS's own client does; the rest once.
    """
    stores = [field.name for field in fields(world) if field.name not in _NO_STORES]
    behind = {name: Failing(getattr(world, name), trouble, 3 if name in _RETRIED else 1) for name in stores}
    return replace(world, **behind)


@contextmanager
def opened(world: World) -> Generator[World]:
    """Closed when it is left."""
    try:
        yield world
    finally:
        world.close()
