"""What is in force: the options of `options.py`, read from dask.config under `daskscope:`.

Precedence: argument of the call, environment (`DASK_DASKSCOPE__ANALYTICS__INTERVAL=5s`), YAML files, the default in the
table. The client reads them where the user is and ships the result to the scheduler.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import dask.config

from daskscope.errors import SettingsError
from daskscope.options import OPTIONS

logger = logging.getLogger("daskscope")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is in force. Tokens never show in its repr."""

    server: str | None
    token: str | None = field(repr=False)
    ingest_token: str | None = field(repr=False)
    account: str | None
    data: str
    name: str | None
    tags: dict[str, str]
    disabled: bool
    interval_s: float
    code: bool
    computation_interval_s: float | None
    exceptions: bool
    events: tuple[str, ...]
    events_interval_s: float | None
    logs: int | None
    profile: bool
    profile_interval_s: float
    tasks: bool
    hardware: bool
    idle_timeout_s: float | None
    remote_close: bool
    scrub: bool
    scrub_words: tuple[str, ...]
    scrub_patterns: tuple[str, ...]
    budget_pct: float | None
    kind: str | None = None
    """Not an option: what made the cluster, where the client knows."""

    def but(self, **changes: Any) -> Settings:
        """A copy with the arguments of a call in place of what was configured; None changes nothing."""
        given = {name: value for name, value in changes.items() if value is not None}
        parsed = {o.field: o.parse(o.key, given.pop(o.field)) for o in OPTIONS if o.field in given}
        return replace(self, **parsed, **given)


def load() -> Settings:
    """The settings in force in this process. Raises SettingsError that names key, value and what is allowed."""
    configured: object = dask.config.get("daskscope", None) or {}
    if not isinstance(configured, Mapping):
        raise SettingsError("daskscope", configured, "a mapping of the options in the documentation")
    found = _flat(cast("Mapping[str, Any]", configured))
    for key in found.keys() - {option.key for option in OPTIONS}:
        close = difflib.get_close_matches(key, [option.key for option in OPTIONS], 1)
        logger.warning("daskscope.%s is no option%s", key, f"; did you mean daskscope.{close[0]}?" if close else ".")
    return Settings(**{o.field: o.parse(o.key, found.get(o.key, o.default)) for o in OPTIONS})


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        key = prefix + str(name).replace("_", "-")
        if isinstance(value, Mapping) and key != "tags":
            flat |= _flat(value, key + ".")
        else:
            flat[key] = value
    return flat
