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
    from daskscope.client import (
        change_performance_report,
        close,
        compare,
        compare_hardware,
        connect,
        costs,
        create_token,
        delete_performance_report,
        download_performance_report,
        get_cluster,
        get_computation,
        get_performance_report,
        get_profile,
        invite_user,
        list_audit,
        list_clusters,
        list_code,
        list_computations,
        list_deaths,
        list_events,
        list_exceptions,
        list_groups,
        list_invitations,
        list_members,
        list_metrics,
        list_performance_reports,
        list_prefixes,
        list_samples,
        list_spans,
        list_tasks,
        list_tokens,
        list_users,
        list_workers,
        logs,
        policy,
        prices,
        remove_user,
        report,
        revoke_token,
        rotate_token,
        set_policy,
        set_role,
        sql,
        upload_performance_report,
        whoami,
        withdraw_invitation,
    )
    from daskscope.configuration import config
    from daskscope.errors import (
        BadMessage,
        BadRequest,
        Conflict,
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
        VersionMismatch,
    )
    from daskscope.members import Members
    from daskscope.preload import dask_setup
    from daskscope.previews import Preview
    from daskscope.profile import Profile
    from daskscope.records import Comparison, Record, Records
    from daskscope.registration import Registration, register
    from daskscope.rehearsal import preview
    from daskscope.reports import PerformanceReport, performance_report
    from daskscope.session import Session

__version__ = "0.1.0"

__all__ = [
    "BadMessage",
    "BadRequest",
    "Comparison",
    "Conflict",
    "DaskscopeError",
    "Deleted",
    "Members",
    "NotClosable",
    "NotFound",
    "NotLoggedIn",
    "NotOnScheduler",
    "PerformanceReport",
    "PermissionDenied",
    "Preview",
    "Profile",
    "Record",
    "Records",
    "Registration",
    "ServerError",
    "ServerUnreachable",
    "Session",
    "SettingsError",
    "TooLarge",
    "UnknownVersion",
    "VersionMismatch",
    "__version__",
    "change_performance_report",
    "close",
    "compare",
    "compare_hardware",
    "config",
    "connect",
    "costs",
    "create_token",
    "dask_setup",
    "delete_performance_report",
    "download_performance_report",
    "get_cluster",
    "get_computation",
    "get_performance_report",
    "get_profile",
    "invite_user",
    "list_audit",
    "list_clusters",
    "list_code",
    "list_computations",
    "list_deaths",
    "list_events",
    "list_exceptions",
    "list_groups",
    "list_invitations",
    "list_members",
    "list_metrics",
    "list_performance_reports",
    "list_prefixes",
    "list_samples",
    "list_spans",
    "list_tasks",
    "list_tokens",
    "list_users",
    "list_workers",
    "logs",
    "performance_report",
    "policy",
    "preview",
    "prices",
    "register",
    "remove_user",
    "report",
    "revoke_token",
    "rotate_token",
    "set_policy",
    "set_role",
    "sql",
    "upload_performance_report",
    "whoami",
    "withdraw_invitation",
]

_HOMES = {
    "Comparison": "records",
    "Members": "members",
    "PerformanceReport": "reports",
    "Preview": "previews",
    "Profile": "profile",
    "Record": "records",
    "Records": "records",
    "Registration": "registration",
    "Session": "session",
    "config": "configuration",
    "dask_setup": "preload",
    "performance_report": "reports",
    "preview": "rehearsal",
    "register": "registration",
}
"""Where a name is that is neither an error nor one of the functions that ask."""


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
    home = _HOMES.get(name, "client" if name.islower() else "errors")
    return getattr(importlib.import_module(f"daskscope.{home}"), name)


def __dir__() -> list[str]:
    return __all__
