"""The tables of the lake: each column with its Arrow type, unit and meaning, and the key that tells repeats apart.

One rule reads them all: of the rows with the same key, the one with the highest `seq` counts. It drops repeats of a
message that was delivered twice, and keeps the last snapshot of what was sent several times as it grew.

Schemas only ever gain nullable columns; `VERSION` goes into each file's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

VERSION = 1

MOMENT = pa.timestamp("ms", tz="UTC")
NAME = pa.string()
COUNT = pa.int64()
SMALL = pa.int32()
ACTIONS = pa.map_(pa.string(), pa.int64())


@dataclass(frozen=True, slots=True)
class Column:
    """`unit` is empty where the type says enough."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """`key`: the columns that tell one row from another, besides `seq`."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        described = [pa.field(c.name, c.type, metadata={"unit": c.unit, "meaning": c.meaning}) for c in self.columns]
        return pa.schema(described, metadata={"daskscope.table": self.name, "daskscope.version": str(VERSION)})


ORIGIN = (
    Column("account", NAME, "", "Whose cluster it is, from the token."),
    Column("cluster", NAME, "", "The cluster's UUID, 32 hex digits."),
    Column("cluster_id", COUNT, "", "The cluster's number in its account."),
    Column("boot", NAME, "", "One run of the plugin; sorts by time."),
    Column("seq", COUNT, "", "Number of the message in its boot."),
    Column("received_at", MOMENT, "", "When the server had the message, by the server's clock."),
    Column("at", MOMENT, "", "When the message was made, by the scheduler's clock."),
)
"""The columns that every table starts with."""

CLUSTERS = Table(
    "clusters", "What a cluster is, and how it ended.", ("account", "cluster", "boot"),
    (
        *ORIGIN,
        Column("name", NAME, "", "Name on the pages."),
        Column("scheduler_id", NAME, "", "Dask's own id of the scheduler."),
        Column("user", NAME, "", "Operating system's user, as claimed."),
        Column("host", NAME, "", "Host of the scheduler."),
        Column("started_at", MOMENT, "", "Start of the scheduler."),
        Column("python", NAME, "", "Python version of the scheduler."),
        Column("platform", NAME, "", "Operating system and machine."),
        Column("versions", pa.map_(pa.string(), pa.string()), "", "Package to version."),
        Column("tags", pa.map_(pa.string(), pa.string()), "", "The user's labels."),
    ),
)  # fmt: skip

SAMPLES = Table(
    "samples", "The cluster's totals, once an interval.", ("account", "cluster", "boot", "seq"),
    (
        *ORIGIN,
        Column("uptime_us", COUNT, "us", "Monotonic time since the boot."),
        Column("n_workers", SMALL, "count", "Workers connected."),
        Column("n_threads", SMALL, "count", "Their threads."),
        Column("n_clients", SMALL, "count", "Clients connected."),
        Column("memory_bytes", COUNT, "bytes", "Process memory of all workers."),
        Column("managed_bytes", COUNT, "bytes", "Of it, task results that Dask knows of."),
        Column("spilled_bytes", COUNT, "bytes", "Task results on disk."),
        Column("memory_limit_bytes", COUNT, "bytes", "Sum of the workers' limits."),
        Column("waiting", COUNT, "count", "Tasks that wait for others."),
        Column("queued", COUNT, "count", "Tasks held back until a worker has room."),
        Column("no_worker", COUNT, "count", "Tasks that no present worker may run."),
        Column("processing", COUNT, "count", "Tasks on workers, running or about to."),
        Column("in_memory", COUNT, "count", "Task results kept."),
        Column("erred", COUNT, "count", "Tasks in the erred state."),
        Column("held_bytes", COUNT, "bytes", "Size of the results kept."),
        Column("n_tasks", COUNT, "count", "Tasks ever seen, running total."),
        Column("n_tasks_erred", COUNT, "count", "Tasks that failed themselves, running total."),
        Column("thread_us", COUNT, "us", "Threads x time offered, running total."),
        Column("action_us", ACTIONS, "us", "Worker time by action, running totals."),
        Column("phase", NAME, "", "running or closed."),
        Column("reason", NAME, "", "Why it closed."),
        Column("lost", ACTIONS, "count", "What the plugin dropped, by reason, running totals."),
    ),
)  # fmt: skip

