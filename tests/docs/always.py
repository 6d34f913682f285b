"""What leaves a cluster that reports whatever the switches say, and why it must. A test finds what nobody placed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Always:
    """`columns`: table to the names of its columns, with blanks between; an empty table is what all start with.

    `identity` and `totals` are parts of the message that the registry keeps the last of: fields that have no column.
    """

    what: str
    reason: str
    columns: dict[str, str]


ALWAYS = (
    Always(
        "whose message it is",
        "Rows of different clusters, messages and accounts are told apart, and a message that comes twice counts once. "
        "Account, number and time of arrival are the server's own.",
        {"": "account cluster cluster_id boot seq received_at at", "samples": "uptime_us skew_ms"},
    ),
    Always(
        "which cluster it is",
        "A page lists clusters by name, user, host and start; `name` and `tags` are yours to choose.",
        {"clusters": "name scheduler_id user user_claimed host started_at kind tags", "identity": "address dashboard"},
    ),
    Always(
        "what it runs on",
        "Packages that differ between processes are what often keeps a cluster from working: versions of Python and "
        "packages, and where the interpreter is.",
        {"clusters": "python platform python_path versions", "members": "python python_path os machine packages"},
    ),
    Always(
        "who takes part",
        "Workers and clients that came and went are the cluster's story, and threads x time its cost. A worker is "
        "known by address, name and host.",
        {
            "members": "no role id name host joined_at left_at n_threads memory_limit_bytes agent",
            "workers": "address name status n_threads memory_limit_mib",
            "samples": "n_workers n_threads n_clients thread_us desired_workers adaptive_minimum adaptive_maximum "
            "memory_limit_bytes",
            "totals": "peak_workers",
        },
    ),
    Always(
        "whether it ended, and how",
        "Without it, a cluster that closed cannot be told from one that was lost.",
        {"samples": "phase reason idle_since", "totals": "idle_timeout_us", "identity": "remote_close"},
    ),
    Always(
        "how busy it is",
        "Numbers alone: is it still running, what does it wait for, does it run out of memory?",
        {
            "samples": "memory_bytes managed_bytes spilled_bytes waiting queued no_worker processing in_memory erred "
            "held_bytes n_tasks n_tasks_erred action_us scheduler_cpu_pct scheduler_memory_bytes scheduler_loop_ms "
            "cpu_pct net_read_kib_s net_write_kib_s disk_read_kib_s disk_write_kib_s worker_loop_ms gpu_pct "
            "gpu_memory_mib",
            "totals": "peak_memory_bytes",
            "workers": "memory_mib managed_mib spilled_mib cpu_pct executing ready in_memory net_read_kib_s "
            "net_write_kib_s disk_read_kib_s disk_write_kib_s loop_interval_ms gpu_pct gpu_memory_mib",
        },
    ),
    Always(
        "why workers went",
        "A worker that died takes its log with it. `processing` are the names of up to 20 of its tasks.",
        {
            "samples": "n_workers_lost",
            "deaths": "no died_at worker name host expected reason memory_bytes memory_limit_bytes "
            "memory_slope_bytes_s n_processing processing n_results_lost",
        },
    ),
    Always(
        "what was computed",
        "Counts, times and sizes by group of tasks, with the names that Dask, your libraries or you gave them, and the "
        "type names of results: what takes the time? Never a task's arguments or result.",
        {
            "groups": "no name prefix computation span start_at stop_at n_tasks nbytes states action_us dependencies "
            "types",
            "computations": "no start_at stop_at",
            "totals": "n_computations n_groups",
            "spans": "id parent name enqueued_at start_at stop_at collections",
            "fine_metrics": "span context prefix activity unit value",
        },
    ),
    Always(
        "what daskscope itself did",
        "So that its own cost, and whatever it left out, can be seen.",
        {
            "samples": "self_cpu_us self_slowest_us self_messages self_bytes self_failed_tries self_detail lost merged",
            "identity": "plugin_version",
        },
    ),
)
