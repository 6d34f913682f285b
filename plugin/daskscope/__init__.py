"""Every Dask cluster your team ever ran, on one page: did it finish, did anything raise, what did it cost, what takes
the time, why is it still running?

    import daskscope
    daskscope.register()          # after a dask.distributed.Client; or: dask scheduler --preload daskscope

Names load when they are first used, so that importing this costs the `dask` command nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskscope.client import get_cluster, list_clusters, list_computations, list_events, list_exceptions
    from daskscope.errors import (
        BadMessage,
        DaskscopeError,
        NotFound,
        NotLoggedIn,
        NotOnScheduler,
        PermissionDenied,
        ServerError,
        ServerUnreachable,
        SettingsError,
        TooLarge,
        UnknownVersion,
    )
    from daskscope.registration import Registration, dask_setup, register

__version__ = "0.1.0"

__all__ = [
    "BadMessage",
    "DaskscopeError",
    "NotFound",
    "NotLoggedIn",
    "NotOnScheduler",
    "PermissionDenied",
    "Registration",
    "ServerError",
    "ServerUnreachable",
    "SettingsError",
    "TooLarge",
    "UnknownVersion",
    "__version__",
    "dask_setup",
    "get_cluster",
    "list_clusters",
    "list_computations",
    "list_events",
    "list_exceptions",
    "register",
]

_HOMES = {
    "Registration": "registration",
    "dask_setup": "registration",
    "register": "registration",
    "get_cluster": "client",
    "list_clusters": "client",
    "list_computations": "client",
    "list_events": "client",
    "list_exceptions": "client",
}


def _ask_dask_for_code() -> None:
    """Without frames Dask sends no code at all: ask for two, unless the user said how many.

    Not by `update_defaults`: the default of a distributed that is imported later would win over it, and it would win
    over a 0 that the user wrote down. The server's functions import this package too, and carry no Dask.
    """
    try:
        import dask.config
    except ModuleNotFoundError:
        return
    key = "distributed.diagnostics.computations.nframes"
    if not dask.config.get(key, 0) and dask.config.get(key, None, config=dask.config.collect()) is None:
        dask.config.set({key: 2})


_ask_dask_for_code()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'daskscope' has no attribute {name!r}")
    return getattr(importlib.import_module(f"daskscope.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return __all__