WORKERS = Table(
    "workers", "Each worker, once an interval.", ("account", "cluster", "boot", "seq", "address"),
    (
        *ORIGIN,
        Column("address", NAME, "", "Address of the worker."),
        Column("name", NAME, "", "Name of the worker."),
        Column("status", NAME, "", "Dask's status: running, paused, closing_gracefully, ..."),
        Column("n_threads", SMALL, "count", "Threads."),
        Column("memory_limit_mib", COUNT, "MiB", "Memory limit, 0 if none."),
        Column("memory_mib", COUNT, "MiB", "Process memory."),
        Column("managed_mib", COUNT, "MiB", "Of it, task results."),
        Column("spilled_mib", COUNT, "MiB", "Task results on disk."),
        Column("cpu_pct", SMALL, "% of a core", "CPU use."),
        Column("executing", SMALL, "count", "Tasks that run."),
        Column("ready", SMALL, "count", "Tasks ready to run."),
        Column("in_memory", SMALL, "count", "Task results kept."),
        Column("net_read_kib_s", COUNT, "KiB/s", "Received by the host."),
        Column("net_write_kib_s", COUNT, "KiB/s", "Sent by the host."),
        Column("disk_read_kib_s", COUNT, "KiB/s", "Read by the host."),
        Column("disk_write_kib_s", COUNT, "KiB/s", "Written by the host."),
        Column("loop_interval_ms", SMALL, "ms", "Mean interval of the event loop's ticks."),
    ),
)  # fmt: skip

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

EXCEPTIONS = Table(
    "exceptions", "Failed tasks, those alike within an interval in one row.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the row in its boot."),
        Column("type", NAME, "", "Type of the exception."),
        Column("text", NAME, "", "Its text."),
        Column("traceback", NAME, "", "Its traceback."),
        Column("key", NAME, "", "The first of the failing tasks."),
        Column("prefix", NAME, "", "Their task prefix."),
        Column("group_no", SMALL, "", "Their task group, null if the scheduler had forgotten it."),
        Column("workers", pa.list_(pa.string()), "", "Where it failed, at most 10 addresses."),
        Column("first_at", MOMENT, "", "First failure."),
        Column("last_at", MOMENT, "", "Last failure."),
        Column("count", COUNT, "count", "Failed tasks."),
    ),
)  # fmt: skip

EVENTS = Table(
    "events", "What Dask and users logged as events; workers that came and went.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the event in its boot."),
        Column("logged_at", MOMENT, "", "When it was logged."),
        Column("topic", NAME, "", "Dask's topic."),
        Column("action", NAME, "", "Dask's action, or empty."),
        Column("worker", NAME, "", "Address of the worker it is about."),
        Column("detail", NAME, "", "The rest of it, JSON."),
    ),
)  # fmt: skip

TABLES = {t.name: t for t in (CLUSTERS, SAMPLES, WORKERS, GROUPS, COMPUTATIONS, EXCEPTIONS, EVENTS)}

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
    "exceptions_daily", "Exceptions of a day, by user and kind.", ("account", "day", "user", "type", "text", "prefix"),
    (
        Column("account", NAME, "", "Whose."),
        Column("day", pa.date32(), "", "Arrival day."),
        Column("user", NAME, "", "Operating system's user."),
        Column("type", NAME, "", "Type of the exception."),
        Column("text", NAME, "", "Its text."),
        Column("prefix", NAME, "", "Task prefix."),
        Column("n_clusters", COUNT, "count", "Clusters it happened on."),
        Column("count", COUNT, "count", "Failed tasks."),
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
    ),
)  # fmt: skip

ROLLUPS = {t.name: t for t in (PREFIXES_DAILY, EXCEPTIONS_DAILY, CLUSTERS_DAILY)}
