"""Prices out of YAML: the packaged table, and what an installation or an account says in place of some of it.

Whatever is odd in a file is an error that names the place: a price that is misread is worse than none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from importlib import resources

from daskscope_lambdas.service.prices import Prices, PriceTable, Region
from daskscope_lambdas.service.strict_yaml import Names, Place, parsed

_OWN = ("currency", "core_hour", "gib_hour", "spot_factor", "instance_types", "regions")
_TABLE = ("from", "source", "home", "core_hour", "gib_hour", "spot_factor", "regions")
_FAMILIES = Names(re.compile(r"[a-z][a-z0-9-]{1,20}"), "a family as EC2 names it, like m6i")
_TYPES = Names(re.compile(r"[a-z][a-z0-9-]{1,20}\.[a-z0-9-]{1,20}"), "an instance type as EC2 names it, like m6i.large")
_REGIONS = Names(re.compile(r"[a-z]{2,8}(-[a-z]{2,12}){1,3}-[0-9]{1,2}"), "a region as EC2 names it, like eu-central-1")
"""As the plugin's agent takes them (daskscope/agent/hardware.py): by another name nothing would ever be priced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What somebody says in place of the packaged table; None says nothing."""

    whose: str
    """`account acme`, `this installation`."""
    file: str
    text: bytes
    currency: str | None = None
    core_hour: float | None = None
    gib_hour: float | None = None
    spot_factor: float | None = None
    instance_types: Mapping[str, float] = field(default_factory=dict[str, float])
    regions: Mapping[str, Region] = field(default_factory=dict[str, Region])


@cache
def packaged() -> Prices:
    """The table that comes with daskscope."""
    text = resources.files("daskscope_lambdas.service").joinpath("prices.yaml").read_bytes()
    return read_tables(text, "prices.yaml")


def read_tables(text: bytes, name: str) -> Prices:
    """A file like the packaged one. Raises SettingsError."""
    document = Place(name, "").mapping(parsed(text, name), ("tables",))
    where = Place(name, "tables")
    given = document.get("tables")
    if not isinstance(given, list) or not given:
        raise where.error(given, "a list of tables")
    tables = [_table(where.at(str(n)), entry) for n, entry in enumerate(given)]
    if [table.since for table in tables] != sorted({table.since for table in tables}):
        raise where.error([f"{table.since}" for table in tables], "tables in the order of `from`, each day once")
    sources = tuple(f"from {table.since}: {table.source}" for table in tables)
    return Prices(tables=tuple(each.prices() for each in tables), sources=sources, digest=_digest(text))


def read_override(text: bytes, whose: str, name: str) -> Override:
    """A file of somebody's own prices; `name` begins the sentences of errors. Raises SettingsError."""
    top = Place(name, "")
    found = top.mapping(parsed(text, name), _OWN)
    if not found:
        raise top.error(found, f"at least one of {', '.join(_OWN)}")
    currency = found.get("currency")
    if "currency" in found and not (isinstance(currency, str) and re.fullmatch("[A-Z]{3}", currency)):
        raise top.at("currency").error(currency, "three capitals, like USD or EUR")

    def price(key: str) -> float | None:
        return top.at(key).price(found[key]) if key in found else None

    return Override(
        whose=whose,
        file=name,
        text=text,
        currency=currency,
        core_hour=price("core_hour"),
        gib_hour=price("gib_hour"),
        spot_factor=top.at("spot_factor").factor(found["spot_factor"]) if "spot_factor" in found else None,
        instance_types=top.at("instance_types").prices(found.get("instance_types", {}), _TYPES),
        regions=_regions(top.at("regions"), found.get("regions", {})),
    )


