"""What the functions of one process share: settings, adapters, services; each made once, when first asked for.

A process is in one house, its own. Who asks a lake without a server (direct.py) enters another for the time of a call.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Generic, TypeVar

from daskscope_lambdas import wiring
from daskscope_lambdas.env import Env, read
from daskscope_lambdas.service.gate import Gate

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class House:
    """Where settings and adapters come from, and what was made of them. Not over a fork.

    `frank`: who asks is told why something failed, for no server's log tells it.
    """

    env: Callable[[], Env]
    adapters: Callable[[], wiring.Adapters]
    frank: bool = False
    made: dict[Callable[[], Any], Any] = field(default_factory=dict[Callable[[], Any], Any])


_OWN = House(lambda: read(), lambda: wiring.connect(env()))
_entered: ContextVar[House] = ContextVar("daskscope-house", default=_OWN)


@contextmanager
def entered(house: House) -> Generator[None]:
    """Within, everything is that house's. Threads that are started within are not in it."""
    token = _entered.set(house)
    try:
        yield
    finally:
        _entered.reset(token)


class once(Generic[T]):  # noqa: N801  a decorator
    """What `make` makes, once in each house."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        update_wrapper(self, make)

    def __call__(self) -> T:
        made = _entered.get().made
        if self._make not in made:
            made[self._make] = self._make()
        return made[self._make]

    def is_made(self) -> bool:
        return self._make in _entered.get().made

    def cache_clear(self) -> None:
        """As functools.cache has it: the next call makes it anew."""
        _entered.get().made.pop(self._make, None)


@once
def env() -> Env:
    return _entered.get().env()


@once
def adapters() -> wiring.Adapters:
    return _entered.get().adapters()


@once
def gate() -> Gate:
    return Gate(adapters().tokens, adapters().users, adapters().clock)


def is_frank() -> bool:
    return _entered.get().frank


def memory_bytes() -> int | None:
    """Of this process, where Lambda says it."""
    told_mib = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
    return int(told_mib) << 20 if told_mib else None


def start(*ports: wiring.Port) -> None:
    """When a handler is imported. In Lambda that is the phase in which a function has a whole core to itself:

    logs become structured lines there, and what stands behind `ports`, which nearly every event needs, is made before
    the first one comes. `daskscope serve` has plain lines of its own, and opens the adapters when it knows its data
    folder. A function of somebody else's, which asks a lake without a server, is left as it is.
    """
    if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ or _entered.get() is not _OWN:
        return
    if not logging.getLogger("daskscope").handlers:
        from aws_lambda_powertools import Logger

        # Named like its service, so it is the parent of every `daskscope.*` logger. Lambda reads a line's level only
        # where its time is as in RFC 3339.
        Logger(service="daskscope", use_rfc3339=True)
        logging.getLogger("botocore").setLevel(logging.WARNING)  # it tells each cold start where its credentials are
    adapters().warm(ports)
