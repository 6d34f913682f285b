"""The command that shows what machines are priced at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from daskscope.cli.asking import asking
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted
from daskscope.cli.table import table
from daskscope.records import Record, Records

if TYPE_CHECKING:
    from daskscope.session import Session


@click.command()
@formatted(TABLE, "json")
@asking
def prices(session: Session, form: str) -> None:
    """Show the prices in force, and where they are from.

    A family has the price of its `large`; its other sizes cost in proportion.
    """
    found = session.prices()
    if form == "json":
        document(found)
        return
    click.echo(Record({name: value for name, value in found.items() if name != "regions"}).text())
    if rows := [*_rows(found.get("regions") or {})]:
        click.echo(f"\n{table(Records(rows))}")


def _rows(regions: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """A price an hour each."""
    for region, of in regions.items():
        for family, price in (of.get("families") or {}).items():
            yield {"region": region, "machines": f"{family}.large", "per_hour": price}
        for kind, price in (of.get("instance_types") or {}).items():
            yield {"region": region, "machines": kind, "per_hour": price}
