"""What was computed: groups, computations, spans, fine metrics, tasks."""

from __future__ import annotations

import pyarrow as pa

from daskscope_query.tables.column import ACTIONS, COUNT, MOMENT, NAME, ORIGIN, SMALL, Column, Table

GROUPS = Table(
    "groups", "Task groups: the last snapshot of each.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the group in its boot."),
        Column("name", NAME, "", "Dask's name of the group."),
        Column("prefix", NAME, "", "Dask's task prefix."),
        Column("computation", SMALL, "", "Number of the computation that made it, null if none did (scatter)."),
        Column("span", NAME, "", "Id of its span."),
        Column("start_at", MOMENT, "", "First task's start, null if none succeeded."),
        Column("stop_at", MOMENT, "", "Last task's end, null if none succeeded."),
        Column("n_tasks", COUNT, "count", "Tasks."),
        Column("nbytes", COUNT, "bytes", "Size of the results made."),
        Column("states", ACTIONS, "count", "Tasks by Dask's state."),
        Column("action_us", ACTIONS, "us", "Worker time by action."),
        Column("dependencies", pa.list_(pa.int32()), "", "Numbers of the groups it depends on."),
        Column("types", pa.list_(pa.string()), "", "Type names of the results."),
    ),
)  # fmt: skip

FRAME = pa.struct([("code", pa.string()), ("file", pa.string()), ("line", pa.int32()), ("line_in_code", pa.int32())])

COMPUTATIONS = Table(
    "computations", "Computations: the last snapshot of each.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the computation in its boot."),
        Column("start_at", MOMENT, "", "When the scheduler got the first graph."),
        Column("stop_at", MOMENT, "", "When the last task ended, null while it runs."),
        Column("code", pa.list_(pa.list_(FRAME)), "", "For each call, its frames: hash, file, line, line in the code."),
    ),
)  # fmt: skip

SPANS = Table(
    "spans", "Dask's spans: the last snapshot of each.", ("account", "cluster", "boot", "id"),
    (
        *ORIGIN,
        Column("id", NAME, "", "Dask's id of the span."),
        Column("parent", NAME, "", "Id of the span around it, null if there is none."),
        Column("name", pa.list_(pa.string()), "", "Its tags from the outermost span in."),
        Column("enqueued_at", MOMENT, "", "When its first graph came."),
        Column("start_at", MOMENT, "", "First task's start, null if none succeeded."),
        Column("stop_at", MOMENT, "", "When its last task ended, null while it runs."),
        Column("collections", NAME, "", "What was computed, as Dask tells it, JSON."),
    ),
)  # fmt: skip

FINE_METRICS = Table(
    "fine_metrics", "Dask's fine performance metrics: the last total of each.",
    ("account", "cluster", "boot", "span", "context", "prefix", "activity", "unit"),
    (
        *ORIGIN,
        Column("span", NAME, "", "Id of the span, null for what belongs to none."),
        Column("context", NAME, "", "execute, p2p, get-data, ..."),
        Column("prefix", NAME, "", "Task prefix in execute, where in p2p."),
        Column("activity", NAME, "", "thread-cpu, disk-read, deserialize, failed, cancelled, ..."),
        Column("unit", NAME, "", "seconds, bytes, count, or the user's own."),
        Column("value", pa.float64(), "as `unit`", "Running total."),
    ),
)  # fmt: skip

TASKS = Table(
    "tasks", "Tasks one by one, where a setting asks for them.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", COUNT, "", "Number of the row in its boot."),
        Column("group_no", SMALL, "", "Task group, null if the scheduler had forgotten it."),
        Column("worker", NAME, "", "Address of the worker."),
        Column("start_at", MOMENT, "", "Start of computing."),
        Column("duration_us", COUNT, "us", "Time of computing, three digits of it."),
        Column("nbytes", COUNT, "bytes", "Size of the result."),
        Column("erred", pa.bool_(), "", "Whether it failed."),
        Column("weight", SMALL, "count", "Tasks that the row stands for."),
    ),
)  # fmt: skip
