"""A cluster as a row of the lake's table `catalog`, and the registry's row back from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.clocks import last_sign_at, told_up_s
from daskscope_lambdas.service.cost import Cost, machine_rows, priced
from daskscope_lambdas.service.prices import Prices
from daskscope_lambdas.service.records import name_of
from daskscope_lambdas.service.usage import Machine, Usage
from daskscope_query.tables import CATALOG

LISTED = tuple(name for name in CATALOG.schema.names if name not in ("row", "machines"))
"""The columns of lists: all but those that take most of the bytes."""

COSTS = ("failed_us", "machines", "usage_at", "dollars", "idle_dollars", "failed_dollars", "currency", "quality",
         "basis", "prices")  # fmt: skip
"""Those that `cost_columns` makes."""

_FIELDS = tuple(field.name for field in fields(ClusterRow))
_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_MOST = (1 << 63) - 1


def row_as_json(row: ClusterRow) -> str:
    return json.dumps({name: getattr(row, name) for name in _FIELDS}, allow_nan=False, separators=(",", ":"))


def row_of_json(text: str) -> ClusterRow:
    """What `row_as_json` was given. Raises ValueError for what it cannot have made."""
    try:
        return ClusterRow(**json.loads(text))
    except TypeError as error:
        raise ValueError(f"The text is no row of the registry: {error}") from error


def usage_of(machines: Sequence[Mapping[str, Any]] | None, failed_us: int | None) -> Usage:
    """Of the two columns. Threads that no machine told of stand among the machines for their price alone."""
    told = [each for each in machines or () if each["n_machines"]]
    kinds = [Machine(**{name: value for name, value in each.items() if name != "dollars"}) for each in told]
    return Usage(machines=kinds, failed_us=failed_us)


def is_newer(row: ClusterRow, before: Mapping[str, Any]) -> bool:
    """Whether the registry has heard of the cluster since `before`, its row in the catalog, was made."""
    known = (_moment(row.last_received_at), row.boot, row.phase)
    return known != (before["last_received_at"], before["boot"], before["phase"])


def grown(before: Mapping[str, Any], thread_us: int) -> Usage:
    """What a row of the catalog tells of machines, as its thread time has grown since; what failed is what is known."""
    usage = usage_of(before["machines"], before["failed_us"])
    by = thread_us / before["thread_us"] if 0 < before["thread_us"] < thread_us else 1.0
    longer = [
        replace(each, machine_us=_whole(round(each.machine_us * by)), thread_us=_whole(round(each.thread_us * by)),
                gib_hours=each.gib_hours * by)
        for each in usage.machines
    ]  # fmt: skip
    return replace(usage, machines=longer)


def costs_since(row: ClusterRow, before: Mapping[str, Any] | None, prices: Prices) -> dict[str, Any]:
    """COSTS of a cluster by what the catalog told of its machines before, if it did: the lake is not asked."""
    if before is None:
        return cost_columns(priced(row, None, prices), None, None, prices.digest)
    usage = grown(before, row.totals.get("thread_us", 0))
    at = before["usage_at"].timestamp() if before["usage_at"] else None
    return cost_columns(priced(row, usage, prices), usage, at, prices.digest)


def registry_columns(row: ClusterRow) -> dict[str, Any]:
    """What the registry knows, but for the whole `row`."""
    who, totals = row.identity, row.totals
    return {
        "account": row.account,
        "cluster": row.uuid,
        "cluster_id": row.id,
        "name": name_of(row),
        "user": who.get("user"),
        "user_claimed": who.get("user_claimed"),
        "host": who.get("host"),
        "kind": who.get("kind") or None,
        "tags": list(who.get("tags", {}).items()),
        "boot": row.boot,
        "started_at": _moment(row.started_at),
        "first_received_at": _moment(row.first_received_at),
        "last_received_at": _moment(row.last_received_at),
        "seen_at": _moment(last_sign_at(row)),
        "next_s": row.next_s,
        "phase": row.phase,
        "reason": row.reason,
        **idle_columns(row),
        "up_s": told_up_s(row),
        "peak_workers": totals.get("peak_workers", 0),
        "peak_memory_bytes": _whole(totals.get("peak_memory_bytes", 0)),
        "n_tasks": _whole(totals.get("n_tasks", 0)),
        "n_tasks_erred": _whole(totals.get("n_tasks_erred", 0)),
        "thread_us": _whole(totals.get("thread_us", 0)),
        "action_us": [(action, _whole(us)) for action, us in totals.get("action_us", {}).items()],
    }


def idle_columns(row: ClusterRow) -> dict[str, Any]:
    """How it idled at its last message, and with how many threads."""
    totals = row.totals
    since_ms, timeout_us = totals.get("idle_since_ms"), totals.get("idle_timeout_us")
    return {
        "idle_s": None if since_ms is None else max(row.made_at - since_ms / 1e3, 0.0),
        "idle_timeout_s": timeout_us / 1e6 if timeout_us else None,
        "n_threads": min(totals.get("n_threads", 0), (1 << 31) - 1),
    }


def cost_columns(cost: Cost, usage: Usage | None, usage_at: float | None, prices: str) -> dict[str, Any]:
    """What it cost by the prices of that digest, for what the lake told of it at `usage_at` (epoch seconds)."""
    return {
        "failed_us": None if usage is None else usage.failed_us,
        "machines": machine_rows(cost),
        "usage_at": None if usage_at is None else _moment(usage_at),
        "dollars": cost.dollars,
        "idle_dollars": cost.idle_dollars,
        "failed_dollars": cost.failed_dollars,
        "currency": cost.currency,
        "quality": cost.quality,
        "basis": cost.basis,
        "prices": prices,
    }


def cost_record(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The `cost` of a record of the API out of the columns, as `cost.as_record` has it of a Cost."""
    return {
        "dollars": columns["dollars"],
        "idle": columns["idle_dollars"],
        "failed": columns["failed_dollars"],
        "currency": columns["currency"],
        "quality": columns["quality"],
        "basis": columns["basis"],
    }


def _moment(at: float) -> datetime:
    """To the millisecond, as columns have it. What no calendar has becomes its nearest day: a start is what a scheduler
    says it is."""
    return _EPOCH + timedelta(milliseconds=int(min(max(at, 0.0), _LATEST_S) * 1e3))


def _whole(number: int) -> int:
    return min(max(number, -_MOST), _MOST)
