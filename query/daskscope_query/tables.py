"""The tables of the lake: each column with its Arrow type, unit and meaning, and the key that tells repeats apart.

One rule reads them all: of the rows with the same key, the one with the highest `seq` counts. It drops repeats of a
message that was delivered twice, and keeps the last snapshot of what was sent several times as it grew.

Schemas only ever gain nullable columns; `VERSION` goes into each file's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

VERSION = 2

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
        Column("kind", NAME, "", "What made it: LocalCluster, SLURMCluster, ...; empty if nothing told."),
        Column("python_path", NAME, "", "Interpreter of the scheduler."),
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
        Column("idle_since", MOMENT, "", "Since when there was nothing to do, null while it works."),
        Column("n_tasks", COUNT, "count", "Tasks ever seen, running total."),
        Column("n_tasks_erred", COUNT, "count", "Tasks that failed themselves, running total."),
        Column("thread_us", COUNT, "us", "Threads x time offered, running total."),
        Column("action_us", ACTIONS, "us", "Worker time by action, running totals."),
        Column("desired_workers", SMALL, "count", "Workers that Dask would have for the tasks, asked once a minute."),
        Column("adaptive_minimum", SMALL, "count", "Least of adaptive scaling, null where it is off or not known."),
        Column("adaptive_maximum", SMALL, "count", "Most of adaptive scaling, null where off, unlimited or not known."),
        Column("n_workers_lost", COUNT, "count", "Workers that went without being asked to, running total."),
        Column("scheduler_cpu_pct", SMALL, "% of a core", "CPU use of the scheduler."),
        Column("scheduler_memory_bytes", COUNT, "bytes", "Process memory of the scheduler."),
        Column("scheduler_loop_ms", SMALL, "ms", "Mean interval of the ticks of the scheduler's event loop."),
        Column("cpu_pct", COUNT, "% of a core", "CPU use of all workers."),
        Column("net_read_kib_s", COUNT, "KiB/s", "Received by the workers' hosts."),
        Column("net_write_kib_s", COUNT, "KiB/s", "Sent by the workers' hosts."),
        Column("disk_read_kib_s", COUNT, "KiB/s", "Read by the workers' hosts."),
        Column("disk_write_kib_s", COUNT, "KiB/s", "Written by the workers' hosts."),
        Column("worker_loop_ms", SMALL, "ms", "Event loop's mean interval of the slowest worker."),
        Column("gpu_pct", COUNT, "% of a GPU", "GPU use of all workers, null where none has one."),
        Column("gpu_memory_mib", COUNT, "MiB", "GPU memory used by all workers, null where none has one."),
        Column("self_cpu_us", COUNT, "us", "CPU time of daskscope's own threads, running total."),
        Column("self_slowest_us", COUNT, "us", "Its longest single visit to the event loop."),
        Column("self_messages", COUNT, "count", "Messages delivered, running total."),
        Column("self_bytes", COUNT, "bytes", "Their size as posted, running total."),
        Column("self_failed_tries", COUNT, "count", "Tries after which a message was tried again, running total."),
        Column("self_detail", COUNT, "count", "Levels of detail left out to stay within the budget."),
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
        Column("gpu_pct", SMALL, "% of a GPU", "GPU use, null where no worker has one."),
        Column("gpu_memory_mib", COUNT, "MiB", "GPU memory used, null where no worker has one."),
    ),
)  # fmt: skip

MEMBERS = Table(
    "members", "Processes of a cluster, and where they ran: the last snapshot of each.",
    ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the process in its boot."),
        Column("role", NAME, "", "scheduler, worker or client."),
        Column("id", NAME, "", "Address of a scheduler or worker, id of a client."),
        Column("name", NAME, "", "Its name."),
        Column("host", NAME, "", "Its host."),
        Column("joined_at", MOMENT, "", "When it came."),
        Column("left_at", MOMENT, "", "When it went, null while it is there."),
        Column("n_threads", SMALL, "count", "Threads, 0 for a scheduler or client."),
        Column("memory_limit_bytes", COUNT, "bytes", "Memory limit, 0 if none."),
        Column("python", NAME, "", "Python version; null, as all that follows, where the process did not tell."),
        Column("python_path", NAME, "", "Its interpreter."),
        Column("os", NAME, "", "Operating system."),
        Column("machine", NAME, "", "Architecture."),
        Column("packages", pa.map_(pa.string(), pa.string()), "", "Package to version."),
        Column("cores", SMALL, "count", "Cores of the machine."),
        Column("memory_bytes", COUNT, "bytes", "Memory of the machine."),
        Column("gpus", pa.list_(pa.string()), "", "Names of its GPUs."),
        Column("provider", NAME, "", "Cloud provider: aws."),
        Column("instance_type", NAME, "", "Instance type."),
        Column("region", NAME, "", "Region."),
        Column("zone", NAME, "", "Availability zone."),
        Column("lifecycle", NAME, "", "on-demand, spot, ..."),
        Column("agent", NAME, "", "running, or why its logs and profile are not sent."),
    ),
)  # fmt: skip

DEATHS = Table(
    "deaths", "Workers that went, and why.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the row in its boot."),
        Column("died_at", MOMENT, "", "When the scheduler let it go."),
        Column("worker", NAME, "", "Address of the worker."),
        Column("name", NAME, "", "Its name."),
        Column("host", NAME, "", "Its host."),
        Column("expected", pa.bool_(), "", "Whether somebody asked for it."),
        Column("reason", NAME, "", "nanny-memory, worker-ttl, retired, ...; lost if nothing tells."),
        Column("memory_bytes", COUNT, "bytes", "Process memory as last heard of."),
        Column("memory_limit_bytes", COUNT, "bytes", "Its limit, 0 if none."),
        Column("memory_slope_bytes_s", COUNT, "bytes/s", "How fast it grew at the end."),
        Column("n_processing", COUNT, "count", "Tasks that it had been given."),
        Column("processing", pa.list_(pa.string()), "", "Keys of these, at most 20."),
        Column("n_results_lost", COUNT, "count", "Results that were nowhere else."),
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

EXCEPTIONS = Table(
    "exceptions", "Failed tasks, those alike within an interval in one row.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the row in its boot."),
        Column("origin", NAME, "", "user, scheduler (it gave the task up) or dask (its own failure); null means user."),
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

LOGS = Table(
    "logs", "Log lines of schedulers, workers and nannies.", ("account", "cluster", "boot", "no"),
    (
        *ORIGIN,
        Column("no", COUNT, "", "Number of the line in its boot."),
        Column("logged_at", MOMENT, "", "When it was logged, by the scheduler's clock."),
        Column("level", SMALL, "", "As Python's logging counts: 30 is WARNING."),
        Column("logger", NAME, "", "Name of the logger."),
        Column("role", NAME, "", "scheduler, worker or nanny."),
        Column("worker", NAME, "", "Address of the worker, also of a nanny's; null for the scheduler."),
        Column("text", NAME, "", "The line, with its traceback."),
        Column("dropped", COUNT, "count", "Lines of that process dropped before this one."),
    ),
)  # fmt: skip

PROFILES = Table(
    "profiles", "What workers were doing: stacks, and how often each was met.",
    ("account", "cluster", "boot", "seq", "no"),
    (
        *ORIGIN,
        Column("no", SMALL, "", "Number of the stack in its message."),
        Column("from_at", MOMENT, "", "Start of the interval."),
        Column("to_at", MOMENT, "", "Its end."),
        Column("n_workers", SMALL, "count", "Workers that were looked at."),
        Column("sample_us", COUNT, "us", "Time from one look to the next."),
        Column("prefix", NAME, "", "Task prefix."),
        Column("stack", pa.list_(pa.string()), "", "Outermost frame first: function (file:line); empty for rare ones."),
        Column("count", COUNT, "count", "Samples."),
    ),
)  # fmt: skip

TABLES = {
    t.name: t
    for t in (
        CLUSTERS, SAMPLES, WORKERS, MEMBERS, DEATHS, GROUPS, COMPUTATIONS, SPANS, FINE_METRICS, TASKS, EXCEPTIONS,
        EVENTS, LOGS, PROFILES,
    )
}  # fmt: skip

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
