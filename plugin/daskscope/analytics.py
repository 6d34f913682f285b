"""The functions under the name that the original has them: `s/coiled/daskscope/` is a migration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import daskscope

if TYPE_CHECKING:
    from daskscope.client import close, list_clusters, list_computations, list_events, list_exceptions
    from daskscope.preload import dask_setup
    from daskscope.registration import register

__all__ = ["close", "dask_setup", "list_clusters", "list_computations", "list_events", "list_exceptions", "register"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: a preload of this name is imported where nothing may fail."""
    if name not in __all__:
        raise AttributeError(f"module 'daskscope.analytics' has no attribute {name!r}")
    return getattr(daskscope, name)
