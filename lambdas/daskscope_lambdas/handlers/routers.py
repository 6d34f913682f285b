"""All that has routes, in the order in which they are tried."""

from __future__ import annotations

from daskscope_lambdas.handlers import (
    api_audit,
    api_clusters,
    api_code,
    api_compare,
    api_control,
    api_costs,
    api_data,
    api_invitations,
    api_login,
    api_observed,
    api_pages,
    api_policy,
    api_profile,
    api_reports,
    api_run_report,
    api_team,
    api_tokens,
    api_users,
    pages_approve,
    pages_control,
    pages_join,
    pages_login,
    pages_reports,
)

ALL = tuple(
    routes.router
    for routes in (
        api_clusters,
        api_data,
        api_observed,
        api_code,
        api_profile,
        api_team,
        api_compare,
        api_costs,
        api_tokens,
        api_users,
        api_invitations,
        api_policy,
        api_audit,
        api_login,
        api_control,
        api_reports,
        api_run_report,
        pages_login,
        pages_join,
        pages_approve,
        pages_control,
        pages_reports,
        api_pages,
    )
)
