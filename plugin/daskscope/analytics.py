"""The functions under the name that the original has them: `s/coiled/daskscope/` is a migration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import daskscope

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
    from daskscope.preload import dask_setup
    from daskscope.registration import register
    from daskscope.rehearsal import preview
    from daskscope.reports import performance_report

__all__ = [
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


def __getattr__(name: str) -> Any:
    """Loaded when first used: a preload of this name is imported where nothing may fail."""
    if name not in __all__:
        raise AttributeError(f"module 'daskscope.analytics' has no attribute {name!r}")
    return getattr(daskscope, name)
