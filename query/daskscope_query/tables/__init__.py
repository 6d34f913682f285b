"""The tables of the lake: each column with its Arrow type, unit and meaning, and the key that tells repeats apart.

One rule reads them all: of the rows with the same key, the one with the highest `seq` counts. It drops repeats of a
message that was delivered twice, and keeps the last snapshot of what was sent several times as it grew.

Schemas only ever gain nullable columns; `VERSION` goes into each file's metadata.
"""

from __future__ import annotations

from daskscope_query.tables.audit import AUDIT
from daskscope_query.tables.catalog import CATALOG
from daskscope_query.tables.column import ACTIONS, MOMENT, ORIGIN, VERSION, Column, Table
from daskscope_query.tables.happenings import EVENTS, EXCEPTIONS, LOGS, PROFILES
from daskscope_query.tables.processes import CLUSTERS, DEATHS, MEMBERS, SAMPLES, WORKERS
from daskscope_query.tables.rollups import CLUSTERS_DAILY, EXCEPTIONS_DAILY, PREFIXES_DAILY
from daskscope_query.tables.work import COMPUTATIONS, FINE_METRICS, FRAME, GROUPS, SPANS, TASKS

TABLES = {
    t.name: t
    for t in (
        CLUSTERS, SAMPLES, WORKERS, MEMBERS, DEATHS, GROUPS, COMPUTATIONS, SPANS, FINE_METRICS, TASKS, EXCEPTIONS,
        EVENTS, LOGS, PROFILES, AUDIT,
    )
}  # fmt: skip

ROLLUPS = {t.name: t for t in (PREFIXES_DAILY, EXCEPTIONS_DAILY, CLUSTERS_DAILY)}

__all__ = [
    "ACTIONS",
    "AUDIT",
    "CATALOG",
    "CLUSTERS",
    "CLUSTERS_DAILY",
    "COMPUTATIONS",
    "DEATHS",
    "EVENTS",
    "EXCEPTIONS",
    "EXCEPTIONS_DAILY",
    "FINE_METRICS",
    "FRAME",
    "GROUPS",
    "LOGS",
    "MEMBERS",
    "MOMENT",
    "ORIGIN",
    "PREFIXES_DAILY",
    "PROFILES",
    "ROLLUPS",
    "SAMPLES",
    "SPANS",
    "TABLES",
    "TASKS",
    "VERSION",
    "WORKERS",
    "Column",
    "Table",
]
