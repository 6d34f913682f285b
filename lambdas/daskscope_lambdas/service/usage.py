"""What a cluster had of machines and for how long, as its processes told it: what its cost is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker, days_of

AT_ONCE = 500
"""Clusters in one question to the lake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Machines of one kind. What nobody told is None."""

    provider: str | None = None
    region: str | None = None
    instance_type: str | None = None
    lifecycle: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    """Cores and memory of one machine."""
    n_machines: int
    machine_us: int
    """How long each was there, summed: several workers on one machine count once."""
    thread_us: int
    """Threads x time of the workers on them."""
    gib_hours: float
    """Memory limits x time of these workers, in GiB hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Of one cluster."""

    machines: Sequence[Machine] = ()
    """By kind, the longest time first. The scheduler's machine is one of them if it told its instance type."""
    failed_us: int | None = None
    """Worker time in tasks that failed, or were cancelled as they ran; None where Dask does not tell."""


class UsageReader:
    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def of(self, account: str, rows: Sequence[ClusterRow]) -> dict[str, Usage]:
        """By UUID, for each of these clusters of the account of which the lake has anything."""
        found: dict[str, Usage] = {}
        # Neighbours in time have their days in common.
        rows = sorted(rows, key=lambda row: row.first_received_at)
        for start in range(0, len(rows), AT_ONCE):
            found |= self._some(account, rows[start : start + AT_ONCE])
        return found

    def _some(self, account: str, rows: Sequence[ClusterRow]) -> dict[str, Usage]:
        spans = [days_of(row) for row in rows]
        days = (min(first for first, _ in spans), max(last for _, last in spans))
        answer = self._asker.ask(
            "usage", account, days, clusters=[row.uuid for row in rows], given={"heard": _heard(rows)}
        )
        return {found["cluster"]: _usage(found) for found in answer.records()}


def _heard(rows: Sequence[ClusterRow]) -> pa.Table:
    """Until when each is known to have been there, by its scheduler's clock, as its processes' times are."""
    return pa.table(
        {
            "cluster": pa.array([row.uuid for row in rows], pa.string()),
            "until_at": pa.array(
                [datetime.fromtimestamp(row.made_at or row.last_received_at, UTC) for row in rows],
                pa.timestamp("ms", tz="UTC"),
            ),
        }
    )


def _usage(found: dict[str, object]) -> Usage:
    machines: list[dict[str, object]] = found["machines"] or []  # pyright: ignore[reportAssignmentType] - as usage.sql has it
    return Usage(
        machines=tuple(Machine(**machine) for machine in machines),  # pyright: ignore[reportArgumentType] - likewise
        failed_us=found["failed_us"],  # pyright: ignore[reportArgumentType] - likewise
    )
