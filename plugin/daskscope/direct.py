"""A lake that is read where it lies, in this process and with its rights: no server, and of running clusters nothing
but what is written already.

What reads it comes through an entry point, for the plugin never imports upwards.
"""

from __future__ import annotations

import importlib.metadata
import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from daskscope.errors import ServerUnreachable, SettingsError
from daskscope.foreign import one_line
from daskscope.source import MOST_SAID, Answer

GROUP = "daskscope.direct"
"""The entry point that opens a lake."""

_ALLOWED = "a server (http://HOST:PORT), a bucket (s3://BUCKET/PREFIX) or a folder with a lake"

PARTS = ("catalog", "open", "rollups", "sealed", "seals")
"""Folders of which a lake has some."""


class Opened(Protocol):
    """What the entry point gives."""

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]: ...

    def sql(
        self, query: str, account: str | None, params: Any, since: str | int | None, until: str | int | None
    ) -> Any: ...

    def close(self) -> None: ...


class Lake:
    """A lake in a folder or an S3 bucket, as a source of answers."""

    def __init__(self, root: str, account: str | None, keys: str | None) -> None:
        self.name, self.pages = root, None
        self._opened = _opener()(root, account=account, keys=keys)

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Answer:
        sent = None if body is None else json.dumps(dict(body)).encode()
        status, headers, content = self._opened.request(method, f"/api/v1{path}", query, sent)
        return Answer(status, {name.lower(): value for name, value in headers.items()}, content)

    def sql(self, query: str, account: str | None, params: Any, since: Any, until: Any) -> Any:
        """A pyarrow.Table. Raises BadRequest."""
        return self._opened.sql(query, account, params, since, until)

    def clean(self, text: object) -> str:
        return one_line(text, None, MOST_SAID)

    def close(self) -> None:
        self._opened.close()


def root_of(server: str | Path | None, key: str = "server") -> str | None:
    """The bucket or folder that is meant in place of a server; None for an address, and for none.

    Raises SettingsError, with `key`, for a folder without a lake.
    """
    if server is None:
        return None
    parts = urlsplit(str(server))
    if parts.scheme in ("http", "https"):
        return None
    if "://" in str(server) and parts.scheme != "file":
        return str(server).rstrip("/")
    folder = Path(url2pathname(parts.path) if parts.scheme == "file" else server).expanduser().absolute()
    if not has_lake(folder):
        is_path = isinstance(server, Path) or "/" in server or folder.exists()
        raise SettingsError(key, str(server), _instead(folder) if is_path else _ALLOWED)
    return str(folder)


def has_lake(folder: Path) -> bool:
    """Whether it is a lake, or a server's data folder with one in it."""
    return any((place / part).is_dir() for place in (folder, folder / "lake") for part in PARTS)


def _instead(folder: Path) -> str:
    if (folder / "spool").is_dir():
        kind = "a folder to which clusters write, and no server has taken in what lies there"
    else:
        kind = "a folder without a lake in it" if folder.is_dir() else "no folder"
    name = shlex.quote(str(folder))
    return (
        f"{_ALLOWED}, for this is {kind}: run "
        f"`daskscope serve --data {name}` and name its address, or `daskscope import {name}` where a server is"
    )


def _opener() -> Callable[..., Opened]:
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            return point.load()
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0].startswith("daskscope"):
                raise  # Our own module: not an extra that is missing but a fault.
            raise ImportError(
                f"Reading a lake without a server needs {error.name}: pip install 'daskscope[direct]'", name=error.name
            ) from error
    raise ServerUnreachable(
        f"Nothing here opens a lake (no entry point {GROUP!r}): install daskscope anew, with pip install "
        "'daskscope[direct]'."
    )
