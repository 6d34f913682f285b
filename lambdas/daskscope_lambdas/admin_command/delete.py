"""`daskscope admin delete`."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click

from daskscope.errors import NotFound, ServerError, SettingsError
from daskscope_lambdas.admin_command.accounts import known
from daskscope_lambdas.admin_command.acts import audit, operator
from daskscope_lambdas.admin_command.registry import on_registry, on_stores

if TYPE_CHECKING:
    from daskscope_lambdas.wiring import Adapters

_WHEN = """It is in no answer from now on, whatever comes of it is refused, and there is no way back.
Sealed days are made anew without it at the next run of `compact`; what came today and yesterday goes when these days
are sealed. Backups of the registry by point-in-time recovery fade within 35 days."""


@click.group()
def delete() -> None:
    """Delete a cluster or an account, with all that was ever kept of it."""


@delete.command()
@click.argument("reference", metavar="CLUSTER")
@on_registry
@click.option("--yes", is_flag=True, help="Do not ask whether you mean it.")
def cluster(world: Adapters, account: str, reference: str, yes: bool) -> None:
    """Delete the account's CLUSTER: its number, its scheduler's id or the UUID in it, or a name that no other has.

    One that was kept no longer has no number any more; what is left of it goes by its UUID.
    """
    from daskscope_lambdas.service.catalog import Catalog
    from daskscope_lambdas.service.deletion import Deleter
    from daskscope_lambdas.service.live_catalog import LiveCatalog
    from daskscope_lambdas.service.price_store import PriceReader
    from daskscope_lambdas.service.records import iso

    live = LiveCatalog.over(world, PriceReader(world.objects, world.clock).of)
    try:
        row = Catalog(world.clusters, world.clock, live.table).find(account, reference)
    except NotFound:
        uuid = _left_of(world, account, reference)
        if uuid is None:
            raise
        named = f"cluster {uuid}, which is in no list any more"
    else:
        uuid, named = (
            row.uuid,
            f"cluster {row.id} ({row.identity.get('name') or row.uuid}, started {iso(row.started_at)})",
        )
    _confirm(f"{named} of account {account}", yes)
    # One without a row gets it for a moment: what stays of that refuses whatever comes of it later.
    now = world.clock.now()
    row = world.clusters.enrol(account, uuid, now, now)
    audit(world).record(operator(account), "data.delete", uuid, {"cluster_id": row.id})
    Deleter(world).delete_cluster(row, getpass.getuser())
    click.echo(f"Deleted {named}.\n{_WHEN}", err=True)


@delete.command("account")
@click.argument("name")
@on_stores
@click.option("--yes", is_flag=True, help="Do not ask whether you mean it.")
def delete_account(world: Adapters, name: str, yes: bool) -> None:
    """Delete the account NAME: its clusters, people, tokens and reports, the key to its code, what it
    wanted, and what was written down of who did what.

    Stop a `daskscope serve` that has this account first: it makes tokens of its own anew when it starts.
    """
    from daskscope_lambdas.service.deletion import Deleter
    from daskscope_lambdas.service.exclusions import PASS_S
    from daskscope_query.layout import checked_account

    try:
        checked_account(name)
    except ValueError as error:
        raise SettingsError("NAME", name, "1 to 63 of a-z, 0-9 and '-'") from error
    if not (name in known(world) or world.tokens.list(name) or _in_lake(world, name)):
        raise NotFound(f"There is no account {name} here: it has no clusters, people, tokens or rows.")
    _confirm(f"account {name} with all its clusters and tokens", yes)
    Deleter(world).delete_account(name, getpass.getuser())
    click.echo(f"Deleted account {name}.\n{_WHEN}", err=True)
    click.echo(
        f"Whoever uses the name again should wait {PASS_S:.0f} s: until then what comes of it goes too.", err=True
    )


def _left_of(world: Adapters, account: str, reference: str) -> str | None:
    """The UUID of a cluster that the lake alone knows."""
    from daskscope_lambdas.service.catalog import uuid_of

    try:
        uuid = uuid_of(reference)
    except NotFound:
        return None
    return uuid if not world.clusters.deleted([uuid]) and _in_lake(world, account, uuid) else None


def _in_lake(world: Adapters, account: str, cluster: str | None = None) -> bool:
    from daskscope_query.lake import Lake, MovedError
    from daskscope_query.presence import is_known

    try:
        return is_known(Lake(world.lake_root, world.seals.boundary()), account, cluster)
    except MovedError as error:
        raise ServerError(f"Days are being sealed or made anew; say it again: {error}") from error


def _confirm(what: str, yes: bool) -> None:
    if not yes:
        click.confirm(f"Delete {what}, for good?", abort=True, err=True)
