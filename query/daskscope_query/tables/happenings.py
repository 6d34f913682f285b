"""What happened: exceptions, events, log lines, and where the time went."""

from __future__ import annotations

import pyarrow as pa

from daskscope_query.tables.column import COUNT, MOMENT, NAME, ORIGIN, SMALL, Column, Table

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
