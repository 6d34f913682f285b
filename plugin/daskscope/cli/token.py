"""`daskscope token`: who may ask the server what."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

import click

from daskscope.arguments import Scope, seconds
from daskscope.cli.asking import asking_server
from daskscope.cli.formats import TABLE, document
from daskscope.cli.given import token_of
from daskscope.cli.listing import formatted, listing
from daskscope.cli.table import table
from daskscope.records import printable
from daskscope.records.values import shown

if TYPE_CHECKING:
    from daskscope.records import Record, Records
    from daskscope.session import Session


_EXPIRES = """How long it is good, like '90d'. One that may more than ingest is good for no longer than the token that
makes it.  [default: until then, or until revoked]"""


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
@click.option(
    "--expires",
    metavar="SPAN",
    help=_EXPIRES,
)
@click.option(
    "--personal/--site",
    default=None,
    help="Yours, in all of your accounts; or of this account, and nobody's own.  [default: an admin makes the latter]",
)
@formatted(TABLE, "json")
@asking_server
def create(
    session: Session, name: str, scopes: tuple[Scope, ...], expires: str | None, personal: bool | None, form: str
) -> None:
    """Make a token called NAME and print it, this once: only a hash of it is kept."""
    made = session.create_token(name, scopes or ("read",), expires=expires, personal=personal)
    _tell(made, form, seconds(expires, "--expires", _SPAN))


@token.command()
@click.argument("key_id")
@click.option("--overlap", metavar="SPAN", default="1 day", show_default=True, help="The old one is good for so long.")
@formatted(TABLE, "json")
@asking_server
def rotate(session: Session, key_id: str, overlap: str, form: str) -> None:
    """Make a token like KEY_ID and print it, this once; the old one ends after a while. The token itself will do, too.

    Put the new one in its place meanwhile.
    """
    _tell(session.rotate_token(_key_id(key_id), overlap=overlap), form)


def _tell(made: Record, form: str, asked_for_s: int | None = None) -> None:
    """Of a new token; `asked_for_s` is how long it was to be good."""
    if asked_for_s is not None and (left_s := _left_s(made)) is not None and left_s < asked_for_s - 1:
        said = "That is less than was asked for: no token outlives the one that it is made with."
        click.echo(f"It is good until {shown('expires', made['expires'])}. {said}", err=True)
    if form == "json":
        document(made)
        return
    whose = f"{made['user']} in account" if made.get("user") else "account"
    until = shown("expires", made["expires"]) if made.get("expires") else "it is revoked"
    told = f"Key id {made['key_id']} of {whose} {made['account']}, may {', '.join(made['scopes'])}, good until {until}."
    click.echo(printable(" ".join(filter(None, (told, made.get("sentence"))))), err=True)
    click.echo(printable(made["token"]))


def _left_s(made: Record) -> float | None:
    """How long a new token is good; None where nobody said."""
    if not (made.get("expires") and made.get("created")):
        return None
    begins, ends = (datetime.fromisoformat(made[name]) for name in ("created", "expires"))
    return (ends - begins).total_seconds()


def _apart(found: Records) -> str:
    """As a table, those that were revoked at its end."""
    ordered = found[:]
    ordered.sort(key=lambda row: row.get("revoked") is not None)
    return table(ordered)


def _list(session: Session, **options: Any) -> Records:
    """List your tokens, or with one of scope admin the account's, oldest first, in a table those that were revoked
    last; their secrets are kept nowhere."""
    return session.list_tokens(**options)


token.add_command(listing(_list, _apart, asking=asking_server), "list")


@token.command()
@asking_server
@click.argument("key_id")
def revoke(session: Session, key_id: str) -> None:
    """Revoke the token KEY_ID. A whole token will do, too, and proves itself: what was found needs no login.

    `-` reads it from standard input, where neither `ps` nor the shell's history shows it.
    """
    which = token_of(key_id, "KEY_ID")
    assert which is not None  # only of None, which is none
    click.echo(printable(session.revoke_token(which)["sentence"]), err=True)


_SPAN = "a time span like '90d'"


def _key_id(text: str) -> str:
    """Of what is one, or a whole token."""
    return text.removeprefix("dks_").partition("_")[0]
