"""YAML that a person wrote: read strictly, with errors that name the place.

Numbers are decimal and as they are read by people: YAML 1.1 takes `1:30` for 90, `0x10` for 16, `1_0` for 10 and `1e3`
for a text. What a file is not read for is refused: aliases (a few of them make a file of gigabytes), tags, merges.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from daskscope.errors import SettingsError

MAX_BYTES = 1 << 18
"""Of a file: the prices of all of AWS's instance types take a tenth of it."""
DEAREST = 1e6
"""Per hour, of anything."""
_SHOWN_CHARS = 200
"""Of a value that an error shows."""

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Names:
    """What names look like, and a phrase that says so."""

    pattern: re.Pattern[str]
    allowed: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands, for its errors."""

    file: str
    path: str

    def at(self, name: str) -> Place:
        return Place(self.file, f"{self.path}.{name}" if self.path else name)

    def error(self, value: object, allowed: str) -> SettingsError:
        return SettingsError(f"{self.file}: {self.path or 'the file'}", _shown(value), allowed)

    def mapping(self, given: object, names: tuple[str, ...]) -> dict[str, Any]:
        """A mapping of some of `names`."""
        if not isinstance(given, dict):
            raise self.error(given, f"a mapping of {', '.join(names)}")
        for name in given:
            if name not in names:
                raise self.error(name, ", ".join(names))
        return given

    def each(self, given: object, names: Names, read: Callable[[Place, Any], V]) -> dict[str, V]:
        """A mapping whose names are free within `names`."""
        if not isinstance(given, dict):
            raise self.error(given, "a mapping")
        for name in given:
            if not isinstance(name, str) or not names.pattern.fullmatch(name):
                raise self.error(name, names.allowed)
        return {name: read(self.at(name), value) for name, value in given.items()}

    def prices(self, given: object, names: Names) -> dict[str, float]:
        return self.each(given, names, Place.price)

    def price(self, given: object) -> float:
        return self._number(given, DEAREST, "a price per hour, a number from 0 on")

    def factor(self, given: object) -> float:
        return self._number(given, 1.0, "a factor from 0 to 1")

    def _number(self, given: object, most: float, allowed: str) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= most or math.isnan(given):
            raise self.error(given, allowed)
        return float(given)


@dataclass(frozen=True, slots=True)
class _Cut:
    """The beginning of a value, as errors show it."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _shown(value: object) -> object:
    text = repr(value)
    return value if len(text) <= _SHOWN_CHARS else _Cut(f"{text[:_SHOWN_CHARS]}...")


_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_NOT_TAKEN = {_INT, _FLOAT, "tag:yaml.org,2002:merge"}


class _Loader(yaml.SafeLoader):
    """Besides, YAML's own takes the last of equal names without a word."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own, which add_implicit_resolver adds to
        first: [each for each in known if each[0] not in _NOT_TAKEN]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(f"an alias stands there{event.start_mark}")
        if getattr(event, "tag", None) is not None:
            raise yaml.YAMLError(f"a tag stands there{event.start_mark}")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(names) < len(node.value):
            raise yaml.MarkedYAMLError(None, None, "a name that is no text", node.start_mark)
        if twice := sorted(name for name, n in Counter(names).items() if n > 1):
            raise yaml.MarkedYAMLError(None, None, f"{twice[0]} stands there twice", node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(_INT, re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"(?:[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+.0123456789"),
)


def parsed(text: bytes, name: str) -> Any:
    if len(text) > MAX_BYTES:
        raise SettingsError(f"{name}: the file", f"{len(text):,} bytes", f"at most {MAX_BYTES:,} bytes")
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"{name}: the file", " ".join(str(error).split())[:300], "YAML") from error
