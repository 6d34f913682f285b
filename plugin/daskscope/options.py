"""The option table: key, default, unit and meaning of all that stands under `daskscope:` in Dask's configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daskscope import parsing

FAILURE_TOPICS = ("invalid-worker-transition", "invalid-worker-task-state", "worker-fail-hard")
"""Event topics in which Dask reports its own failures."""


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table; `parse(key, value)` gives the field's value or raises SettingsError."""

    key: str
    field: str
    default: Any
    unit: str
    meaning: str
    parse: Callable[[str, Any], Any]
    governs: tuple[str, ...] = ()
    """Tables of the lake, or columns (`table.column`), that stay empty where it is off."""
    off: Any = None
    """The value that turns these off."""
    purpose: str = ""
    """What these are collected for."""
    stops: str = ""
    """Where collecting them stops then."""

    @property
    def environment(self) -> str:
        return "DASK_DASKSCOPE__" + self.key.replace(".", "__").replace("-", "_").upper()


OPTIONS = (
    Option(
        "server",
        "server",
        None,
        "URL",
        "Where to report; null is where `daskscope login` was, else it looks for `daskscope serve` on 127.0.0.1:8790. "
        "`file:///FOLDER` keeps messages there and needs no server.",
        parsing.url,
    ),
    Option(
        "token",
        "token",
        None,
        "",
        "Proves who asks; null takes that of `daskscope login`, or of the server on this machine.",
        parsing.token,
    ),
    Option(
        "ingest-token",
        "ingest_token",
        None,
        "",
        "The token that is shipped to schedulers, where its scope should be ingest alone; null ships `token`, or what "
        "`daskscope login` got for them.",
        parsing.token,
    ),
    Option(
        "account",
        "account",
        None,
        "",
        "Where clusters report to, and whose to list, of the accounts that the token's user is in; null means the "
        "token's own.",
        parsing.account,
    ),
    Option(
        "data",
        "data",
        None,
        "folder",
        "Where the embedded server keeps its files, and messages are kept while there is no server.",
        parsing.folder,
    ),
    Option(
        "spool",
        "spool",
        None,
        "folder",
        "Keep messages in this folder of the scheduler's machine, too, until the server has them; what a scheduler "
        "that is killed leaves there, the user's next one delivers. null: in memory alone.",
        parsing.optional_folder,
    ),
    Option(
        "name",
        "name",
        None,
        "",
        "The cluster's name on the pages; null takes the scheduler's host and id.",
        parsing.text,
    ),
    Option("tags", "tags", {}, "", "Labels of the cluster, like {project: climate}.", parsing.tags),
    Option("analytics.disabled", "disabled", False, "", "Report nothing at all.", parsing.switch),
    Option("analytics.interval", "interval_s", "10s", "seconds", "Time between two messages.", parsing.interval),
    Option(
        "analytics.computation.code.transmit",
        "code",
        True,
        "",
        "Send the user's code around `compute` calls.",
        parsing.switch,
        governs=("computations.code",),
        off=False,
        purpose="To know a computation by the lines that started it.",
        stops="On the scheduler: code is not looked at. Where the switch is off when daskscope is imported, Dask's "
        "client is not asked to send it to the scheduler, either.",
    ),
    Option(
        "analytics.computation.interval",
        "computation_interval_s",
        None,
        "seconds",
        "Least time between two messages that tell of computations, spans and task groups; null: in every one.",
        parsing.optional_interval,
    ),
    Option(
        "analytics.exceptions.transmit",
        "exceptions",
        True,
        "",
        "Send texts and tracebacks of failed tasks and of Dask's own failures, also of those that are events. What is "
        "logged with a traceback is a log line.",
        parsing.switch,
        governs=("exceptions",),
        off=False,
        purpose="To say what failed, where and why.",
        stops="On the scheduler: failed tasks are counted, and nothing else of them is read; nor are texts of Dask's "
        "own failures, wherever it tells them.",
    ),
    Option(
        "analytics.events.allow",
        "events",
        list(FAILURE_TOPICS),
        "topics",
        'Which event topics to send; ["*"] for all, [] for none.',
        parsing.topics,
        governs=("events",),
        off=[],
        purpose="To see what Dask, libraries and users noted in the course of time.",
        stops="On the scheduler: a topic that is not in the list is not read. When workers came and went, and why, is "
        "read from Dask's own topics all the same, for `members` and `deaths`.",
    ),
    Option(
        "analytics.events.interval",
        "events_interval_s",
        None,
        "seconds",
        "Least time between two messages that tell of events; null: in every one.",
        parsing.optional_interval,
    ),
    Option(
        "analytics.logs.level",
        "logs",
        "warning",
        "level",
        "Send log lines of scheduler, workers and nannies, with the tracebacks in them, from this level on: debug, "
        "info, warning, error, critical, or off.",
        parsing.level,
        governs=("logs",),
        off="off",
        purpose="To read the lines of workers that are gone.",
        stops="On each scheduler, worker and nanny: nothing listens to their logs. Lines below the level never leave "
        "the process that logged them.",
    ),
    Option(
        "analytics.profile.transmit",
        "profile",
        True,
        "",
        "Send what functions workers spend their time in.",
        parsing.switch,
        governs=("profiles",),
        off=False,
        purpose="To see which functions take the time.",
        stops="On each worker: nothing looks at what its threads are doing.",
    ),
    Option(
        "analytics.profile.interval",
        "profile_interval_s",
        "60s",
        "seconds",
        "Time between two profiles of a worker; beyond 100 workers doubled whenever their number doubles.",
        parsing.profile_interval,
    ),
    Option(
        "analytics.tasks.transmit",
        "tasks",
        False,
        "",
        "Send a row for each task: worker, start, duration.",
        parsing.switch,
        governs=("tasks",),
        off=False,
        purpose="To look at single tasks: which ran where, and for how long.",
        stops="On the scheduler: nothing looks at single tasks.",
    ),
    Option(
        "analytics.hardware.transmit",
        "hardware",
        True,
        "",
        "Send cores and memory of the machines and, on EC2, what its metadata service tells: instance type, region, "
        "zone, spot or not.",
        parsing.switch,
        governs=(
            "members.cores",
            "members.memory_bytes",
            "members.gpus",
            "members.provider",
            "members.instance_type",
            "members.region",
            "members.zone",
            "members.lifecycle",
        ),
        off=False,
        purpose="To say what a cluster cost.",
        stops="On scheduler and workers: nothing looks at the machine, and EC2's metadata service is not asked.",
    ),
    Option(
        "analytics.idle.timeout",
        "idle_timeout_s",
        None,
        "seconds",
        "Close the cluster after it has had nothing to do for so long; null never does. A "
        "`distributed.scheduler.idle-timeout` of Dask's own wins.",
        parsing.span_of_time,
    ),
    Option(
        "analytics.remote-close",
        "remote_close",
        True,
        "",
        "Close the cluster when somebody of the account asks for it on the server.",
        parsing.switch,
    ),
    Option(
        "analytics.scrub.secrets",
        "scrub",
        True,
        "",
        "Mask what looks like a secret (passwords, tokens, keys) in code, tracebacks, events, log lines and names "
        "before it is sent. The cluster's own token is always masked.",
        parsing.switch,
    ),
    Option(
        "analytics.scrub.words",
        "scrub_words",
        [],
        "",
        "More names whose values are masked like a password's, like [patient_id].",
        parsing.words,
    ),
    Option(
        "analytics.scrub.patterns",
        "scrub_patterns",
        [],
        "",
        "Regular expressions, tried on pieces of 128 characters of a line; what they match is masked, too.",
        parsing.patterns,
    ),
    Option(
        "analytics.budget",
        "budget_pct",
        1.0,
        "% of a core",
        "CPU time that the plugin allows itself on the scheduler; above it, it reports less often and in less detail. "
        "null: no limit.",
        parsing.percent,
    ),
)
"""Every option there is. Anything else under `daskscope:` is warned about by name."""
