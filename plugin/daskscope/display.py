"""How a setting's value is shown: on terminals and in reports that go around, so without what may be a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from daskscope.options import OPTIONS, Option
from daskscope.parsing import patterns, token, url
from daskscope.privacy.scrubber import Scrubber
from daskscope.privacy.values import MASK
from daskscope.settings import TOKENS, restored

HIDDEN = "(set)"
"""Stands for a token, and for what may be one, or have a password in it: an address that is none, and the value of a
key that is no option."""


class Display:
    """Knows the tokens that are set, and masks whether or not `analytics.scrub.secrets` is on."""

    def __init__(self, in_force: Mapping[str, Any]) -> None:
        """`in_force`: keys as `daskscope.token` to values."""
        said = {option.field: in_force.get(f"daskscope.{option.key}") for option in OPTIONS if option.field in TOKENS}
        tokens = {name: value for name, value in said.items() if isinstance(value, str)}
        self._scrubber = Scrubber(replace(restored({}), **tokens))

    def of(self, option: Option, value: Any, *, is_usable: bool) -> Any:
        """What is shown in place of an option's value."""
        if value is not None and (option.parse is token or (option.parse is url and not is_usable)):
            return HIDDEN
        if value and option.parse is patterns:  # one may be a secret that is to be masked
            return f"({len(value)} set)" if is_usable else HIDDEN
        return self._masked(value)

    def _masked(self, value: Any) -> Any:
        """With secrets masked; of what is no JSON, the type's name."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            return self._scrubber.text(value)
        if isinstance(value, (list, tuple)):
            return [*map(self._masked, cast("list[Any]", value))]
        if not isinstance(value, Mapping):
            return f"<{type(value).__qualname__}>"
        return {self._masked(name): self._named(name, item) for name, item in cast("Mapping[Any, Any]", value).items()}

    def _named(self, name: Any, value: Any) -> Any:
        """As a tag is sent."""
        return MASK if isinstance(name, str) and self._scrubber.hides_tag(name, str(value)) else self._masked(value)
