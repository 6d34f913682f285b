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
    from daskscope.records import Record, Records
    from daskscope.session import Session


@click.group()
def token() -> None:
    """List, make, rotate and revoke tokens: your own, and those of the account with one of scope admin.

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
@click.option(
    "--personal/--site",
    default=None,
    help="Yours, in all of your accounts; or of this account, and nobody's own.  [default: an admin makes the latter]",
)
@formatted(TABLE, "json")
@asking
def create(
    session: Session, name: str, scopes: tuple[Scope, ...], expires: str | None, personal: bool | None, form: str
) -> None:
    """Make a token called NAME and print it, this once: only a hash of it is kept."""
    _tell(session.create_token(name, scopes or ("read",), expires=expires, personal=personal), form)


@token.command()
@click.argument("key_id")
@click.option("--overlap", metavar="SPAN", default="1 day", show_default=True, help="The old one is good for so long.")
@formatted(TABLE, "json")
@asking
def rotate(session: Session, key_id: str, overlap: str, form: str) -> None:
    """Make a token like KEY_ID and print it, this once; the old one ends after a while. The token itself will do, too.

    Put the new one in its place meanwhile.
    """
    _tell(session.rotate_token(_key_id(key_id), overlap=overlap), form)


def _tell(made: Record, form: str) -> None:
    """Of a new token."""
    if form == "json":
        document(made)
        return
    whose = f"{made['user']} in account" if made.get("user") else "account"
    told = f"Key id {made['key_id']} of {whose} {made['account']}, may {', '.join(made['scopes'])}."
    click.echo(printable(" ".join(filter(None, (told, made.get("sentence"))))), err=True)
    click.echo(printable(made["token"]))


def _list(session: Session, **options: Any) -> Records:
    """List your tokens, or with one of scope admin the account's, oldest first; their secrets are kept nowhere."""
    return session.list_tokens(**options)


token.add_command(listing(_list), "list")


@token.command()
@asking
@click.argument("key_id")
def revoke(session: Session, key_id: str) -> None:
    """Revoke the token KEY_ID; the token itself will do, too."""
    click.echo(printable(session.revoke_token(_key_id(key_id))["sentence"]), err=True)


def _key_id(text: str) -> str:
    """Of what is one, or a whole token."""
    return text.removeprefix("dks_").partition("_")[0]
