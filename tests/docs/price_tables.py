"""The packaged prices as a page shows them."""

from __future__ import annotations

from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.prices import PriceTable


def price_tables() -> str:
    found = packaged()
    return "\n\n".join(
        _told(table, source) for table, source in reversed([*zip(found.tables, found.sources, strict=True)])
    )


def _told(table: PriceTable, source: str) -> str:
    rows = ["| price of | US dollars per hour |", "| --- | --- |"]
    rows += [f"| a core | {table.core_hour:g} |", f"| a GiB of memory | {table.gib_hour:g} |"]
    rows += [f"| a spot machine | {table.spot_factor:g} of the same on demand |"]
    for name, region in table.regions.items():
        rows += [f"| `{family}.large` in {name} | {price:.10g} |" for family, price in region.families.items()]
        rows += [f"| `{kind}` in {name} | {price:.10g} |" for kind, price in region.instance_types.items()]
    return "\n".join([f"In force {source}. Other regions are estimated by {table.home}.", "", *rows])
