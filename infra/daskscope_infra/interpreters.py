"""Pythons of this machine, by version: byte code is good for the version that made it and no other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def find(version: str) -> Path | None:
    """An interpreter of `version` ("3.13"): the running one, one on PATH, or one that pyenv keeps."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    return next((path for path in _candidates(version) if _version(path) == version), None)


def _candidates(version: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield Path(on_path)
    # What pyenv puts on PATH runs only the versions that were chosen for this folder; it may keep others.
    if shutil.which("pyenv"):
        kept = _output("pyenv", "versions", "--bare").split()
        for name in reversed([name for name in kept if name.startswith(f"{version}.")]):
            prefix = _output("pyenv", "prefix", name)
            if prefix:
                yield Path(prefix, "bin", f"python{version}")


def _version(interpreter: Path) -> str:
    """Empty if it does not run."""
    return _output(interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")


def _output(*command: str | Path) -> str:
    """What a command prints; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()
