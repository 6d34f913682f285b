"""The options: one table of key, default, unit and meaning; read from dask.config under `daskscope:`.

Precedence: argument of the call, environment (`DASK_DASKSCOPE__ANALYTICS__INTERVAL=5s`), YAML files, the default here.
The client reads them where the user is and ships the result to the scheduler.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import dask.config
from dask.utils import parse_timedelta

from daskscope.errors import SettingsError

logger = logging.getLogger("daskscope")

LEVELS: dict[str, int | None] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50, "off": None}
"""Words for the least level of log lines, and the numbers that `logging` has for them."""
FAILURE_TOPICS = ("invalid-worker-transition", "invalid-worker-task-state", "worker-fail-hard")
"""Event topics in which Dask reports its own failures."""


def default_data() -> Path:
    """The user's own data folder, as the platform has it (XDG on Linux)."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "daskscope"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "daskscope"


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table; `parse(key, value)` gives the field's value or raises SettingsError."""

    key: str
    field: str
    default: Any
    unit: str
    meaning: str
    parse: Callable[[str, Any], Any]
    governs: tuple[str, ...] = ()
    """Tables of the lake, or columns (`table.column`), that stay empty where it is off."""
    off: Any = None
    """The value that turns these off."""

    @property
    def environment(self) -> str:
        return "DASK_DASKSCOPE__" + self.key.replace(".", "__").replace("-", "_").upper()


def _url(key: str, value: Any) -> str | None:
    if value is None or value == "auto":
        return None
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not parts.query
    except (ValueError, TypeError, AttributeError):  # AttributeError: a number; ValueError: a port that is none
        good = False
    if not good:
        raise SettingsError(
            f"daskscope.{key}", value, "http://HOST:PORT, https://HOST, or null to look for a server here"
        )
    return value.rstrip("/")


def _token(key: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and re.fullmatch(r"[!-~]+", value)):
        return value
    # Its value is not for a traceback; a line break at its end would show it in the HTTP client's error, too.
    raise SettingsError(f"daskscope.{key}", "(not shown)", "a token without spaces or line breaks, or null")


