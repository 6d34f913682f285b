"""The infrastructure's commands as processes, in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.emulator import Emulator

CONTEXT = ("daskscope:architecture=x86_64", f"daskscope:python={sys.version_info.major}.{sys.version_info.minor}")
"""The emulator runs functions in its own Python, on this machine."""


def environment(emulator: Emulator, home: Path, **changes: str | None) -> dict[str, str]:
    """What leads to the emulator and nowhere else; a change to None takes a name out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DASKSCOPE_"))}
    changed = kept | emulator.environment | {"HOME": str(home)} | changes
    return {name: value for name, value in changed.items() if value is not None}


def command(name: str, *options: str, context: tuple[str, ...] = CONTEXT) -> list[str]:
    """`make <name>` without make."""
    pairs = [word for pair in context for word in ("--context", pair)] if name != "bootstrap" else []
    return [sys.executable, "-m", f"daskscope_infra.commands.{name}", *pairs, *options]


def run(argv: list[str], environ: dict[str, str], answer: str = "") -> subprocess.CompletedProcess[str]:
    """To its end; `answer` is all that it can read."""
    return subprocess.run(argv, env=environ, input=answer, capture_output=True, text=True, timeout=500)
