"""A message as JSON and back, checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from daskscope.errors import BadMessage, UnknownVersion
from daskscope.wire.decoder import decode_json
from daskscope.wire.message import VERSION, Message


def encode(message: Message) -> bytes:
    """JSON of a message in UTF-8, fields at their default left out; a lone surrogate becomes `?`, for it has no
    UTF-8."""
    return _JSON.encode(message).encode("utf-8", "replace")


def _lean(value: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, default in _defaults(type(value)):
        item = getattr(value, name)
        if item != default:
            kept[name] = item
    return kept


_JSON = json.JSONEncoder(
    default=_lean, separators=(",", ":"), allow_nan=False, ensure_ascii=False, check_circular=False
)
"""Made once: `json.dumps` makes one each time."""


@cache
def _defaults(kind: type[Any]) -> list[tuple[str, object]]:
    return [(f.name, f.default_factory() if f.default_factory is not MISSING else f.default) for f in fields(kind)]


def decode(plain: bytes) -> Message:
    """A message from its JSON, checked field by field (needs `msgspec`, part of `daskscope[serve]`).

    Raises UnknownVersion, or BadMessage with the place, also when two columns of one table differ in length.
    """
    import msgspec

    try:
        message = decode_json(plain, Message)
    except msgspec.ValidationError as error:
        _check_version(version := _claimed_version(plain))
        text, _, place = str(error).partition(" - at `")
        if version > VERSION:  # a later one may differ in anything: then that is what to say
            raise UnknownVersion(
                f"Message version {version} is not one that this server can read (it knows 1 to {VERSION}, and later "
                f"ones that only add to them): {text}. Upgrade the server, or take the plugin of its release.",
                place.rstrip("`") or "$",
            ) from error
        raise BadMessage(f"The message does not keep to format {VERSION}: {text}.", place.rstrip("`") or "$") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"The message is not JSON: {error}.") from error
    _check_version(message.v)
    if _LONG_NUMBER in plain.translate(_DIGITS):
        _check_integers(message, "$")
    _check_columns(message.workers, "workers", _GPU)
    _check_columns(message.groups, "groups")
    _check_columns(message.metrics, "metrics")
    _check_columns(message.tasks, "tasks", apart=_ADDRESSES)
    _check_columns(message.logs, "logs")
    for n, profile in enumerate(message.profiles):
        _check_columns(profile, f"profiles[{n}]", apart=_FRAMES)
    _check_references(message)
    return message


_GPU, _ADDRESSES, _FRAMES = frozenset({"gpu_pct", "gpu_memory_mib"}), frozenset({"addresses"}), frozenset({"frames"})
"""Columns that may be empty, and lists that are no columns."""


@dataclass(slots=True)
class _Claim:
    v: int = VERSION


def _claimed_version(plain: bytes) -> int:
    """The version that a body says it is of; ours if it does not say."""
    import msgspec

    try:
        return decode_json(plain, _Claim).v
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return VERSION


def _check_version(version: int) -> None:
    if version < 1:
        raise UnknownVersion(
            f"Message version {version} is none: this server takes 1 to {VERSION}, and later ones.", "$.v"
        )


_DIGITS = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))
"""Turns every digit into 0 and the rest into blanks: to search in that is ten times cheaper than by a pattern."""
_LONG_NUMBER = b"0" * 19
"""Whatever does not fit into 64 bits has as many digits, which hardly any message has anywhere."""


def _check_integers(value: Any, place: str) -> None:
    # msgspec takes integers of any size, the lake's columns do not.
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise BadMessage("An integer does not fit into 64 bits.", place)
    elif isinstance(value, dict):
        entries: dict[str, Any] = value
        for name, item in entries.items():
            _check_integers(item, f"{place}.{name}")
    elif isinstance(value, list):
        items: list[Any] = value
        for n, item in enumerate(items):
            _check_integers(item, f"{place}[{n}]")
    elif is_dataclass(value):
        for f in fields(value):
            _check_integers(getattr(value, f.name), f"{place}.{f.name}")


def _check_columns(
    table: Any, where: str, may_be_empty: frozenset[str] = frozenset(), apart: frozenset[str] = frozenset()
) -> None:
    """`apart`: lists that are no columns of the table."""
    found, maps = _columns(type(table), may_be_empty | apart)(table), _map_names(type(table))
    if not (any(found) or maps or may_be_empty):
        return  # most tables of most messages are empty
    lengths = set(map(len, found))
    for name in maps:
        lengths.update(map(len, getattr(table, name).values()))
    lengths |= {len(column) for name in may_be_empty if (column := getattr(table, name))}
    if len(lengths) == 1:
        return
    columns = {name: getattr(table, name) for name in _column_names(type(table)) if name not in apart}
    for name in maps:
        columns |= {f"{name}.{key}": column for key, column in getattr(table, name).items()}
    (first, entries), *others = columns.items()
    for name, column in others:
        if len(column) != len(entries) and (column or name not in may_be_empty):
            told = f"Column {name} has {len(column)} entries where {first} has {len(entries)}."
            raise BadMessage(told, f"$.{where}.{name}")


@cache
def _columns(kind: type[Any], apart: frozenset[str]) -> Callable[[Any], tuple[list[Any], ...]]:
    return attrgetter(*(name for name in _column_names(kind) if name not in apart))


@cache
def _column_names(kind: type[Any]) -> list[str]:
    return [name for name, default in _defaults(kind) if isinstance(default, list)]


@cache
def _map_names(kind: type[Any]) -> list[str]:
    return [name for name, default in _defaults(kind) if isinstance(default, dict)]


def _check_references(message: Message) -> None:
    """Each index must stand in the list that it counts in."""
    _check_indexes(message.tasks.worker, len(message.tasks.addresses), "$.tasks.worker")
    for n, profile in enumerate(message.profiles):
        for stack in profile.stack:
            _check_indexes(stack, len(profile.frames), f"$.profiles[{n}].stack")
    for name, n_entries in (("environment", len(message.environments)), ("hardware", len(message.hardware))):
        told = [index for member in message.members if (index := getattr(member, name)) is not None]
        _check_indexes(told, n_entries, f"$.members.{name}")


def _check_indexes(indexes: list[int], n_entries: int, place: str) -> None:
    if indexes and not (min(indexes) >= 0 and max(indexes) < n_entries):
        raise BadMessage(f"An index is not within the list of {n_entries} that it counts in.", place)
