"""What a cluster cost: the time of its machines at the prices in force, and what was made of that time.

`measured`: its processes themselves told the kind of every machine and how long it was there, and the table has a price
for each; or whoever runs the place said what a core-hour costs. `estimated`: anything else. `unknown`: no worker was
seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.prices import GIB_PER_CORE, Prices, PriceTable
from daskscope_lambdas.service.usage import Machine, Usage
from daskscope_lambdas.service.words import count

Quality = Literal["measured", "estimated", "unknown"]

HOUR_US = 3.6e9
GIB = 1 << 30
IN_PODS = ("kube", "helm", "gateway")
"""Kinds of cluster, by a part of their names, whose processes share machines with others' as a rule."""
UNTOLD = 0.05
"""Of the thread time offered: where the lake tells of more than that nothing, its workers are machines of an unknown
kind. Up to that, clocks may tell time differently."""
NAMED_KINDS = 2
"""Kinds of machine that a sentence names; it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Priced:
    """Machines of one kind, and what they cost; `how` words both, `measured` if nothing in it was assumed."""

    machine: Machine
    dollars: float
    measured: bool
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """In `currency`, US dollars unless the prices say another. `idle_dollars` and `failed_dollars` are parts of
    `dollars`, and together no more. None is what nobody can tell."""

    dollars: float | None
    idle_dollars: float | None
    """For thread time in which no task that has ended ran."""
    failed_dollars: float | None
    """For tasks that failed or were cancelled as they ran."""
    quality: Quality
    basis: str
    thread_hours: float
    used_share: float | None
    """Of the thread time offered, the part in which tasks ran, failed ones too; None if none was offered."""
    machine_hours: float | None
    """All of its machines together, also those of unknown kinds; None if the lake knows of none."""
    currency: str = "USD"
    machines: Sequence[Priced] = ()


def priced(row: ClusterRow, usage: Usage | None, prices: Prices) -> Cost:
    """`usage`: what the lake has of the cluster's machines; None, as for one that came just now, leaves its threads."""
    table = prices.at(row.started_at)
    usage = usage or Usage()
    threads_us = max(row.totals.get("thread_us", 0), 0)
    machines = _machines(usage, row, table, threads_us)
    offered_us = max(threads_us, sum(each.machine.thread_us for each in machines))
    hours = offered_us / HOUR_US
    if not offered_us:
        nothing = "unknown: no worker has been seen"
        return Cost(
            dollars=None, idle_dollars=None, failed_dollars=None, quality="unknown", basis=nothing, thread_hours=0.0,
            used_share=None, machine_hours=None, currency=table.currency,
        )  # fmt: skip
    dollars = sum(each.dollars for each in machines)
    computed_us = max(row.totals.get("action_us", {}).get("compute", 0), 0)
    idle, failed = shares(offered_us, computed_us, usage.failed_us)
    measured = all(each.measured for each in machines)
    machine_us = sum(machine.machine_us for machine in usage.machines)
    return Cost(
        dollars=dollars,
        idle_dollars=dollars * idle,
        failed_dollars=None if failed is None else dollars * failed,
        quality="measured" if measured else "estimated",
        basis=f"{'measured' if measured else 'estimated'}: {_together(machines)}",
        thread_hours=hours,
        used_share=1.0 - idle,
        machine_hours=machine_us / HOUR_US if machine_us else None,
        currency=table.currency,
        machines=machines,
    )


def shares(offered_us: float, computed_us: float, failed_us: float | None) -> tuple[float, float | None]:
    """Of the thread time offered (above 0), the parts that were idle and that went into tasks that failed.

    A task's time comes with its end and so may exceed what was counted: no part is below 0, and no sum above 1.
    """
    used = min(computed_us / offered_us, 1.0)
    failed = min((failed_us or 0) / offered_us, 1.0 - used)
    return max(1.0 - used - failed, 0.0), None if failed_us is None else failed


def as_record(cost: Cost) -> dict[str, Any]:
    """The `cost` of a record of the API."""
    return {
        "dollars": cost.dollars,
        "idle": cost.idle_dollars,
        "failed": cost.failed_dollars,
        "currency": cost.currency,
        "quality": cost.quality,
        "basis": cost.basis,
    }


def machine_rows(cost: Cost) -> list[dict[str, Any]]:
    """The machines by kind, as the catalog keeps them (MACHINE of tables/catalog.py)."""
    return [{**asdict(each.machine), "dollars": each.dollars} for each in cost.machines]


