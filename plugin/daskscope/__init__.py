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
    from daskscope.client import close, get_cluster, list_clusters, list_computations, list_events, list_exceptions
    from daskscope.configuration import config
    from daskscope.depth import (
        get_profile,
        list_deaths,
        list_groups,
        list_members,
        list_metrics,
        list_samples,
        list_spans,
        list_tasks,
        list_workers,
        logs,
    )
    from daskscope.errors import (
        BadMessage,
        BadRequest,
        DaskscopeError,
        Deleted,
        NotClosable,
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
    from daskscope.members import Members
    from daskscope.preload import dask_setup
    from daskscope.previews import Preview
    from daskscope.profile import Profile
    from daskscope.registration import Registration, register
    from daskscope.rehearsal import preview

__version__ = "0.1.0"

__all__ = [
    "BadMessage",
    "BadRequest",
    "DaskscopeError",
    "Deleted",
    "Members",
    "NotClosable",
    "NotFound",
    "NotLoggedIn",
    "NotOnScheduler",
    "PermissionDenied",
    "Preview",
    "Profile",
    "Registration",
    "ServerError",
    "ServerUnreachable",
    "SettingsError",
    "TooLarge",
    "UnknownVersion",
    "__version__",
    "close",
    "config",
    "dask_setup",
    "get_cluster",
    "get_profile",
    "list_clusters",
    "list_computations",
    "list_deaths",
    "list_events",
    "list_exceptions",
    "list_groups",
    "list_members",
    "list_metrics",
    "list_samples",
    "list_spans",
    "list_tasks",
    "list_workers",
    "logs",
    "preview",
    "register",
]

_HOMES = {
    "Preview": "previews",
    "config": "configuration",
    "Registration": "registration",
    "dask_setup": "preload",
    "preview": "rehearsal",
    "register": "registration",
    "close": "client",
    "get_cluster": "client",
    "list_clusters": "client",
    "list_computations": "client",
    "list_events": "client",
    "list_exceptions": "client",
    "Members": "members",
    "Profile": "profile",
    "get_profile": "depth",
    "list_deaths": "depth",
    "list_groups": "depth",
    "list_members": "depth",
    "list_metrics": "depth",
    "list_samples": "depth",
    "list_spans": "depth",
    "list_tasks": "depth",
    "list_workers": "depth",
    "logs": "depth",
}


def _ask_dask_for_code() -> None:
    """Without frames Dask sends no code at all: ask for two, unless the user said how many, or that none may leave.

    Not by `update_defaults`: the default of a distributed that is imported later would win over it, and it would win
    over a 0 that the user wrote down. The server's functions import this package too, and carry no Dask.
    """
    try:
        import dask.config
    except ModuleNotFoundError:
        return
    key, ours = "distributed.diagnostics.computations.nframes", "daskscope.analytics."
    # A value that is neither is an error later, and nothing is sent.
    if dask.config.get(ours + "disabled", False) is not False:
        return
    if dask.config.get(ours + "computation.code.transmit", True) is not True:
        return
    if not dask.config.get(key, 0) and dask.config.get(key, None, config=dask.config.collect()) is None:
        dask.config.set({key: 2})


_ask_dask_for_code()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'daskscope' has no attribute {name!r}")
    return getattr(importlib.import_module(f"daskscope.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return __all__