def merged(base: Prices, override: Override) -> Prices:
    """`base` with what `override` says in its place: in every table, whatever its day.

    A core-hour that is said without a GiB-hour has its memory in it. A currency that is not said is that of `base`; in
    another one nothing of `base` counts but its spot factor. Raises SettingsError where that leaves no price of a core.
    """
    theirs = base.tables[0].currency
    foreign = override.currency not in (None, theirs)
    if foreign and override.core_hour is None:
        wanted = f"a price in {override.currency}: those that it stands over are in {theirs} and do not count"
        raise Place(override.file, "core_hour").error(None, wanted)
    tables = base.tables[:1] if foreign else base.tables
    said = {"core_hour": override.core_hour, "gib_hour": override.gib_hour, "spot_factor": override.spot_factor}
    known = {name: value for name, value in said.items() if value is not None}
    if "core_hour" in known:
        known.setdefault("gib_hour", 0.0)
    source = f"{override.whose}: {', '.join(_said(override))}"
    return Prices(
        tables=tuple(_changed(table, override, known, foreign) for table in tables),
        sources=(source,) if foreign else (*base.sources, source),
        digest=_digest(base.digest.encode() + override.text),
    )


def _changed(table: PriceTable, override: Override, known: Mapping[str, float], foreign: bool) -> PriceTable:
    own = f"prices of {override.whose}"
    regions = {} if foreign else dict(table.regions)
    for name, region in override.regions.items():
        here = regions.get(name, Region())
        # Whoever prices a family anew means all of it.
        kept = {t: price for t, price in here.instance_types.items() if t.partition(".")[0] not in region.families}
        regions[name] = Region({**here.families, **region.families}, {**kept, **region.instance_types})
    mixed = table.name if not override.regions else f"{table.name}, some of them {own}"
    return replace(
        table,
        **known,
        currency=override.currency or table.currency,
        name=own if foreign else mixed,
        own_name=own if not table.own_name else f"{own} and {table.own_name.removeprefix('prices of ')}",
        regions=regions,
        anywhere={**({} if foreign else table.anywhere), **override.instance_types},
        own=frozenset(known) | (frozenset() if foreign else table.own),
    )


def _said(override: Override) -> list[str]:
    """What an override prices, as a person would read it."""
    named = [f"{name} {value:g}" for name in ("core_hour", "gib_hour", "spot_factor")
             if (value := getattr(override, name)) is not None]  # fmt: skip
    if override.currency is not None:
        named.insert(0, f"in {override.currency}")
    if override.instance_types:
        named.append(f"{len(override.instance_types)} instance types")
    return [*named, *(f"prices in {region}" for region in override.regions)]


@dataclass(frozen=True, slots=True)
class _Dated:
    """A table of a file, with where its prices come from."""

    since: date
    source: str
    home: str
    core_hour: float
    gib_hour: float
    spot_factor: float
    regions: Mapping[str, Region]

    def prices(self) -> PriceTable:
        return PriceTable(
            since=self.since, name=f"list prices of {self.since:%Y-%m}", core_hour=self.core_hour,
            gib_hour=self.gib_hour, spot_factor=self.spot_factor, home=self.home, regions=self.regions,
        )  # fmt: skip


def _table(where: Place, given: object) -> _Dated:
    found = where.mapping(given, _TABLE)
    for name in _TABLE:
        if name not in found:
            raise where.at(name).error(None, "a value: it may not be missing")
    since, source, home = found["from"], found["source"], found["home"]
    # A date with a time is a date as well.
    if type(since) is not date:
        raise where.at("from").error(since, "a day, like 2026-11-01")
    for name, text in (("source", source), ("home", home)):
        if not isinstance(text, str) or not text:
            raise where.at(name).error(text, "a text")
    regions = _regions(where.at("regions"), found["regions"])
    if home not in regions:
        raise where.at("home").error(home, f"one of the regions, {', '.join(regions)}")
    return _Dated(
        since,
        source,
        home,
        where.at("core_hour").price(found["core_hour"]),
        where.at("gib_hour").price(found["gib_hour"]),
        where.at("spot_factor").factor(found["spot_factor"]),
        regions,
    )


def _regions(where: Place, given: object) -> dict[str, Region]:
    def region(place: Place, value: object) -> Region:
        found = place.mapping(value, ("families", "instance_types"))
        return Region(
            place.at("families").prices(found.get("families", {}), _FAMILIES),
            place.at("instance_types").prices(found.get("instance_types", {}), _TYPES),
        )

    return where.each(given, _REGIONS, region)


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