def _text(key: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise SettingsError(f"daskscope.{key}", value, "a text, or null")


def _folder(key: str, value: Any) -> str:
    if value is None:
        return str(default_data())
    if isinstance(value, str) and value:
        return str(Path(value).expanduser().absolute())
    raise SettingsError(f"daskscope.{key}", value, "a folder's path, or null")


def _account(key: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", value)):
        return value
    raise SettingsError(f"daskscope.{key}", value, "1 to 63 of a-z, 0-9 and '-', or null for the token's own account")


def _switch(key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise SettingsError(f"daskscope.{key}", value, "true or false")


def _interval(key: str, value: Any) -> float:
    return _interval_of(key, value, 0.1, 3600, "a time from 100 ms to 1 hour, like '10s'")


def _interval_of(key: str, value: Any, least_s: float, most_s: float, allowed: str) -> float:
    if isinstance(value, bool):
        raise SettingsError(f"daskscope.{key}", value, allowed)
    try:
        seconds = float(parse_timedelta(value))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SettingsError(f"daskscope.{key}", value, allowed) from error
    if not least_s <= seconds <= most_s:
        raise SettingsError(f"daskscope.{key}", value, allowed)
    return seconds


def _profile_interval(key: str, value: Any) -> float:
    return _interval_of(key, value, 1.0, 3600, "a time from 1 s to 1 hour, like '60s'")


def _span_of_time(key: str, value: Any) -> float | None:
    return (
        None
        if value is None
        else _interval_of(key, value, 1.0, 30 * 86_400, "a time from 1 s to 30 days, like '20m', or null")
    )


def _level(key: str, value: Any) -> int | None:
    """The number that `logging` has for it; None for off."""
    word = "off" if value is False or value is None else value  # YAML reads a bare `off` as false
    if isinstance(word, str) and word.lower() in LEVELS:
        return LEVELS[word.lower()]
    raise SettingsError(f"daskscope.{key}", value, ", ".join(LEVELS))


def _topics(key: str, value: Any) -> tuple[str, ...]:
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [None]
    if all(isinstance(item, str) for item in items):
        return tuple(items)
    raise SettingsError(f"daskscope.{key}", value, 'a list of event topics, or ["*"] for all of them')


def _tags(key: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        pairs: dict[Any, Any] = dict(value)
        if all(isinstance(k, str) and isinstance(v, (str, int, float)) for k, v in pairs.items()):
            return {k: str(v) for k, v in pairs.items()}
    raise SettingsError(f"daskscope.{key}", value, "a mapping of texts to texts")


OPTIONS = (
    Option(
        "server", "server", None, "URL", "Where to report; null looks for `daskscope serve` on 127.0.0.1:8790.", _url
    ),
    Option("token", "token", None, "", "Proves who asks; null takes the one of the server on this machine.", _token),
    Option(
        "ingest-token",
        "ingest_token",
        None,
        "",
        "The token that is shipped to schedulers, where its scope should be ingest alone; null ships `token`.",
        _token,
    ),
    Option("account", "account", None, "", "Whose clusters to list; null means the token's own account.", _account),
    Option("data", "data", None, "folder", "Where the embedded server and the spool keep their files.", _folder),
    Option("name", "name", None, "", "The cluster's name on the pages; null takes the scheduler's host and id.", _text),
    Option("tags", "tags", {}, "", "Labels of the cluster, like {project: climate}.", _tags),
    Option("analytics.disabled", "disabled", False, "", "Report nothing at all.", _switch),
    Option("analytics.interval", "interval_s", "10s", "seconds", "Time between two messages.", _interval),
    Option(
        "analytics.computation.code.transmit",
        "code",
        True,
        "",
        "Send the user's code around `compute` calls.",
        _switch,
        governs=("computations.code",),
        off=False,
    ),
    Option(
        "analytics.exceptions.transmit",
        "exceptions",
        True,
        "",
        "Send texts and tracebacks of failed tasks and of Dask's own failures, also of those that are events. What is "
        "logged with a traceback is a log line.",
        _switch,
        governs=("exceptions",),
        off=False,
    ),
    Option(
        "analytics.events.allow",
        "events",
        list(FAILURE_TOPICS),
        "topics",
        'Which event topics to send; ["*"] for all, [] for none.',
        _topics,
        governs=("events",),
        off=[],
    ),
    Option(
        "analytics.logs.level",
        "logs",
        "warning",
        "level",
        "Send log lines of scheduler, workers and nannies, with the tracebacks in them, from this level on: debug, "
        "info, warning, error, critical, or off.",
        _level,
        governs=("logs",),
        off="off",
    ),
    Option(
        "analytics.profile.transmit",
        "profile",
        True,
        "",
        "Send what functions workers spend their time in.",
        _switch,
        governs=("profiles",),
        off=False,
    ),
    Option(
        "analytics.profile.interval",
        "profile_interval_s",
        "60s",
        "seconds",
        "Time between two profiles of a worker; beyond 100 workers doubled whenever their number doubles.",
        _profile_interval,
    ),
    Option(
        "analytics.tasks.transmit",
        "tasks",
        False,
        "",
        "Send a row for each task: worker, start, duration.",
        _switch,
        governs=("tasks",),
        off=False,
    ),
    Option(
        "analytics.hardware.transmit",
        "hardware",
        True,
        "",
        "Send cores and memory of the machines and, on EC2, what its metadata service tells: instance type, region, "
        "zone, spot or not.",
        _switch,
        governs=(
            "members.cores",
            "members.memory_bytes",
            "members.gpus",
            "members.provider",
            "members.instance_type",
            "members.region",
            "members.zone",
            "members.lifecycle",
        ),
        off=False,
    ),
    Option(
        "analytics.idle.timeout",
        "idle_timeout_s",
        None,
        "seconds",
        "Close the cluster after it has had nothing to do for so long; null never does. A "
        "`distributed.scheduler.idle-timeout` of Dask's own wins.",
        _span_of_time,
    ),
    Option(
        "analytics.remote-close",
        "remote_close",
        True,
        "",
        "Close the cluster when somebody of the account asks for it on the server.",
        _switch,
    ),
)
"""Every option there is. Anything else under `daskscope:` is warned about by name."""


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
    exceptions: bool
    events: tuple[str, ...]
    logs: int | None
    profile: bool
    profile_interval_s: float
    tasks: bool
    hardware: bool
    idle_timeout_s: float | None
    remote_close: bool
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
