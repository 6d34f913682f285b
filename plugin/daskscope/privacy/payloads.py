"""Leads a scrubber through a payload that was JSON: names are its keys, and what stands under one is masked whole."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Protocol, cast

from daskscope.privacy.values import MASK


class Texts(Protocol):
    """What a scrubber is asked."""

    def text(self, text: str) -> str: ...
    def is_clean(self, texts: Iterable[str | None]) -> bool: ...
    def hides(self, name: str, value: object) -> bool: ...
    def hides_tag(self, name: str, value: str) -> bool: ...
    def hides_item(self, name: str, value: str) -> bool: ...
    def hides_number(self, name: str, number: float) -> bool: ...
    def may_hold(self, text: str) -> bool: ...


class Payload:
    """Replaces what is a secret; anything but JSON's types stays."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def masked(self, value: Any, key: str = "") -> Any:
        """`value`, which stands under `key`, if under any, with its secrets masked."""
        if isinstance(value, str):
            return MASK if key and self._texts.hides_item(key, value) else self._texts.text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return MASK if self._texts.hides_number(key, value) else value
        if isinstance(value, list):
            return self._list(cast("list[Any]", value), key)
        return self._mapping(cast("dict[str, Any]", value), key) if isinstance(value, dict) else value

    def _is_hidden(self, key: str, item: Any, above: str) -> bool:
        """`above`: the key that the mapping itself is under, as in `{"passwords": {"ada": "x"}}`."""
        if item is None or isinstance(item, bool):
            return False
        return self._texts.hides(key, item) or bool(
            above and isinstance(item, str) and self._texts.hides_item(above, item)
        )

    def _list(self, items: list[Any], key: str) -> list[Any]:
        """Of `["--password", "x"]` and `["password", "x"]` the second is under the first."""
        found = [self.masked(item, key) for item in items]
        for place, (name, item) in enumerate(pairwise(items), 1):
            is_named = isinstance(name, str) and (name.startswith("-") or len(items) == 2)
            if is_named and not isinstance(item, (bool, type(None))) and self._is_value(name, item):
                found[place] = MASK
        return found

    def _is_value(self, name: str, item: Any) -> bool:
        """Whether it is what a name stands before, and not the next name."""
        is_name = isinstance(item, str) and (item.startswith("-") or self._texts.hides(item, ""))
        return not is_name and self._texts.hides(name, item)

    def _mapping(self, mapping: dict[str, Any], key: str) -> dict[str, Any]:
        # {"name": "DB_PASSWORD", "value": "x"}, as containers are configured
        named = next(
            (mapping[each] for each in ("name", "Name", "key", "Key") if isinstance(mapping.get(each), str)), ""
        )
        hidden = {"value", "Value"} if self._texts.hides(named, "") else set[str]()
        if "username" in mapping or "secret" in mapping:  # else a task's
            hidden.add("key")
        return {
            self._texts.text(each): MASK
            if each in hidden or self._is_hidden(each, item, key)
            else self.masked(item, each)
            for each, item in mapping.items()
        }
