"""`daskscope admin retention`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from daskscope.errors import SettingsError
from daskscope_lambdas.admin_command.acts import audit, operator
from daskscope_lambdas.admin_command.registry import on_registry

if TYPE_CHECKING:
    from daskscope_lambdas.wiring import Adapters


@click.command()
@on_registry
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="A table or roll-up of the lake; may be repeated."
)
@click.option("--days", type=click.IntRange(1), help="How long its rows are kept after the day on which they came.")
@click.option("--forever", is_flag=True, help="Keep them for ever, as at first.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def retention(
    world: Adapters, account: str, tables: tuple[str, ...], days: int | None, forever: bool, as_json: bool
) -> None:
    """Show how long rows of the account are kept, or change it for some tables.

    Days that are older go once a day; of tables that tell running totals not before each of their clusters was silent
    for as long. With `clusters`, ended clusters leave the lists too. Code goes after the last row that names it.
    """
    from daskscope.records import Records
    from daskscope_lambdas.service.retention import KEPT, checked

    if odd := [table for table in tables if table not in KEPT]:
        raise SettingsError("--table", odd[0], ", ".join(KEPT))
    if bool(tables) != (days is not None or forever) or (days is not None and forever):
        raise click.UsageError("To change anything say --table, and either --days or --forever.")
    kept = world.policies.wish(account, "retention")
    if tables:
        kept = {name: n for name, n in kept.items() if name not in tables}
        if days is not None:
            kept |= dict.fromkeys(tables, days)
        try:
            kept = checked(kept)
        except ValueError as error:
            raise SettingsError("--days", days, str(error).rstrip(".")) from error
        audit(world).record(operator(account), "policy.set", "retention", kept)
        world.policies.set_wish(account, "retention", kept)
    records = Records({"table": name, "days": kept.get(name)} for name in KEPT)
    click.echo(json.dumps(records, indent=2) if as_json else records.text())
