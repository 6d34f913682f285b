"""What each table takes of a message. A field with a column of its name goes there by itself; the rest stands here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import repeat
from typing import Any

from daskscope import wire
from daskscope_lambdas.service.rows_columns import Columns
from daskscope_query import tables


def _shared(table: tables.Table, kind: type[Any], *but: str) -> tuple[str, ...]:
    """Fields of `kind` with a column of the same name, in the table's order."""
    names = {field.name for field in fields(kind)} - set(but)
    return tuple(column.name for column in table.columns if column.name in names)


def _add_objects(columns: Columns, found: Sequence[Any], same: Sequence[str], renamed: Mapping[str, str]) -> int:
    """A row for each object; `renamed`: column to field."""
    if found:
        for name in same:
            columns[name] += [getattr(each, name) for each in found]
        for name, field in renamed.items():
            columns[name] += [getattr(each, field) for each in found]
    return len(found)


def _add_columns(columns: Columns, found: Any, same: Sequence[str], renamed: Mapping[str, str]) -> None:
    """The columns of a part that is a table itself; `renamed`: our column to its."""
    for name in same:
        columns[name] += getattr(found, name)
    for name, field in renamed.items():
        columns[name] += getattr(found, field)


_IDENTITY = _shared(tables.CLUSTERS, wire.Identity, "versions", "tags")


def _clusters(columns: Columns, message: wire.Message) -> int:
    identity = message.identity
    if identity is None:
        return 0
    for name in _IDENTITY:
        columns[name].append(getattr(identity, name))
    columns["started_at"].append(identity.started_at_ms)
    columns["versions"].append(list(identity.versions.items()))
    columns["tags"].append(list(identity.tags.items()))
    return 1


_TOTALS = _shared(tables.SAMPLES, wire.Totals, "action_us")
_SUMS = ("cpu_pct", "net_read_kib_s", "net_write_kib_s", "disk_read_kib_s", "disk_write_kib_s")
_GPU = ("gpu_pct", "gpu_memory_mib")
_ITSELF = {
    "self_cpu_us": "cpu_us",
    "self_slowest_us": "slowest_us",
    "self_messages": "n_messages",
    "self_bytes": "n_bytes",
    "self_failed_tries": "n_failed_tries",
    "self_detail": "detail",
}


def _samples(columns: Columns, message: wire.Message) -> int:
    """All but `skew_ms`, which the message does not know."""
    if message.part:
        return 0  # its totals come with the message itself
    totals, workers, itself = message.totals, message.workers, message.itself
    sums = message.sums
    for name in _TOTALS:
        columns[name].append(getattr(totals, name))
    for name in _SUMS:
        told = getattr(workers, name)
        columns[name].append(sums.get(name, sum(told) if told or not totals.n_workers else None))
    for name in _GPU:
        told = getattr(workers, name)
        columns[name].append(sums.get(name, sum(told) if told else None))
    columns["worker_loop_ms"].append(sums.get("loop_interval_ms", max(workers.loop_interval_ms, default=None)))
    for name, field in _ITSELF.items():
        columns[name].append(getattr(itself, field))
    columns["uptime_us"].append(message.uptime_us)
    columns["merged"].append(message.merged)
    columns["idle_since"].append(totals.idle_since_ms)
    columns["action_us"].add(totals.action_us)
    columns["phase"].append(message.phase)
    columns["reason"].append(message.reason)
    columns["lost"].add(message.lost)
    return 1


_WORKER = _shared(tables.WORKERS, wire.Workers, *_GPU)


def _workers(columns: Columns, message: wire.Message) -> int:
    workers, n = message.workers, len(message.workers.address)
    if n:
        _add_columns(columns, workers, _WORKER, {})
        for name in _GPU:
            columns[name] += getattr(workers, name) or repeat(None, n)
    return n


_MEMBER = _shared(tables.MEMBERS, wire.Member)
_ENVIRONMENT = _shared(tables.MEMBERS, wire.Environment, "packages")
_HARDWARE = _shared(tables.MEMBERS, wire.Hardware)


def _members(columns: Columns, message: wire.Message) -> int:
    members = message.members
    if members:
        _add_objects(columns, members, _MEMBER, {"joined_at": "joined_ms", "left_at": "left_ms"})
        # One list of pairs for all members that share an environment.
        packages = [list(environment.packages.items()) for environment in message.environments]
        for member in members:
            software = None if member.environment is None else message.environments[member.environment]
            hardware = None if member.hardware is None else message.hardware[member.hardware]
            for name in _ENVIRONMENT:
                columns[name].append(getattr(software, name, None))
            columns["packages"].append(None if member.environment is None else packages[member.environment])
            for name in _HARDWARE:
                columns[name].append(getattr(hardware, name, None))
    return len(members)


