"""What `daskscope login` keeps: one file in Dask's configuration folder, under a name that Dask does not load.

What Dask loads it hands on: to workers that nannies start, on command lines to other machines (SSHCluster), where
everybody on them can read it. So the login is read by `settings.load()`, and is never in `dask.config`.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import dask.config

from daskscope import parsing
from daskscope.errors import SettingsError

FILE = "daskscope.login"
"""JSON. Not of an ending that Dask loads: .json, .yaml, .yml."""
_PARSERS = {
    "server": parsing.url,
    "token": parsing.token,
    "ingest_token": parsing.token,
    "account": parsing.account,
    "user": parsing.text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who somebody is at one server. Tokens never show in the repr."""

    server: str
    token: str = field(repr=False)
    ingest_token: str | None = field(repr=False, default=None)
    """The one for schedulers; None for who may not report."""
    account: str
    user: str | None = None
    """None for the token of a site, which is nobody's."""
    is_given: bool = False
    """Whether somebody brought the token, which may be in use elsewhere: no login made it, and none ends it."""


def path() -> Path:
    """Where it is: in `~/.config/dask`, or what DASK_CONFIG names."""
    return Path(dask.config.PATH) / FILE


def prepare() -> None:
    """Make the folder if there is none. Raises OSError where nothing can be kept: before somebody approves."""
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path().parent):
        pass


def keep(login: Login) -> None:
    """In place of what is there, whole or not at all, for nobody else to read. Raises OSError."""
    told = {name: value for name, value in asdict(login).items() if value is not None}
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, made = tempfile.mkstemp(prefix=FILE, suffix=".new", dir=path().parent)  # which makes it 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        Path(made).replace(path())
    except BaseException:
        with suppress(OSError):
            Path(made).unlink()
        raise


def kept() -> Login | None:
    """None if there is no such file. Raises SettingsError for what is no login, OSError for what cannot be read."""
    try:
        read: object = json.loads(path().read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError):
        read = None
    said = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    try:
        found = {name: parse(name, said.get(name)) for name, parse in _PARSERS.items()}
    except SettingsError as error:
        name = error.key.removeprefix("daskscope.")
        raise SettingsError(f"{name} in {path()}", error.value, error.allowed) from None
    server, token, account = found["server"], found["token"], found["account"]
    if not (server and token and account):
        raise SettingsError(str(path()), "no login", "what `daskscope login` wrote: remove it, and log in anew")
    return Login(
        server=server,
        token=token,
        account=account,
        ingest_token=found["ingest_token"],
        user=found["user"],
        is_given=said.get("is_given") is True,
    )


def forget() -> None:
    """Quiet if there is none. Raises OSError."""
    path().unlink(missing_ok=True)
