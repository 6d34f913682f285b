"""`daskscope admin prices`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from daskscope_lambdas.admin_command.accounts import known
from daskscope_lambdas.admin_command.acts import audit, operator
from daskscope_lambdas.admin_command.registry import on_stores

if TYPE_CHECKING:
    from collections.abc import Callable

    from daskscope_lambdas.wiring import Adapters


@click.group()
def prices() -> None:
    """Show the prices that clusters' costs are found by, or set some of your own.

    The prices of an account stand over those of the installation, and these over the packaged ones.
    """


def _of_account(command: Callable[..., None]) -> Callable[..., None]:
    said = "Of this account alone.  [default: the installation]"
    return click.option("--account", callback=_checked, help=said)(command)


def _checked(_context: click.Context, _parameter: click.Parameter, account: str | None) -> str | None:
    from daskscope_query.layout import checked_account

    try:
        return None if account is None else checked_account(account)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@prices.command()
@on_stores
@_of_account
@click.option("--json", "as_json", is_flag=True, help="One JSON document, with all prices.")
def show(world: Adapters, account: str | None, as_json: bool) -> None:
    """Show what is in force, and where it comes from."""
    from daskscope.records import Records
    from daskscope_lambdas.service.costs import prices_record
    from daskscope_lambdas.service.price_store import in_force

    record = prices_record(in_force(world.objects, account), world.clock.now())
    if as_json:
        click.echo(json.dumps(record, indent=2))
        return
    for source in record["sources"]:
        click.echo(source, err=True)
    click.echo(Records(_rows(record)).text())


@prices.command("set")
@on_stores
@_of_account
@click.argument("file", type=click.File("rb"))
def set_(world: Adapters, account: str | None, file: BinaryIO) -> None:
    """Set prices out of a YAML FILE (`-` reads stdin), in place of what was set before.

    docs/reference/prices.md says what may stand in it. Servers see them within a minute; costs of clusters that ended
    are found anew as well.
    """
    from daskscope_lambdas.service.price_store import PriceKeeper, whose
    from daskscope_lambdas.service.strict_yaml import MAX_BYTES

    text = file.read(MAX_BYTES + 1)
    PriceKeeper(world.objects, world.clock).set(account, text, file.name, lambda: _note(world, account, "set"))
    click.echo(f"Prices of {whose(account)} are set.", err=True)


@prices.command()
@on_stores
@_of_account
def clear(world: Adapters, account: str | None) -> None:
    """Take back what was set."""
    from daskscope_lambdas.service.price_store import PriceKeeper, whose

    _note(world, account, "cleared")
    there_were = PriceKeeper(world.objects, world.clock).clear(account)
    said = "are taken back" if there_were else "were never set"
    click.echo(f"Prices of {whose(account)} {said}.", err=True)


def _note(world: Adapters, account: str | None, what: str) -> None:
    """In the account whose prices they are: those of the installation are everybody's."""
    for each in known(world) if account is None else [account]:
        audit(world).record(operator(each), "prices.set", account or "installation", {"prices": what})


def _rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Prices as lines of a table."""
    found = [("", name, record[name]) for name in ("core_hour", "gib_hour", "spot_factor")]
    found += [("any", name, price) for name, price in sorted(record["instance_types"].items())]
    for region, told in record["regions"].items():
        found += [(region, f"{family}.large", price) for family, price in sorted(told["families"].items())]
        found += [(region, name, price) for name, price in sorted(told["instance_types"].items())]
    return [{"region": region, "price_of": name, "per_hour": f"{price:.10g}"} for region, name, price in found]
