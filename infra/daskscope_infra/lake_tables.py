"""What the lake keeps, by name: as daskscope_query.tables and .layout say, which the infrastructure cannot import.

They bring pyarrow, and nobody needs that to deploy. tests/infra holds the two against each other.
"""

from __future__ import annotations

TABLES = ("clusters", "samples", "workers", "groups", "computations", "exceptions", "events")
"""Their days that are over lie under `sealed/`."""
ROLLUPS = ("prefixes_daily", "exceptions_daily", "clusters_daily")
"""Under `rollups/`."""
BULKY = ("samples", "workers", "groups")
"""Nearly all of the bytes: what comes anew with every message."""

OPEN = "open/"
SEALED = "sealed/"
SEALS = "seals/"
LATE = "late/"
CODE = "code/"
ROLLED_UP = "rollups/"


def prefix(name: str) -> str:
    """Where days of a table that are over lie, or those of a roll-up. Raises ValueError if it is neither."""
    if name in TABLES:
        return f"{SEALED}{name}/"
    if name in ROLLUPS:
        return f"{ROLLED_UP}{name}/"
    raise ValueError(f"{name!r} is neither a table of the lake nor a roll-up.")
