"""Whether a lake has anything of an account, or of a cluster, that nobody else knows of any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from daskscope_query.lake import Lake, MovedError
from daskscope_query.tables import ROLLUPS, TABLES, Table


def is_known(lake: Lake, account: str, cluster: str | None = None) -> bool:
    """Of any day, sealed or open; of most files the footer tells. `cluster`: a UUID. Raises MovedError."""
    clusters = None if cluster is None else [cluster]
    try:
        files = _files(lake, account, cluster)
        return any(lake.dataset(keys, table, account, clusters).count_rows() for table, keys in files)
    except FileNotFoundError as error:
        raise MovedError(str(error)) from error


def _files(lake: Lake, account: str, cluster: str | None) -> Iterator[tuple[Table, list[str]]]:
    for table in TABLES.values():
        yield table, lake.keys(table.name, account, date.min, date.max)
    for rollup in ROLLUPS.values():
        if cluster is None or "cluster" in rollup.schema.names:
            yield rollup, lake.rollup_keys(rollup.name, account, date.min, date.max)
