"""What the lake keeps, by name: as daskscope_query.tables says, which the infrastructure cannot import.

It brings pyarrow, and nobody needs that to deploy. tests/infra holds the two against each other.
"""

from __future__ import annotations

from daskscope_query import layout

AUDIT = "audit"
"""What was done to accounts: written by the API itself."""
TABLES = (
    "clusters", "samples", "workers", "members", "deaths", "groups", "computations", "spans", "fine_metrics", "tasks",
    "exceptions", "events", "logs", "profiles", AUDIT,
)  # fmt: skip
"""Their days that are over lie under `layout.SEALED`."""
ROLLUPS = ("prefixes_daily", "exceptions_daily", "clusters_daily")
"""Under `layout.ROLLUPS`."""
BULKY = ("samples", "workers", "groups", "fine_metrics", "tasks", "logs", "profiles")
"""Nearly all of the bytes: what comes anew with every message, or a row for each task, line or stack."""


def prefix(name: str) -> str:
    """Where days of a table that are over lie, or those of a roll-up. Raises ValueError if it is neither."""
    if name in TABLES:
        return f"{layout.SEALED}{name}/"
    if name in ROLLUPS:
        return f"{layout.ROLLUPS}{name}/"
    raise ValueError(f"{name!r} is neither a table of the lake nor a roll-up.")
