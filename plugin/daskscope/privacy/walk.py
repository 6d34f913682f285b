"""Leads a scrubber through every text of a message, by the types of its fields: one that is added is scrubbed, too."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from daskscope import wire
from daskscope.privacy.payloads import Payload, Texts
from daskscope.privacy.values import MASK

LEFT_ALONE = {
    "Message.cluster": "hex digits of Dask's own id: what messages are told apart by",
    "Message.boot": "hex digits, as well",
    "Message.lost": "our own words to counts",
    "Identity.scheduler_id": "Dask's own, and what the cluster is known by",
    "Code.hash": "of the scrubbed text",
    "Code.text": "scrubbed before, for that hash",
    "Frame.code": "that hash",
    "Span.id": "made by Dask; groups and metrics name it",
    "Span.parent": "a span's id",
    "Groups.span": "a span's id",
    "Metrics.span": "a span's id",
    "Groups.states": "Dask's task states to counts",
    "Groups.action_us": "Dask's words for what workers do to microseconds",
    "Totals.action_us": "the same",
    "Logs.role": "our own word",
}
"""Fields with texts that are not scrubbed, and why: to mask a part of an id would tear a cluster apart."""
JSON_FIELDS = frozenset({"Event.detail", "Span.collections"})
"""JSON as a text: what stands under a secret's name is masked whole, at any depth."""

_PLAIN = (int, float, bool, NoneType)


class Walk:
    """Replaces what changes and leaves the rest as it is: readers keep parts of a message for later ones."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def message(self, message: wire.Message) -> None:
        for name, is_json in text_fields(wire.Message):
            setattr(message, name, self._value(getattr(message, name), is_json))

    def _value(self, value: Any, is_json: bool = False) -> Any:
        if value is None or isinstance(value, (int, float)):
            return value
        if isinstance(value, str):
            return self._json(value) if is_json else self._texts.text(value)
        if isinstance(value, list):
            return self._list(cast("list[Any]", value))
        if isinstance(value, dict):
            return self._mapping(cast("dict[Any, Any]", value))
        return self._object(value)

    def _object(self, value: Any) -> Any:
        if not is_dataclass(value):
            return MASK  # no kind of a message's: nothing is known of it
        changes = {
            name: new
            for name, is_json in text_fields(type(value))
            if (new := self._value(old := getattr(value, name), is_json)) is not old
        }
        return replace(value, **changes) if changes and not isinstance(value, type) else value

    def _list(self, values: list[Any]) -> list[Any]:
        if not values or (isinstance(values[0], (str, NoneType)) and self._known(values)):
            return values
        found = [self._value(value) for value in values]
        return values if all(new is old for new, old in zip(found, values, strict=True)) else found

    def _known(self, values: list[Any]) -> bool:
        try:
            return self._texts.is_clean(values)
        except TypeError:  # a list in it
            return False

    def _mapping(self, mapping: dict[Any, Any]) -> dict[Any, Any]:
        found = {self._value(key): self._under(key, value) for key, value in mapping.items()}
        return found if found != mapping else mapping

    def _under(self, key: object, value: Any) -> Any:
        if not isinstance(key, str) or value is None or isinstance(value, (int, float)):
            return self._value(value)
        hides = self._texts.hides_tag if isinstance(value, str) else self._texts.hides
        return MASK if hides(key, value) else self._value(value)

    def _json(self, text: str) -> str:
        if not text or not self._texts.may_hold(text):
            return text
        try:
            payload = json.loads(text)
        except ValueError:
            return self._texts.text(text)
        found = Payload(self._texts).masked(payload)
        return text if found == payload else json.dumps(found, ensure_ascii=False)


@cache
def text_fields(kind: type[Any]) -> tuple[tuple[str, bool], ...]:
    """Names of a dataclass's fields that may hold texts, and whether those are JSON."""
    hints = get_type_hints(kind)
    named = [(each.name, f"{kind.__name__}.{each.name}") for each in fields(kind)]
    return tuple(
        (name, place in JSON_FIELDS) for name, place in named if place not in LEFT_ALONE and may_hold_text(hints[name])
    )


def may_hold_text(hint: Any) -> bool:
    """Whether a value of this type could have a text in it that is not one of a few words of ours."""
    origin = get_origin(hint)
    if origin is Literal or hint in _PLAIN:
        return False
    if origin in (list, dict, tuple, UnionType):
        return any(map(may_hold_text, get_args(hint)))
    return True
