"""`daskscope user`: who is in an account, and what they may there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from daskscope.arguments import UserRole
from daskscope.cli.asking import asking_server
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted, listing
from daskscope.records import printable
from daskscope.records.values import shown

if TYPE_CHECKING:
    from daskscope.records import Records
    from daskscope.session import Session


@click.group()
def user() -> None:
    """List who is in the account; invite somebody, change what they may, take them out (as an admin).

    An admin looks after the account, a member computes, a viewer looks. Nobody but who runs the server makes accounts:
    `daskscope admin account`.
    """


def _list(session: Session, **options: Any) -> Records:
    """List who is in the account, by name."""
    return session.list_users(**options)


user.add_command(listing(_list, asking=asking_server), "list")


@user.command()
@click.option("--role", type=click.Choice(get_args(UserRole)), default="member", show_default=True)
@click.option("--user", "name", metavar="NAME", help="Who alone may accept.  [default: whoever has the link]")
@formatted(TABLE, "json")
@asking_server
def invite(session: Session, role: UserRole, name: str | None, form: str) -> None:
    """Make an invitation and print its link, this once: good once, for a week.

    Whoever opens it joins as themselves where they are signed in, or under a name that nobody has yet.
    """
    made = session.invite_user(role, name)
    if form == "json":
        document(made)
    else:
        who = made.get("user") or "whoever opens it"
        until = shown("expires", made.get("expires"))
        click.echo(printable(f"For {who}, as {role} of account {made.get('account')}, until {until}."), err=True)
        click.echo(printable(made["url"]))


def _invitations(session: Session, **options: Any) -> Records:
    """List the invitations that nobody has accepted yet (as an admin)."""
    return session.list_invitations(**options)


user.add_command(listing(_invitations), "invitations")


@user.command()
@asking_server
@click.argument("id", metavar="ID")
def withdraw(session: Session, id: str) -> None:
    """Withdraw the invitation ID of `daskscope user invitations`: nobody joins by its link any more."""
    click.echo(printable(session.withdraw_invitation(id)["sentence"]), err=True)


@user.command()
@asking_server
@click.argument("name", metavar="USER")
@click.argument("role", type=click.Choice(get_args(UserRole)))
def role(session: Session, name: str, role: UserRole) -> None:
    """Make USER an admin, a member or a viewer of the account."""
    changed = session.set_role(name, role)
    click.echo(printable(changed["sentence"]), err=True)


@user.command()
@asking_server
@click.argument("name", metavar="USER")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(session: Session, name: str, yes: bool) -> None:
    """Take USER out of the account; what clusters of theirs told stays. Anybody may take out themselves."""
    if not yes:
        click.confirm(printable(f"Take {name} out of the account"), abort=True, err=True)
    click.echo(printable(session.remove_user(name)["sentence"]), err=True)
