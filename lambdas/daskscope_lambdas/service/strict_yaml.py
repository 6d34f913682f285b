"""YAML that a person wrote: read strictly, with errors that name the place."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from daskscope.errors import SettingsError

MAX_BYTES = 1 << 18
"""Of a file: the prices of all of AWS's instance types take a tenth of it."""
DEAREST = 1e6
"""Per hour, of anything."""

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands, for its errors."""

    file: str
    path: str

    def at(self, name: str) -> Place:
        return Place(self.file, f"{self.path}.{name}" if self.path else name)

    def error(self, value: object, allowed: str) -> SettingsError:
        return SettingsError(f"{self.file}: {self.path or 'the file'}", value, allowed)

    def mapping(self, given: object, names: tuple[str, ...]) -> dict[str, Any]:
        """A mapping of some of `names`."""
        if not isinstance(given, dict):
            raise self.error(given, f"a mapping of {', '.join(names)}")
        for name in given:
            if name not in names:
                raise self.error(name, ", ".join(names))
        return given

    def each(self, given: object, read: Callable[[Place, Any], V]) -> dict[str, V]:
        """A mapping whose names are free."""
        if not isinstance(given, dict):
            raise self.error(given, "a mapping")
        for name in given:
            if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 64:
                raise self.error(name, "a name of 1 to 64 printable characters")
        return {name: read(self.at(name), value) for name, value in given.items()}

    def prices(self, given: object) -> dict[str, float]:
        return self.each(given, Place.price)

    def price(self, given: object) -> float:
        return self._number(given, DEAREST, "a price per hour, a number from 0 on")

    def factor(self, given: object) -> float:
        return self._number(given, 1.0, "a factor from 0 to 1")

    def _number(self, given: object, most: float, allowed: str) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= most or math.isnan(given):
            raise self.error(given, allowed)
        return float(given)


class _Loader(yaml.SafeLoader):
    """YAML's own takes the last of equal names without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]} stands there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def parsed(text: bytes, name: str) -> Any:
    if len(text) > MAX_BYTES:
        raise SettingsError(f"{name}: the file", f"{len(text):,} bytes", f"at most {MAX_BYTES:,} bytes")
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"{name}: the file", " ".join(str(error).split())[:300], "YAML") from error
