"""Where a row keeps its world."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

_MEMORY = Path("/dev/shm")


def scratch() -> TemporaryDirectory[str]:
    """A folder for as long as it is entered; in memory where there is such a place, for no row cuts the power."""
    return TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)
