"""What may be chosen about a stack, out of the CDK's context: `cdk.json`, or `-c daskscope:<name>=<value>`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, get_args

import click

from daskscope_infra.lake_tables import ROLLUPS, TABLES

PREFIX = "daskscope:"
"""Before each key, so that a misspelt one can be told from the CDK's own."""

Architecture = Literal["arm64", "x86_64"]
Python = Literal["3.13", "3.12", "3.11"]

LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""CloudWatch takes no others."""
MAX_WINDOW_S = 300
SHORTEST_RETENTION_DAYS = 30
"""A day's roll-up looks back to where its clusters began: what they had counted by then must still be there."""
LONGEST_RETENTION_DAYS = 36_500

DESCRIPTION = "daskscope: what Dask clusters did, as their schedulers told it"
"""The stack's, by which commands know it from others: stacks that are there keep theirs, so that it cannot change."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")


class SettingError(click.ClickException):
    """A key that is none, or a value that is not allowed; the message says which, and what is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each is the context key of its name, with dashes."""

    name: str = "daskscope"
    """Of the stack, so that an account can hold several."""
    architecture: Architecture = "arm64"
    python: Python = "3.13"
    """Of the functions."""
    customer_key: bool = False
    """Encrypt all with a KMS key in this account ($1 a month and its requests), not with AWS's own keys."""
    remove_data: bool = False
    """Whether lake, registry and key go when the stack goes. Else they stay behind."""
    write_window_s: int = 60
    """How long SQS gathers messages for a file of the lake: depth is that old, and a longer one costs less."""
    log_days: int = 30
    """How long the logs are kept."""
    retention_days: Mapping[str, int] = field(default_factory=dict[str, int])
    """By table or roll-up, how long its days are kept once they are over. What is not named is kept for good."""


def read(context: Mapping[str, object]) -> Settings:
    """Keys without the prefix are the CDK's. Raises SettingError."""
    values: dict[str, Any] = {}
    for key, value in context.items():
        if key.startswith(PREFIX):
            parse = _OPTIONS.get(key.removeprefix(PREFIX))
            if parse is None:
                allowed = ", ".join(PREFIX + known for known in _OPTIONS)
                raise SettingError(f"{key} is no setting of daskscope; allowed: {allowed}.")
            values[key.removeprefix(PREFIX).replace("-", "_")] = parse(key, value)
    return Settings(**values)


def _refuse(key: str, value: object, allowed: str) -> NoReturn:
    raise SettingError(f"{key} is {value!r}; allowed: {allowed}.")


def _name(key: str, value: object) -> str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    _refuse(key, value, "a letter, then at most 63 letters, digits and dashes")


def _one_of(*allowed: str) -> Callable[[str, object], str]:
    def parse(key: str, value: object) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        _refuse(key, value, f"{', '.join(allowed)}, as text")

    return parse


def _switch(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    _refuse(key, value, "true, false")


def _window_s(key: str, value: object) -> int:
    seconds = _whole(value)
    if seconds is not None and seconds <= MAX_WINDOW_S:
        return seconds
    _refuse(key, value, f"0 to {MAX_WINDOW_S}, in seconds")


def _log_days(key: str, value: object) -> int:
    days = _whole(value)
    if days in LOG_DAYS:
        return days
    _refuse(key, value, f"{', '.join(map(str, LOG_DAYS))}, in days")


def _retention_days(key: str, value: object) -> dict[str, int]:
    try:
        given: object = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        given = None
    if not isinstance(given, dict):
        _refuse(key, value, 'JSON from tables to days, like {"samples": 400}')
    found: dict[str, int] = {}
    for name, told in given.items():
        if name not in (*TABLES, *ROLLUPS):
            raise SettingError(f"{key} names {name!r}; allowed: {', '.join((*TABLES, *ROLLUPS))}.")
        days = _whole(told)
        if days is None or not SHORTEST_RETENTION_DAYS <= days <= LONGEST_RETENTION_DAYS:
            _refuse(f"{key}, for {name},", told, f"{SHORTEST_RETENTION_DAYS} to {LONGEST_RETENTION_DAYS}, in days")
        found[name] = days
    return found


def _whole(value: object) -> int | None:
    """0 or more, None for all that is not: text comes from the command line, numbers from cdk.json."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_OPTIONS: Mapping[str, Callable[[str, object], Any]] = {
    "name": _name,
    "architecture": _one_of(*get_args(Architecture)),
    "python": _one_of(*get_args(Python)),
    "customer-key": _switch,
    "remove-data": _switch,
    "write-window-s": _window_s,
    "log-days": _log_days,
    "retention-days": _retention_days,
}
