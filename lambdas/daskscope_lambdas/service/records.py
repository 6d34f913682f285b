"""The records of docs/reference/http-api.md out of the registry's rows: a cluster, a token, a member, a report."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Literal

from daskscope_lambdas.ports import ClusterRow, Membership, ReportRow, Scope, Ticket, TokenRow
from daskscope_lambdas.service.clocks import last_sign_at, told_up_s
from daskscope_lambdas.service.report_policy import ReportPolicy
from daskscope_lambdas.service.tickets import id_of

Status = Literal["running", "stopped", "lost"]

MISSED = 3
"""So many missed messages make a cluster lost."""
STATES = {
    "waiting": "waiting",
    "queued": "queued",
    "no_worker": "no-worker",
    "processing": "processing",
    "in_memory": "memory",
    "erred": "erred",
}
"""Field of the totals to Dask's name of the state."""


def status(row: ClusterRow, now: float) -> Status:
    """What has become of a cluster, as far as `now` (epoch seconds) can tell. Never stored, always computed."""
    if row.phase == "closed":
        return "stopped"
    return "lost" if now - row.last_received_at > MISSED * row.next_s else "running"


def ended_at(row: ClusterRow, now: float) -> datetime | None:
    """When all that the cluster had was over, by its own clock, as it tells the rest; None while it runs."""
    if status(row, now) == "running":
        return None
    return datetime.fromtimestamp(row.made_at or row.last_received_at, UTC)


def up_s(row: ClusterRow, now: float) -> float:
    """Seconds from the scheduler's start to its last message, or to now while it runs.

    Each part is measured by one clock: the first by the scheduler's, the silence since by the server's.
    """
    silent_s = max(0.0, now - row.last_received_at) if status(row, now) == "running" else 0.0
    return told_up_s(row) + silent_s


def name_of(row: ClusterRow) -> str:
    """As lists and pages show it."""
    return row.identity.get("name") or f"cluster {row.id}"


def iso(moment: float | datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds, of epoch seconds or a datetime."""
    if moment is None:
        return None
    at = moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def scheduler_id(row: ClusterRow) -> str:
    """Dask's own id of the scheduler, also before the cluster has told it."""
    return row.identity.get("scheduler_id") or f"Scheduler-{uuid.UUID(row.uuid)}"


def token(row: TokenRow, may: Collection[Scope] | None = None) -> dict[str, Any]:
    """Without its secret, which is kept nowhere. `may`: what its user may in the account, for a token does no more;
    None for what is nobody's, and where nobody need be asked."""
    return {
        "key_id": row.key_id,
        "name": row.name,
        "account": row.account,
        "scopes": sorted(row.scopes if may is None else row.scopes.intersection(may)),
        "created": iso(row.created_at),
        "expires": iso(row.expires_at),
        "revoked": iso(row.revoked_at),
        "user": row.user,
        "kind": row.kind,
        "last_used": row.used_on and row.used_on.isoformat(),
        "made_by": row.made_by,
    }


def member(membership: Membership) -> dict[str, Any]:
    """Somebody in an account."""
    told = {"account": membership.account, "user": membership.user, "role": membership.role}
    return {**told, "added": iso(membership.added_at), "added_by": membership.added_by}


def invitation(ticket: Ticket) -> dict[str, Any]:
    """One that waits; its link is kept nowhere."""
    told = {name: ticket.told[name] for name in ("account", "role", "user", "by")}
    return {"id": id_of(ticket), **told, "expires": iso(ticket.expires_at)}


def report(row: ReportRow, policy: ReportPolicy) -> dict[str, Any]:
    """`policy`: of its account. The link of one that is private is told to nobody."""
    private = policy.is_private(row)
    return {
        "id": row.id,
        "filename": row.filename,
        "title": row.title,
        "user": row.user,
        "user_claimed": row.user_claimed,
        "private": private,
        "size": row.size_bytes,
        "created": iso(row.created_at),
        "expires": iso(policy.expires_at(row)),
        "status": "uploading" if row.kept_at is None else "kept",
        "url": f"{row.account}/reports/{row.id}" + ("" if private else f"-{row.link}"),
    }


def cluster(row: ClusterRow, now: float) -> dict[str, Any]:
    """The record without its cost, JSON types only. What the cluster has not told yet is null, zero or empty; so is, of
    one that has ended, what it was at its last message of processes and their memory."""
    who, totals = row.identity, row.totals
    state = status(row, now)
    present = totals if state == "running" else {}
    return {
        "id": row.id,
        "scheduler_id": scheduler_id(row),
        "name": name_of(row),
        "user": who.get("user"),
        "user_claimed": who.get("user_claimed"),
        "host": who.get("host"),
        "status": state,
        "created": iso(row.started_at),
        "stopped": None if state == "running" else iso(last_sign_at(row)),
        "reason": row.reason,
        "last_seen": iso(last_sign_at(row)),
        "duration": up_s(row, now),
        "workers": present.get("n_workers", 0),
        "threads": present.get("n_threads", 0),
        "clients": present.get("n_clients", 0),
        "memory": present.get("memory_bytes", 0),
        "managed": present.get("managed_bytes", 0),
        "unmanaged": max(0, present.get("memory_bytes", 0) - present.get("managed_bytes", 0)),
        "spilled": present.get("spilled_bytes", 0),
        "memory_limit": present.get("memory_limit_bytes", 0),
        "peak_memory": totals.get("peak_memory_bytes", 0),
        "peak_workers": totals.get("peak_workers", 0),
        "workers_lost": totals.get("n_workers_lost", 0),
        "n_computations": totals.get("n_computations", 0),
        "n_tasks": totals.get("n_tasks", 0),
        "n_tasks_erred": totals.get("n_tasks_erred", 0),
        "tasks": {name: totals.get(field, 0) for field, name in STATES.items()},
        "thread_seconds": totals.get("thread_us", 0) / 1e6,
        "seconds": {action: us / 1e6 for action, us in totals.get("action_us", {}).items()},
        "idle_since": iso(_seconds(totals.get("idle_since_ms"), 1e3)),
        "idle_timeout": _seconds(totals.get("idle_timeout_us"), 1e6),
        "held_bytes": totals.get("held_bytes", 0),
        "desired_workers": totals.get("desired_workers"),
        "adaptive_minimum": totals.get("adaptive_minimum"),
        "adaptive_maximum": totals.get("adaptive_maximum"),
        "close_asked": close_asked(row),
        "scheduler": {
            "cpu_pct": totals.get("scheduler_cpu_pct", 0),
            "memory": totals.get("scheduler_memory_bytes", 0),
            "loop_interval": totals.get("scheduler_loop_ms", 0) / 1e3,
        },
        "tags": who.get("tags", {}),
        "kind": who.get("kind") or None,
        "python": who.get("python"),
        "python_path": who.get("python_path") or None,
        "platform": who.get("platform"),
        "versions": who.get("versions", {}),
        "dashboard": who.get("dashboard"),
        "lost": row.lost,
        "url": f"{row.account}/analytics/clusters/{row.id}",
    }


def close_asked(row: ClusterRow) -> dict[str, Any] | None:
    """Who asked it to close last, when and why; None if nobody did."""
    if row.close_asked_at is None:
        return None
    return {"at": iso(row.close_asked_at), "by": row.close_asked_by, "reason": row.close_asked_reason}


def _seconds(value: int | None, unit: float) -> float | None:
    return None if value is None else value / unit
