"""`daskscope admin token`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

import click

from daskscope.errors import NotFound, SettingsError
from daskscope_lambdas.admin_command.acts import audit, operator
from daskscope_lambdas.admin_command.listing import write
from daskscope_lambdas.admin_command.registry import on_registry
from daskscope_lambdas.ports import Missing, Scope, TokenRow

if TYPE_CHECKING:
    from daskscope_lambdas.wiring import Adapters


@click.group()
def token() -> None:
    """Make, list and revoke tokens."""


@token.command()
@on_registry
@click.option(
    "--scope", "scopes", multiple=True, required=True, type=click.Choice(get_args(Scope)), help="May be repeated."
)
@click.option("--name", required=True, help="Whose it is, or what for: shown in lists.")
@click.option("--expires-in", metavar="SPAN", help="How long it is good, like '90d'.  [default: until revoked]")
@click.option("--first", is_flag=True, help="Only if the account never had a token of scope admin.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document; null if --first made none.")
def new(
    world: Adapters,
    account: str,
    scopes: tuple[Scope, ...],
    name: str,
    expires_in: str | None,
    first: bool,
    as_json: bool,
) -> None:
    """Make a token and print it, this once: only a hash of it is kept."""
    from daskscope_lambdas.service.tokens import mint

    if first and any("admin" in row.scopes for row in world.tokens.list(account)):
        if as_json:
            click.echo("null")
        else:
            click.echo(f"Account {account} has had its first token. Without --first this makes another.", err=True)
        return
    expires_at = None if expires_in is None else world.clock.now() + _seconds(expires_in)

    def note(row: TokenRow) -> None:
        told = {"name": row.name, "scopes": sorted(row.scopes)}
        audit(world).record(operator(account), "token.create", row.key_id, told)

    text, row = mint(world.tokens, world.clock, account, scopes, name, expires_at, note=note)
    if as_json:
        from daskscope_lambdas.service import records

        click.echo(json.dumps({"token": text, **records.token(row)}, indent=2))
    else:
        click.echo(f"Key id {row.key_id} of account {account}, may {', '.join(sorted(row.scopes))}.", err=True)
        click.echo(text)


@token.command("list")
@on_registry
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def list_tokens(world: Adapters, account: str, as_json: bool) -> None:
    """List the account's tokens, oldest first; their secrets are kept nowhere."""
    from daskscope.records import Records
    from daskscope_lambdas.service.records import token

    records = Records(token(row) for row in world.tokens.list(account))
    write(records, as_json, f"Account {account} has no tokens.")


@token.command()
@click.argument("key_id")
@on_registry
def revoke(world: Adapters, account: str, key_id: str) -> None:
    """Revoke the account's token KEY_ID; the token itself will do, too."""
    from daskscope_lambdas.service.gate import CACHE_S

    key_id = key_id.removeprefix("dks_").partition("_")[0]
    try:
        row = world.tokens.find(key_id)
        if row.account != account:
            raise Missing
        audit(world).record(operator(account), "token.revoke", key_id, {"name": row.name, "user": row.user})
        world.tokens.revoke(key_id, world.clock.now())
    except Missing as error:
        raise NotFound(f"Account {account} has no token with key id {key_id}.") from error
    click.echo(f"Revoked {row.name!r}. Where it was just used it may pass for {CACHE_S:.0f} s more.", err=True)


def _seconds(span: str) -> float:
    from dask.utils import parse_timedelta

    try:
        seconds = float(parse_timedelta(span))
    except (ValueError, KeyError) as error:
        raise SettingsError("--expires-in", span, "a span of time, like '90d' or '12h'") from error
    if seconds <= 0:
        raise SettingsError("--expires-in", span, "a span of time longer than nothing")
    return seconds
