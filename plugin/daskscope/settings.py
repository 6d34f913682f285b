"""What is in force: the options of `options.py`, read from dask.config under `daskscope:`.

Precedence: argument of the call, environment (`DASK_DASKSCOPE__ANALYTICS__INTERVAL=5s`), YAML files, the default in the
table. The client reads them where the user is, and ships the result to the scheduler. With them goes what `daskscope
login` keeps, which is no option, and stays in the process that read it.
"""

from __future__ import annotations

import difflib
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import dask.config

from daskscope import login as file
from daskscope.errors import SettingsError
from daskscope.login import Login
from daskscope.options import OPTIONS

logger = logging.getLogger("daskscope")

KEYS = frozenset(option.key for option in OPTIONS)
TOKENS = ("token", "ingest_token")
"""Fields that are not for other eyes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is in force. Tokens never show in its repr."""

    server: str | None
    token: str | None = field(repr=False)
    ingest_token: str | None = field(repr=False)
    account: str | None
    data: str
    spool: str | None
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
    login: Login | None = None
    """Not an option: who is logged in here."""

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Settings], tuple[dict[str, Any]]]:
        """By name: a scheduler may have another release of daskscope than the client that sends them."""
        told = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "login"}
        return restored, (told | {name: _disguised(told[name]) for name in TOKENS},)

    def but(self, **changes: Any) -> Settings:
        """A copy with the arguments of a call in place of what was configured; None changes nothing."""
        given = {name: value for name, value in changes.items() if value is not None}
        parsed = {o.field: o.parse(o.key, given.pop(o.field)) for o in OPTIONS if o.field in given}
        return replace(self, **parsed, **given)


def restored(given: dict[str, Any]) -> Settings:
    """Settings as another process sent them: what it did not tell is as by default; what only it knows is left out."""
    given = given | {name: _undisguised(given[name]) for name in TOKENS if name in given}
    of_options = {
        o.field: given[o.field] if o.field in given else o.parse(o.key, o.default)  # a default may ask the machine
        for o in OPTIONS
    }
    return Settings(**of_options, kind=given.get("kind"))


def _disguised(token: str | None) -> tuple[bytes, bytes] | None:
    """Dask at DEBUG writes each message that it gets into its log: a token is not to be read there, nor to be found by
    who searches for tokens. It is no secret to somebody who knows this file."""
    if token is None:
        return None
    pad = secrets.token_bytes(len(token.encode()))
    return pad, _mixed(pad, token.encode())


def _undisguised(told: tuple[bytes, bytes] | None) -> str | None:
    return None if told is None else _mixed(*told).decode()


def _mixed(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def load() -> Settings:
    """The settings in force in this process, with who is logged in. Raises SettingsError that names key and value."""
    found = configured()
    for key in found.keys() - KEYS:
        logger.warning("daskscope.%s is %s", key, no_option(key))
    return Settings(**{o.field: o.parse(o.key, found.get(o.key, o.default)) for o in OPTIONS}, login=_login())


def _login() -> Login | None:
    """A file that is not this user's to read is nobody's login here."""
    try:
        return file.kept()
    except OSError as error:
        logger.warning("Ignored %s: %s.", file.path(), error.strerror or error)
        return None


def configured() -> dict[str, Any]:
    """Keys with dots, options or not, to values as they were given. Raises SettingsError if there can be no keys."""
    tree: object = dask.config.get("daskscope", None) or {}
    if not isinstance(tree, Mapping):
        raise SettingsError("daskscope", tree, "a mapping of the options in the documentation")
    return flat(cast("Mapping[str, Any]", tree))


def no_option(key: str) -> str:
    """What to say of a key that is none, with the option that may have been meant."""
    close = difflib.get_close_matches(key, sorted(KEYS), 1)
    return f"no option; did you mean daskscope.{close[0]}?" if close else "no option."


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree of options as keys with dots to values; `_` in keys is `-`. Tags stay together."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        key = prefix + str(name).replace("_", "-")
        if isinstance(value, Mapping) and key != "tags":
            found |= flat(value, key + ".")
        else:
            found[key] = value
    return found
