"""The functions under the name that the original has them: `s/coiled/daskscope/` is a migration."""

from __future__ import annotations

from daskscope.client import close, list_clusters, list_computations, list_events, list_exceptions
from daskscope.registration import dask_setup, register

__all__ = ["close", "dask_setup", "list_clusters", "list_computations", "list_events", "list_exceptions", "register"]
