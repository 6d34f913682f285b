"""Others of the trade in the same proxy, with their own settings and their own ways of sending."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType

from tests.faults.peers import otel, sentry
from tests.faults.row import Figure

PEERS: dict[str, ModuleType] = {sentry.PACKAGE: sentry, otel.PACKAGE: otel}
_MODULES = {sentry.PACKAGE: ("sentry_sdk",), otel.PACKAGE: ("opentelemetry", "opentelemetry.sdk")}


def beside(row: str, short: bool) -> dict[str, dict[str, Figure]]:
    """What came of the row's events by each of them."""
    return {name: _through(name, row, short) for name in PEERS}


def _through(name: str, row: str, short: bool) -> dict[str, Figure]:
    if not all(_is_there(module) for module in _MODULES[name]):
        return {"version": "not installed"}
    command = [sys.executable, "-m", "tests.faults.peers", name, row, *(["--short"] if short else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=True)
    return json.loads(done.stdout)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
