"""What a sealed day added, for the views of a team."""

from __future__ import annotations

import pyarrow as pa

from daskscope_query.tables.column import ACTIONS, COUNT, MOMENT, NAME, Column, Table

PREFIXES_DAILY = Table(
    "prefixes_daily", "Task prefixes of a day, by user.", ("account", "day", "user", "prefix"),
    (
        Column("account", NAME, "", "Whose."),
        Column("day", pa.date32(), "", "Arrival day."),
        Column("user", NAME, "", "Operating system's user."),
        Column("prefix", NAME, "", "Dask's task prefix."),
        Column("n_clusters", COUNT, "count", "Clusters that ran it."),
        Column("n_tasks", COUNT, "count", "Tasks that the day added."),
        Column("nbytes", COUNT, "bytes", "Size of the results that the day added."),
        Column("action_us", ACTIONS, "us", "Worker time by action that the day added."),
    ),
)  # fmt: skip

EXCEPTIONS_DAILY = Table(
    "exceptions_daily", "Exceptions of a day, by user and kind.",
    ("account", "day", "user", "type", "text", "prefix", "origin"),
    (
        Column("account", NAME, "", "Whose."),
        Column("day", pa.date32(), "", "Arrival day."),
        Column("user", NAME, "", "Operating system's user."),
        Column("type", NAME, "", "Type of the exception."),
        Column("text", NAME, "", "Its text."),
        Column("prefix", NAME, "", "Task prefix."),
        Column("n_clusters", COUNT, "count", "Clusters it happened on."),
        Column("count", COUNT, "count", "Failed tasks."),
        Column("origin", NAME, "", "As in `exceptions`; null, as is all that follows, in old files."),
        Column("first_at", MOMENT, "", "First failure."),
        Column("last_at", MOMENT, "", "Last failure."),
        Column("cluster_ids", pa.list_(pa.int64()), "", "Numbers of the clusters it happened on."),
        Column("newest", NAME, "", "UUID of the cluster of the last failure."),
    ),
)  # fmt: skip

CLUSTERS_DAILY = Table(
    "clusters_daily", "Each cluster on a day: what it offered and what was used.", ("account", "day", "cluster"),
    (
        Column("account", NAME, "", "Whose."),
        Column("day", pa.date32(), "", "Arrival day."),
        Column("cluster", NAME, "", "The cluster's UUID."),
        Column("cluster_id", COUNT, "", "Its number."),
        Column("name", NAME, "", "Its name."),
        Column("user", NAME, "", "Operating system's user."),
        Column("first_at", MOMENT, "", "First message of the day."),
        Column("last_at", MOMENT, "", "Last message of the day."),
        Column("peak_workers", COUNT, "count", "Most workers at a time."),
        Column("peak_memory_bytes", COUNT, "bytes", "Most memory at a time."),
        Column("thread_us", COUNT, "us", "Threads x time offered that the day added."),
        Column("action_us", ACTIONS, "us", "Worker time by action that the day added."),
        Column("failed_us", COUNT, "us", "Of it, of failed or cancelled tasks; null where not told, and in old files."),
    ),
)  # fmt: skip
