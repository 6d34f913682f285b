"""What is not in the base install, where somebody asks for it."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, extra: str, what: str) -> Any:
    """The module. Raises ImportError that says what needs it, and which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{what} needs {module}: pip install 'daskscope[{extra}]'", name=module) from error
