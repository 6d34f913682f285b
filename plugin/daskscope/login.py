"""What `daskscope login` keeps: one file in Dask's configuration folder, which Dask reads with the others there."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import dask.config
import yaml

from daskscope import settings
from daskscope.errors import SettingsError
from daskscope.options import OPTIONS

FILE = "daskscope_login.yaml"
_OPTIONS = {o.key.removeprefix("login."): o for o in OPTIONS if o.field in settings.LOGIN}


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


def path() -> Path:
    """Where it is: `~/.config/dask`, or what DASK_CONFIG names."""
    return Path(dask.config.PATH) / FILE


def prepare() -> None:
    """Make the folder if there is none. Raises OSError where nothing can be kept: before somebody approves."""
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path().parent):
        pass


def keep(login: Login) -> None:
    """In place of what is there, whole or not at all, for nobody else to read. Raises OSError."""
    told = {key: getattr(login, o.field.removeprefix("login_")) for key, o in _OPTIONS.items()}
    tree = {"daskscope": {"login": {key: value for key, value in told.items() if value is not None}}}
    path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp makes it 0600; Dask reads no file of this ending.
    descriptor, made = tempfile.mkstemp(prefix=FILE, suffix=".new", dir=path().parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("# Written by `daskscope login`; `daskscope logout` takes it away.\n")
            yaml.safe_dump(tree, file, sort_keys=False)
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
        tree: object = yaml.safe_load(path().read_text(encoding="utf-8"))["daskscope"]["login"]
    except FileNotFoundError:
        return None
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, KeyError):
        tree = None
    said = settings.flat(cast("dict[str, Any]", tree)) if isinstance(tree, dict) else {}
    found = {o.field.removeprefix("login_"): o.parse(o.key, said.get(key)) for key, o in _OPTIONS.items()}
    if not (found["server"] and found["token"] and found["account"]):
        raise SettingsError(str(path()), "no login", "what `daskscope login` wrote: remove it, and log in anew")
    return Login(**found)


def forget() -> None:
    """Quiet if there is none. Raises OSError."""
    path().unlink(missing_ok=True)
