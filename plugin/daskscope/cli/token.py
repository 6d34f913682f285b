"""`daskscope token`: who may ask the server what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from daskscope.arguments import Scope
from daskscope.cli.asking import asking
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted, listing
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.records import Records
    from daskscope.session import Session


@click.group()
def token() -> None:
    """List, make and revoke the account's tokens, with one of scope admin.

    Without one, or without a server: `daskscope admin token`, straight to the stores.
    """


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(get_args(Scope)),
    help="What it may do; may be repeated.  [default: read]",
)
@click.option("--expires", metavar="SPAN", help="How long it is good, like '90d'.  [default: until revoked]")
@formatted(TABLE, "json")
@asking
def create(session: Session, name: str, scopes: tuple[Scope, ...], expires: str | None, form: str) -> None:
    """Make a token called NAME and print it, this once: only a hash of it is kept."""
    made = session.create_token(name, scopes or ("read",), expires=expires)
    if form == "json":
        document(made)
    else:
        click.echo(f"Key id {made['key_id']} of account {made['account']}, may {', '.join(made['scopes'])}.", err=True)
        click.echo(made["token"])


def _list(session: Session, **options: Any) -> Records:
    """List the account's tokens, oldest first; their secrets are kept nowhere."""
    return session.list_tokens(**options)


token.add_command(listing(_list), "list")


@token.command()
@asking
@click.argument("key_id")
def revoke(session: Session, key_id: str) -> None:
    """Revoke the token KEY_ID; the token itself will do, too."""
    revoked = session.revoke_token(key_id.removeprefix("dks_").partition("_")[0])
    click.echo(printable(revoked["sentence"]), err=True)
