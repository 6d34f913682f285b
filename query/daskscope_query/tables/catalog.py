"""Every cluster of an account in one small file, for lists: the registry's rows, and what they cost."""

from __future__ import annotations

import pyarrow as pa

from daskscope_query.tables.column import ACTIONS, COUNT, MOMENT, NAME, SMALL, Column, Table

MACHINE = pa.struct(
    [
        ("provider", pa.string()),
        ("region", pa.string()),
        ("instance_type", pa.string()),
        ("lifecycle", pa.string()),
        ("cores", pa.int32()),
        ("memory_bytes", pa.int64()),
        ("n_machines", pa.int32()),
        ("machine_us", pa.int64()),
        ("thread_us", pa.int64()),
        ("gib_hours", pa.float64()),
        ("dollars", pa.float64()),
    ]
)
"""Machines of one kind: how long all of them were there together, their workers' threads x time and memory limits x
time, and what that cost. What nobody told is null."""

CATALOG = Table(
    "catalog", "Every cluster of an account, for lists: as the registry knew it, and what it cost until then.",
    ("account", "cluster"),
    (
        Column("account", NAME, "", "Whose."),
        Column("cluster", NAME, "", "The cluster's UUID, 32 hex digits."),
        Column("cluster_id", COUNT, "", "Its number in its account."),
        Column("name", NAME, "", "Name on the pages."),
        Column("user", NAME, "", "Whose: the person whose token it reports with, else the operating system's user."),
        Column("user_claimed", pa.bool_(), "", "Whether that is only what it said; null if an older release was told."),
        Column("host", NAME, "", "Host of the scheduler."),
        Column("kind", NAME, "", "What made it: LocalCluster, SLURMCluster, ...; null if nothing told."),
        Column("tags", pa.map_(pa.string(), pa.string()), "", "The user's labels."),
        Column("boot", NAME, "", "The newest run of the plugin."),
        Column("started_at", MOMENT, "", "Start of the scheduler."),
        Column("first_received_at", MOMENT, "", "When the server had its first message."),
        Column("last_received_at", MOMENT, "", "When it had the last one."),
        Column("seen_at", MOMENT, "", "Its last sign of life, as the server's clock has it."),
        Column("next_s", pa.float64(), "s", "Until the message after that."),
        Column("phase", NAME, "", "running or closed."),
        Column("reason", NAME, "", "Why it closed; null while it runs, and where nothing tells."),
        Column("idle_s", pa.float64(), "s", "How long it had been idle at its last message; null if it worked."),
        Column("idle_timeout_s", pa.float64(), "s", "After how long idleness it closes itself; null for never."),
        Column("n_threads", SMALL, "count", "Threads of its workers at its last message."),
        Column("up_s", pa.float64(), "s", "From the start to the last message."),
        Column("peak_workers", SMALL, "count", "Most workers at a time."),
        Column("peak_memory_bytes", COUNT, "bytes", "Most memory at a time."),
        Column("n_tasks", COUNT, "count", "Tasks ever seen."),
        Column("n_tasks_erred", COUNT, "count", "Tasks that failed themselves."),
        Column("thread_us", COUNT, "us", "Threads x time offered."),
        Column("action_us", ACTIONS, "us", "Worker time by action."),
        Column("failed_us", COUNT, "us", "Worker time in tasks that failed; null where Dask does not tell."),
        Column("machines", pa.list_(MACHINE), "", "The machines of its workers, by kind."),
        Column("usage_at", MOMENT, "", "When the lake was asked for these two; null if it was not yet."),
        Column("dollars", pa.float64(), "USD", "What it cost; null if no worker was seen."),
        Column("idle_dollars", pa.float64(), "USD", "Of it, for thread time in which no task ran."),
        Column("failed_dollars", pa.float64(), "USD", "Of it, for tasks that failed; null where Dask does not tell."),
        Column("currency", NAME, "", "Of the three: USD unless the prices say another."),
        Column("quality", NAME, "", "measured, estimated or unknown: how the cost was found."),
        Column("basis", NAME, "", "What it was found from."),
        Column("prices", NAME, "", "Which price table that was: its digest."),
        Column("row", NAME, "", "The registry's row, JSON."),
    ),
    order=("account", "cluster_id"),
)  # fmt: skip
