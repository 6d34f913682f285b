"""What the time of a machine costs: dated tables of prices, and which price answers for a kind of machine.

No YAML here (price_file.py reads it): whoever only words a cost needs none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

GIB_PER_CORE = 4.0
"""As a general-purpose machine has it (m6i.large: 2 vCPUs, 8 GiB): taken where no process told its memory."""
LARGES = {
    "nano": 0.0625,
    "micro": 0.125,
    "small": 0.25,
    "medium": 0.5,
    "large": 1.0,
    "xlarge": 2.0,
}
"""Sizes of an instance family in units of its `large`; `<n>xlarge` has 2n. So its price, in the families listed."""

_XLARGES = re.compile(r"([1-9][0-9]{0,2})xlarge")
"""A type is what a process says it is: a longer number is no size of AWS's, and may be none that a float holds."""

_LATEST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Quote:
    """The price of a machine of one kind, per hour, and whose price that is. `why` says what was assumed; empty if
    nothing was."""

    per_hour: float
    whose: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Region:
    """Prices per hour, on demand."""

    families: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of a family's `large`; other sizes cost as many times more as they are larger."""
    instance_types: Mapping[str, float] = field(default_factory=dict[str, float])

    def price(self, instance_type: str) -> float | None:
        if instance_type in self.instance_types:
            return self.instance_types[instance_type]
        family, _, size = instance_type.partition(".")
        larges = LARGES.get(size)
        if larges is None and (found := _XLARGES.fullmatch(size)):
            larges = 2.0 * int(found[1])
        per_large = self.families.get(family)
        return None if larges is None or per_large is None else per_large * larges


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """Prices in force from a day on, in `currency` per hour."""

    since: date
    name: str
    """`list prices of 2026-01`."""
    own_name: str = ""
    """Whose prices stand in place of some of these: `prices of account acme`; empty if nobody's."""
    currency: str = "USD"
    core_hour: float
    gib_hour: float
    spot_factor: float
    """Price of a spot machine over that of one on demand."""
    home: str
    """The region whose prices stand in for those of one that the table has not."""
    regions: Mapping[str, Region] = field(default_factory=dict[str, Region])
    anywhere: Mapping[str, float] = field(default_factory=dict[str, float])
    """Instance type to its price in whatever region: said by the installation or the account."""
    own: frozenset[str] = frozenset()
    """Which of `core_hour`, `gib_hour`, `spot_factor` the installation or the account said: no assumptions of ours."""

    @property
    def thread_hour(self) -> float:
        """Of a thread, its memory included, where no process told how much it has."""
        return self.core_hour + GIB_PER_CORE * self.gib_hour

    def quote(self, instance_type: str, region: str | None, lifecycle: str | None) -> Quote | None:
        """None if the table has no price of that type anywhere."""
        whose = self.own_name if instance_type in self.anywhere else self.name
        found, why = self._on_demand(instance_type, region)
        if found is None:
            return None
        if lifecycle == "spot":
            if "spot_factor" not in self.own:
                why = [*why, f"spot taken as {self.spot_factor:g} of on demand"]
            return Quote(found * self.spot_factor, whose, ", ".join(why))
        if lifecycle != "on-demand":
            why = [*why, f"{lifecycle or 'untold lifecycle'} priced as on demand"]
        return Quote(found, whose, ", ".join(why))

    def _on_demand(self, instance_type: str, region: str | None) -> tuple[float | None, list[str]]:
        if instance_type in self.anywhere:
            return self.anywhere[instance_type], []
        here = self.regions.get(region or "")
        if here is not None and (found := here.price(instance_type)) is not None:
            return found, []
        at_home = self.regions.get(self.home, Region()).price(instance_type)
        return at_home, [f"{region or 'an untold region'} priced as {self.home}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """All that is in force for an account: tables by their day, and where they come from."""

    tables: Sequence[PriceTable]
    """At least one, earliest first."""
    sources: Sequence[str]
    """The packaged table, then what was said in its place, as a person would name them."""
    digest: str
    """Of all that is in them: another one means other prices."""

    def at(self, moment: float) -> PriceTable:
        """The table in force at `moment` (epoch seconds); before the first one, that one."""
        # A start is what a scheduler says it is.
        day = datetime.fromtimestamp(min(max(moment, 0.0), _LATEST_S), UTC).date()
        return next((table for table in reversed(self.tables) if table.since <= day), self.tables[0])
