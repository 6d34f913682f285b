"""Clusters that a shell offers: what the server said within the last minute, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from daskscope import settings
from daskscope.discovery import named_server
from daskscope.errors import DaskscopeError
from daskscope.records import printable

FRESH_S = 60.0
MOST = 50
"""Clusters, the latest: more are no help to who chooses."""
WAIT = "3 s"
"""For the server: somebody's prompt hangs meanwhile."""


def offered(
    options: Mapping[str, Any], incomplete: str, clock: Callable[[], float] = time.time
) -> list[tuple[str, str]]:
    """What may be typed on in place of a cluster, and what it is. Nothing where nothing can be known: a prompt is no
    place for errors."""
    server, account = options.get("server"), options.get("account")
    try:
        rows = _kept(server, account, clock) or _asked(server, account)
    except (DaskscopeError, ImportError, OSError):
        rows = []
    known = [("latest", "the cluster that started last"), *rows]
    return [(value, told) for value, told in known if value.startswith(incomplete)]


def cache_folder() -> Path:
    """The user's own, as the platform has it (XDG on Linux)."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "daskscope"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "daskscope"


def _file(server: str | None, account: str | None) -> Path:
    """One for each server and account that are asked."""
    configured = settings.load()
    whose = account or configured.account or (configured.login.account if configured.login else None)
    asked = json.dumps([server or named_server(configured), whose, configured.data])
    return cache_folder() / f"clusters-{hashlib.sha256(asked.encode()).hexdigest()[:16]}.json"


def _kept(server: str | None, account: str | None, clock: Callable[[], float]) -> list[tuple[str, str]]:
    """What was asked just before; empty if that is too old, or cannot be read."""
    path = _file(server, account)
    try:
        if not 0 <= clock() - path.stat().st_mtime < FRESH_S:
            return []
        return [(str(value), str(told)) for value, told in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def _asked(server: str | None, account: str | None) -> list[tuple[str, str]]:
    from daskscope.session import Session

    with Session(server, account=account, timeout=WAIT) as session:
        found = session.list_clusters(since=None, limit=MOST)
    rows = [(str(each["id"]), printable(f"{each['name']} ({each['status']})")) for each in found]
    path = _file(server, account)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whole or not at all: two shells may ask at a time.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        json.dump(rows, file)
    Path(file.name).replace(path)
    return rows
