"""What a cluster would cost: an estimate, from what the registry knows. Prices say where and when they are from."""

from __future__ import annotations

from dataclasses import dataclass

from daskscope_lambdas.ports import ClusterRow

PRICE_PER_THREAD_HOUR = 0.048
"""US dollars: half of an m6i.large (2 vCPUs, 8 GiB), on demand, us-east-1, November 2026."""
BASIS = "m6i on demand in us-east-1, $0.048 per thread-hour, November 2026"


@dataclass(frozen=True, slots=True)
class Cost:
    """`used_share`: of the thread time offered, the part in which tasks computed; None if none was offered."""

    thread_hours: float
    used_share: float | None
    dollars: float
    idle_dollars: float


def estimate(row: ClusterRow) -> Cost:
    """From the running totals of threads offered and of time computed."""
    offered_us = row.totals.get("thread_us", 0)
    computed_us = row.totals.get("action_us", {}).get("compute", 0)
    hours = offered_us / 3.6e9
    # Tasks may outlast what was counted (a group's time comes with its end), so the share is capped rather than absurd.
    share = min(1.0, computed_us / offered_us) if offered_us else None
    dollars = hours * PRICE_PER_THREAD_HOUR
    return Cost(hours, share, dollars, dollars * (1 - (share or 0.0)))
