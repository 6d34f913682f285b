"""Environment of the functions: names and typed settings. Standard library only, for the infrastructure imports it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

WORLD = "DASKSCOPE_WORLD"
DATA = "DASKSCOPE_DATA"
PAGES = "DASKSCOPE_PAGES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """What a function is told by its environment."""

    world: Literal["local"]
    data: str
    """Folder of the embedded server's files."""
    pages: Literal["open", "login"]
    """Whether pages may be read without a login: only where nobody but this machine can ask."""

    @property
    def lake(self) -> str:
        """Root of the lake, as a path or URI that pyarrow opens."""
        return str(Path(self.data) / "lake")


def read(environ: Mapping[str, str] = os.environ) -> Env:
    """Raises KeyError that names the variable, ValueError that says what is allowed."""
    world, pages = environ[WORLD], environ.get(PAGES, "login")
    if world != "local":
        raise ValueError(f"{WORLD} is {world!r}; allowed: local.")
    if pages not in ("open", "login"):
        raise ValueError(f"{PAGES} is {pages!r}; allowed: open, login.")
    return Env(world=world, data=environ[DATA], pages=pages)