def _machines(usage: Usage, row: ClusterRow, table: PriceTable, threads_us: int) -> list[Priced]:
    """All that a cluster had, priced; threads of which the lake knows nothing are machines of an unknown kind."""
    kind = str(row.identity.get("kind") or "").lower()
    in_pods = any(name in kind for name in IN_PODS)
    told = [_one(machine, table, in_pods) for machine in usage.machines]
    untold_us = threads_us - sum(machine.thread_us for machine in usage.machines)
    if untold_us <= UNTOLD * threads_us:
        return told
    n_threads, limit_bytes = row.totals.get("n_threads", 0), row.totals.get("memory_limit_bytes", 0)
    gib_per_thread = limit_bytes / GIB / n_threads if n_threads > 0 and limit_bytes > 0 else GIB_PER_CORE
    gib_hours = untold_us / HOUR_US * gib_per_thread
    untold = Machine(n_machines=0, machine_us=0, thread_us=untold_us, gib_hours=gib_hours)
    return [*told, _by_threads(untold, table)]


def _one(machine: Machine, table: PriceTable, in_pods: bool) -> Priced:
    hours = machine.machine_us / HOUR_US
    if machine.instance_type and (not in_pods or (machine.cores and machine.memory_bytes)):
        where = f"{count(machine.n_machines, machine.instance_type, machine.instance_type)} "
        lifecycle = "on demand" if machine.lifecycle == "on-demand" else machine.lifecycle or "untold lifecycle"
        where += f"({lifecycle}, {machine.region or 'untold region'})"
        if quote := table.quote(machine.instance_type, machine.region, machine.lifecycle):
            how = f"{hours:,.3g} h of {where} at {quote.whose}" + (f", {quote.why}" if quote.why else "")
            if in_pods:
                part = _part(machine)
                how += f", pods priced as {100 * part:.3g} % of their machines"
                return Priced(machine, hours * quote.per_hour * part, False, how)
            return Priced(machine, hours * quote.per_hour, not quote.why, how)
        if machine.cores and machine.memory_bytes and not in_pods and "core_hour" not in table.own:
            gib = machine.memory_bytes / GIB
            factor = table.spot_factor if machine.lifecycle == "spot" else 1.0
            dollars = hours * factor * (machine.cores * table.core_hour + gib * table.gib_hour)
            how = f"{hours:,.3g} h of {where}, which {table.name} lack, by {machine.cores} cores and {gib:,.0f} GiB"
            return Priced(machine, dollars, False, how)
    return _by_threads(machine, table)


def _part(machine: Machine) -> float:
    """What workers have of machines that they share with others: of the threads or of the memory, whichever is more."""
    hours = machine.machine_us / HOUR_US
    if not hours or not machine.cores or not machine.memory_bytes:
        return 0.0
    of_cores = machine.thread_us / HOUR_US / (hours * machine.cores)
    of_memory = machine.gib_hours / (hours * machine.memory_bytes / GIB)
    return min(max(of_cores, of_memory), 1.0)


def _by_threads(machine: Machine, table: PriceTable) -> Priced:
    """Of a machine that has no price of its own."""
    thread_hours, core, gib = machine.thread_us / HOUR_US, _price(table, "core_hour"), _price(table, "gib_hour")
    dollars = thread_hours * table.core_hour + machine.gib_hours * table.gib_hour
    how = f"{thread_hours:,.3g} thread-hours at {core}"
    if table.gib_hour and machine.gib_hours:
        how += f" and {machine.gib_hours:,.3g} GiB-hours at {gib}"
    if "core_hour" in table.own:
        return Priced(machine, dollars, True, f"{how}, {table.own_name}")
    kind = machine.instance_type and f"no price of {machine.instance_type}"
    return Priced(machine, dollars, False, f"{how}: {kind or 'kinds of machine unknown'}")


def _price(table: PriceTable, name: Literal["core_hour", "gib_hour"]) -> str:
    """To the last digit, for a small one counts many times."""
    amount = f"{getattr(table, name):g}"
    return f"${amount}" if table.currency == "USD" else f"{amount} {table.currency}"


def _together(machines: Sequence[Priced]) -> str:
    """What the dearest kinds are; what is said of several in the same words is said once."""
    known = sorted(machines, key=lambda each: each.dollars, reverse=True)
    named = "; ".join(each.how for each in known[:NAMED_KINDS])
    rest = len(known) - NAMED_KINDS
    return f"{named}; and {count(rest, 'kind')} of machine more" if rest > 0 else named
