"""What clusters cost: one, or all of a team over days.

Over days a cluster's dollars are spread by the thread time that each added; so the days of a cluster make what it cost,
and users, weeks or tags make what all did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa

from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service.cost import Cost, Quality, priced
from daskscope_lambdas.service.found import Asker, Found, Record, days_since, found_in
from daskscope_lambdas.service.price_store import PriceReader
from daskscope_lambdas.service.prices import Prices
from daskscope_lambdas.service.repricing import is_priced_otherwise, repriced
from daskscope_lambdas.service.savings import saved
from daskscope_lambdas.service.usage import UsageReader
from daskscope_lambdas.service.words import share

KEYS = {
    "user": ("user",),
    "tag": ("tag",),
    "day": ("day",),
    "week": ("week",),
    "instance_type": ("instance_type",),
    "cluster": ("cluster_id", "name"),
    "kind": ("kind",),
}
"""What costs may be asked for by, and the columns that tell it. A week begins on its Monday."""

_SUMS = ("thread_hours", "machine_hours", "dollars", "idle", "failed")
_EPOCH = date(1970, 1, 1)


class Costs:
    """`catalog`: an account's clusters as rows of the lake's table of that name, with the columns that are named
    besides those of lists. Those that were priced by other prices than the ones in force are priced anew."""

    def __init__(
        self, asker: Asker, prices: PriceReader, clock: Clock, catalog: Callable[[str, Sequence[str]], pa.Table]
    ) -> None:
        self._asker, self._prices, self._clock, self._catalog = asker, prices, clock, catalog

    def of(self, row: ClusterRow) -> Cost:
        """Of one cluster, with what the lake has of its machines."""
        usage = UsageReader(self._asker).of(row.account, [row])
        return priced(row, usage.get(row.uuid), self._prices.of(row.account))

    def over(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        by: Sequence[str],
        between: tuple[datetime | None, datetime | None] = (None, None),
        tag: str | None = None,
        user: str | None = None,
    ) -> Found:
        """Of all clusters over whole days (UTC), by some of KEYS, the dearest first, within days and weeks by date;
        `tag` is the key of which `by` has the values.

        `more`: `sums` over all of them, what idle closing `saved`, the `days`, the `currency` and `prices` in force.
        """
        since, until = between
        first, today = days_since(since, self._clock.now())
        last = min(until.astimezone(UTC).date(), today) if until else today
        prices = self._prices.of(account)
        table = prices.at(self._clock.now())
        rows = self._catalog(account, ("machines",))
        if is_priced_otherwise(rows, prices):
            rows = repriced(self._catalog(account, ("machines", "row")), prices)
        page = self._asker.ask(
            "costs",
            account,
            (first, last),
            given={"catalog": rows},
            by=list(by),
            tag=tag,
            user=user,
            thread_hour=table.thread_hour,
            first_day=first,
            last_day=last,
            limit=limit,
            offset=offset,
        )
        sums = page.records()
        keys = [column for name in by for column in KEYS[name]]
        found = found_in([_record(row, keys, table.name) for row in sums], page)
        if offset:
            return found
        told = saved(rows, (first, last), self._clock.now(), user, table.currency)
        every = {name: sums[0][f"all_{name}"] if sums else None for name in _SUMS}
        days = [None if first == _EPOCH else first.isoformat(), last.isoformat()]
        more = {"sums": every, "saved": told, "days": days, "currency": table.currency, "prices": prices.sources}
        return replace(found, more=more)

    def in_force(self, account: str) -> Record:
        """The prices of an account, and where they come from."""
        return prices_record(self._prices.of(account), self._clock.now())


def prices_record(prices: Prices, now: float) -> Record:
    """The Prices record of docs/reference/http-api.md: the table in force now, and the days of all."""
    table = prices.at(now)
    return {
        "currency": table.currency,
        "name": table.name,
        "from": table.since.isoformat(),
        "core_hour": table.core_hour,
        "gib_hour": table.gib_hour,
        "spot_factor": table.spot_factor,
        "own": sorted(table.own),
        "home": table.home,
        "instance_types": dict(table.anywhere),
        "regions": {
            name: {"families": dict(region.families), "instance_types": dict(region.instance_types)}
            for name, region in table.regions.items()
        },
        "tables": [each.since.isoformat() for each in prices.tables],
        "sources": list(prices.sources),
        "digest": prices.digest,
    }


def _record(row: Record, keys: Sequence[str], at: str) -> Record:
    dollars, measured = row["dollars"], row["measured_dollars"]
    quality, basis = _told(dollars, measured, at)
    days = {name: value.isoformat() for name in ("day", "week") if (value := row[name]) is not None}
    return {
        **{name: {**row, **days}[name] for name in keys},
        "n_clusters": row["n_clusters"],
        **{name: row[name] for name in _SUMS},
        "quality": quality,
        "measured_share": None if not dollars else min(measured / dollars, 1.0),
        "basis": basis,
    }


def _told(dollars: float | None, measured: float, at: str) -> tuple[Quality, str]:
    """Quality and basis of a sum."""
    if dollars is None:
        return "unknown", "unknown: no worker has been seen"
    # A sum of the same numbers in another order may differ in its last digits.
    if dollars and measured >= dollars * (1 - 1e-9):
        return "measured", f"measured: all by machines and prices that are known, at {at}"
    if not measured:
        return "estimated", f"estimated: for no cluster all machines and prices are known, at {at}"
    return "estimated", f"estimated: {share(measured, dollars)} measured, at {at}"
