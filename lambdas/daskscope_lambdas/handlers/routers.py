"""All that has routes, in the order in which they are tried."""

from __future__ import annotations

from daskscope_lambdas.handlers import (
    api_clusters,
    api_code,
    api_compare,
    api_control,
    api_costs,
    api_data,
    api_observed,
    api_pages,
    api_profile,
    api_team,
    api_tokens,
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
        api_control,
        api_pages,
    )
)
