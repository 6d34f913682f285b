"""Faults planted in our own code: any function of the plugin can be made to raise, found by looking through modules."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import random
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import daskscope

ELSEWHERE = {
    "admission",
    "analytics",
    "approval",
    "arguments",
    "cli",
    "client",
    "configuration",
    "connection",
    "depth",
    "discovery",
    "errors",
    "login",
    "members",
    "options",
    "parsing",
    "preload",
    "previews",
    "profile",
    "records",
    "registration",
    "rehearsal",
    "reports",
    "settings",
    "testing",
    "transfer",
}
"""Modules and packages that run where the user is, or before anything of ours has started. All others are planted."""


class Planted(Exception):  # noqa: N818  # what it is, and no mistake
    """What is raised, unless a test asks for another kind."""


class Mute(Exception):  # noqa: N818  # what it is, and no mistake
    """An error whose own text cannot be made."""

    def __str__(self) -> str:
        raise Planted("even its text")

    __repr__ = __str__


KINDS: tuple[type[BaseException], ...] = (Planted, MemoryError, RecursionError, Mute)


@dataclass
class Garden:
    """Where something is planted, and how often it came up."""

    targets: frozenset[str] = frozenset()
    kind: type[BaseException] = Planted
    share: float = 1.0
    n_raised: int = 0
    names: list[str] = field(default_factory=list[str])
    """Every function there is, as `module:qualified name`."""
    _random: random.Random = field(default_factory=lambda: random.Random(0))

    def pass_by(self, name: str) -> None:
        """Called before each function; raises where something is planted."""
        if name in self.targets and (self.share >= 1 or self._random.random() < self.share):
            self.n_raised += 1
            raise self.kind("planted in " + name)

    @contextmanager
    def planted(self, *targets: str, kind: type[BaseException] = Planted, share: float = 1.0) -> Generator[None]:
        self.targets, self.kind, self.share, self.n_raised = frozenset(targets), kind, share, 0
        try:
            yield
        finally:
            self.targets = frozenset()


def modules() -> list[ModuleType]:
    """All modules of which anything runs in a scheduler, worker or nanny, imported."""
    found: list[ModuleType] = []
    for place in pkgutil.iter_modules(daskscope.__path__):
        if place.name not in ELSEWHERE:
            module = importlib.import_module(f"{daskscope.__name__}.{place.name}")
            found.append(module)
            for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
                found.append(importlib.import_module(f"{module.__name__}.{inner.name}"))
    return found


def short_name(function: Any) -> str:
    return f"{function.__module__.removeprefix(daskscope.__name__ + '.')}:{function.__qualname__}"


@contextmanager
def garden() -> Generator[Garden]:
    """Put a gate before every function and method of the plugin, in every module that knows it by name."""
    made, undo = Garden(), list[tuple[Any, str, Any]]()
    gates: dict[Any, Any] = {}
    ours = modules()
    everywhere = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == daskscope.__name__]
    for module in ours:
        for thing in list(vars(module).values()):
            if isinstance(thing, FunctionType) and thing.__module__ == module.__name__:
                gates[thing] = _gate(made, thing)
            elif inspect.isclass(thing) and thing.__module__ == module.__name__:
                undo += _fence(made, thing)
    for module in everywhere:
        for name, thing in list(vars(module).items()):
            if isinstance(thing, FunctionType) and thing in gates:
                undo.append((module, name, thing))
                setattr(module, name, gates[thing])
    try:
        yield made
    finally:
        for owner, name, before in reversed(undo):
            setattr(owner, name, before)


def _fence(made: Garden, kind: type[Any]) -> list[tuple[Any, str, Any]]:
    undo: list[tuple[Any, str, Any]] = []
    for name, thing in list(vars(kind).items()):
        gated: Any = None
        if isinstance(thing, FunctionType) and thing.__module__ == kind.__module__ and _is_written(thing):
            gated = _gate(made, thing)
        elif isinstance(thing, property) and thing.fget is not None:
            gated = property(_gate(made, thing.fget))
        elif isinstance(thing, (staticmethod, classmethod)):
            gated = type(thing)(_gate(made, thing.__func__))
        if gated is not None:
            undo.append((kind, name, thing))
            setattr(kind, name, gated)
    return undo


def _is_written(function: FunctionType) -> bool:
    """By somebody, and not by a dataclass."""
    return function.__code__.co_filename.endswith(".py")


def _gate(made: Garden, function: Any) -> Callable[..., Any]:
    name = short_name(function)
    made.names.append(name)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            made.pass_by(name)
            return await function(*args, **kwargs)

        return later

    @functools.wraps(function)
    def now(*args: Any, **kwargs: Any) -> Any:
        made.pass_by(name)
        return function(*args, **kwargs)

    return now