_DEATH = _shared(tables.DEATHS, wire.Death)


def _deaths(columns: Columns, message: wire.Message) -> int:
    return _add_objects(columns, message.deaths, _DEATH, {"died_at": "at_ms"})


_GROUP = _shared(tables.GROUPS, wire.Groups, "states", "action_us")


def _groups(columns: Columns, message: wire.Message) -> int:
    groups, n = message.groups, len(message.groups.no)
    if n:
        _add_columns(columns, groups, _GROUP, {"start_at": "start_ms", "stop_at": "stop_ms"})
        columns["states"].add_columns(groups.states, n)
        columns["action_us"].add_columns(groups.action_us, n)
    return n


_FRAME = tuple(field.name for field in tables.FRAME)


def _computations(columns: Columns, message: wire.Message) -> int:
    n = _add_objects(columns, message.computations, ("no",), {"start_at": "start_ms", "stop_at": "stop_ms"})
    for computation in message.computations:
        columns["code"].append(
            [[{name: getattr(f, name) for name in _FRAME} for f in call] for call in computation.code]
        )
    return n


_SPAN = _shared(tables.SPANS, wire.Span)


def _spans(columns: Columns, message: wire.Message) -> int:
    moments = {"enqueued_at": "enqueued_ms", "start_at": "start_ms", "stop_at": "stop_ms"}
    return _add_objects(columns, message.spans, _SPAN, moments)


_METRIC = _shared(tables.FINE_METRICS, wire.Metrics)


def _fine_metrics(columns: Columns, message: wire.Message) -> int:
    n = len(message.metrics.value)
    if n:
        _add_columns(columns, message.metrics, _METRIC, {})
    return n


def _tasks(columns: Columns, message: wire.Message) -> int:
    tasks, n = message.tasks, len(message.tasks.group)
    if n:
        _add_columns(columns, tasks, ("duration_us", "nbytes"), {"group_no": "group"})
        columns["no"] += range(tasks.first_no, tasks.first_no + n)
        columns["worker"] += map(tasks.addresses.__getitem__, tasks.worker)
        columns["start_at"] += [tasks.from_ms + start_ms for start_ms in tasks.start_ms]
        columns["erred"] += map(bool, tasks.erred)
        columns["weight"] += repeat(tasks.weight, n)
    return n


_EXCEPTION = _shared(tables.EXCEPTIONS, wire.ExceptionFamily)


def _exceptions(columns: Columns, message: wire.Message) -> int:
    renamed = {"group_no": "group", "first_at": "first_ms", "last_at": "last_ms"}
    return _add_objects(columns, message.exceptions, _EXCEPTION, renamed)


_EVENT = _shared(tables.EVENTS, wire.Event)


def _events(columns: Columns, message: wire.Message) -> int:
    return _add_objects(columns, message.events, _EVENT, {"logged_at": "at_ms"})


_LOG = _shared(tables.LOGS, wire.Logs)


def _logs(columns: Columns, message: wire.Message) -> int:
    n = len(message.logs.no)
    if n:
        _add_columns(columns, message.logs, _LOG, {"logged_at": "at_ms"})
    return n


def _profiles(columns: Columns, message: wire.Message) -> int:
    n = no = 0
    for profile in message.profiles:
        stacks = [[profile.frames[index] for index in stack] for stack in profile.stack]
        prefixes, counts = profile.prefix, profile.count
        if profile.cut:  # What was left out stands as a stack without frames: the sum of the counts stays true.
            stacks, prefixes, counts = [*stacks, list[str]()], [*prefixes, None], [*counts, profile.cut]
        n_stacks = len(stacks)
        no = profile.first_no or no
        columns["no"] += range(no, no + n_stacks)
        columns["from_at"] += repeat(profile.from_ms, n_stacks)
        columns["to_at"] += repeat(profile.to_ms, n_stacks)
        columns["n_workers"] += repeat(profile.n_workers, n_stacks)
        columns["sample_us"] += repeat(profile.sample_us, n_stacks)
        columns["prefix"] += prefixes
        columns["stack"] += stacks
        columns["count"] += counts
        n, no = n + n_stacks, no + n_stacks
    return n


ADDERS: dict[str, Callable[[Columns, wire.Message], int]] = {
    "clusters": _clusters,
    "samples": _samples,
    "workers": _workers,
    "members": _members,
    "deaths": _deaths,
    "groups": _groups,
    "computations": _computations,
    "spans": _spans,
    "fine_metrics": _fine_metrics,
    "tasks": _tasks,
    "exceptions": _exceptions,
    "events": _events,
    "logs": _logs,
    "profiles": _profiles,
}
"""For each table, what adds a message's rows but for ORIGIN, and tells how many."""
