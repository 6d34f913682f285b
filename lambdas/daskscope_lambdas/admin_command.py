"""`daskscope admin`: straight to the registry, with the operator's own access to it and no server between.

Light to import: what it needs is loaded when it runs.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from daskscope.cli import Failure
from daskscope.errors import DaskscopeError, NotFound, ServerError, SettingsError
from daskscope_lambdas import env
from daskscope_lambdas.ports import Missing, Scope, StoreError, TokenRow

if TYPE_CHECKING:
    from daskscope_lambdas.wiring import Adapters

ACCOUNTS = {"local": "local", "aws": "main"}
"""World to the account that is meant if none is named."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def admin() -> None:
    """Look after a server, with your own access to its registry.

    Which server: --data names the folder of a `daskscope serve`, --stack what `make deploy` made; else DASKSCOPE_WORLD
    and what goes with it, as the functions have them.
    """


@admin.group()
def token() -> None:
    """Make, list and revoke tokens."""


def _on_registry(command: Callable[..., None]) -> Callable[..., None]:
    """Opens the registry that the options name for `command(world, account, ...)`; tells its errors in a sentence."""

    @click.option("--data", type=click.Path(file_okay=False), help="Data folder of a `daskscope serve`.")
    @click.option("--stack", metavar="NAME", help="Stack in AWS, found with your credentials and region.")
    @click.option("--account", help="Whose tokens.  [default: main in AWS, else local]")
    @functools.wraps(command)
    def run(data: str | None, stack: str | None, account: str | None, **options: Any) -> None:
        from daskscope_lambdas.wiring import connect
        from daskscope_query.layout import checked_account

        try:
            where = _named(data, stack)
            try:
                account = checked_account(account or ACCOUNTS[where.world])
            except ValueError as error:
                raise SettingsError("--account", account, "1 to 63 of a-z, 0-9 and '-'") from error
            world = connect(where)
            try:
                command(world, account, **options)
            finally:
                world.close()
        except StoreError as error:
            raise Failure(ServerError(f"The registry could not be used: {error}")) from error
        except DaskscopeError as error:
            raise Failure(error) from error

    return run


def _named(data: str | None, stack: str | None) -> env.Env:
    """The environment of the server that is meant."""
    if data and stack:
        raise click.UsageError("--data and --stack name two servers: say one.")
    if stack:
        from daskscope_lambdas.deployed import environment

        return environment(stack)
    try:
        where = env.LocalEnv(data=data) if data else env.read()
    except KeyError as error:
        said = f"{error.args[0]} is not set. Say --data FOLDER or --stack NAME, or set what the functions have."
        raise click.UsageError(said) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    # A folder that is misspelt would be made, and with it a server that nobody runs.
    if isinstance(where, env.LocalEnv) and not (Path(where.data) / "registry.sqlite").is_file():
        raise SettingsError("--data", where.data, "a folder in which `daskscope serve` has run")
    return where


@token.command()
@_on_registry
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
    text, row = mint(world.tokens, world.clock, account, scopes, name, expires_at)
    if as_json:
        click.echo(json.dumps({"token": text, **_record(row)}, indent=2))
    else:
        click.echo(f"Key id {row.key_id} of account {account}, may {', '.join(sorted(row.scopes))}.", err=True)
        click.echo(text)


@token.command("list")
@_on_registry
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def list_tokens(world: Adapters, account: str, as_json: bool) -> None:
    """List the account's tokens, oldest first; their secrets are kept nowhere."""
    from daskscope.records import Records

    records = Records(_record(row) for row in world.tokens.list(account))
    if as_json:
        click.echo(json.dumps(records, indent=2))
    elif records:
        click.echo(records.text())
    else:
        click.echo(f"Account {account} has no tokens.", err=True)


@token.command()
@click.argument("key_id")
@_on_registry
def revoke(world: Adapters, account: str, key_id: str) -> None:
    """Revoke the account's token KEY_ID; the token itself will do, too."""
    from daskscope_lambdas.service.tokens import CACHE_S

    key_id = key_id.removeprefix("dks_").partition("_")[0]
    try:
        row = world.tokens.find(key_id)
        if row.account != account:
            raise Missing
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


def _record(row: TokenRow) -> dict[str, Any]:
    from daskscope_lambdas.service.records import iso

    return {
        "key_id": row.key_id,
        "name": row.name,
        "account": row.account,
        "scopes": sorted(row.scopes),
        "created": iso(row.created_at),
        "expires": iso(row.expires_at),
        "revoked": iso(row.revoked_at),
    }


if __name__ == "__main__":
    admin(prog_name="daskscope admin")
