"""`daskscope admin user`."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from daskscope_lambdas.admin_command.accounts import check_user
from daskscope_lambdas.admin_command.acts import audit, operator
from daskscope_lambdas.admin_command.links import send_link, url_option
from daskscope_lambdas.admin_command.listing import write
from daskscope_lambdas.admin_command.registry import on_registry
from daskscope_lambdas.ports import Role

if TYPE_CHECKING:
    from daskscope_lambdas.service.people import People
    from daskscope_lambdas.wiring import Adapters


@click.group()
def user() -> None:
    """See and change who is in an account, and let somebody in who is locked out.

    An account's own admins invite people: `daskscope user invite`.
    """


@user.command("list")
@on_registry
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def list_users(world: Adapters, account: str, as_json: bool) -> None:
    """List who is in the account, and what they are there."""
    from daskscope.records import Records
    from daskscope_lambdas.service.records import member

    records = Records(member(each) for each in world.users.list(account))
    write(records, as_json, f"Nobody is in account {account}.")


@user.command()
@click.argument("name", metavar="USER")
@on_registry
@url_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def link(world: Adapters, account: str, name: str, url: str | None, as_json: bool) -> None:
    """Print a link, good once and for a day, by which USER of the account signs in."""
    _people(world).find(account, name)
    send_link(world, operator(account), name, url, as_json)


@user.command()
@click.argument("name", metavar="USER")
@click.argument("wanted", metavar="ROLE", type=click.Choice(get_args(Role)))
@on_registry
def role(world: Adapters, account: str, name: str, wanted: Role) -> None:
    """Make USER an admin, member or viewer of the account, whether or not they were in it.

    Nobody asks them, and the last admin may be made something else.
    """
    from daskscope_lambdas.service.giving import fallen, take_back

    check_user("USER", name)
    by, people = operator(account), _people(world)
    name = people.spelled(name)
    there = {each.user: each.role for each in people.list(account)}.get(name)
    falls = [] if wanted == "admin" else fallen(world.tokens, world.clock, account, name)
    revoked = [row.key_id for row in falls]
    audit(world).record(by, "user.role", name, {"role": wanted, "before": there, "revoked": revoked})
    if there:
        people.change(account, name, wanted, last_too=True)
    else:
        people.put(account, name, wanted, by.who)
    said = take_back(world.tokens, world.clock, falls)
    click.echo(f"{name} is {wanted} of account {account}.{said} Servers see that within a minute.", err=True)


@user.command()
@click.argument("name", metavar="USER")
@on_registry
def remove(world: Adapters, account: str, name: str) -> None:
    """Take USER out of the account, also if they are its last admin. Their name stays theirs."""
    from daskscope_lambdas.service.gate import CACHE_S
    from daskscope_lambdas.service.giving import fallen, take_back

    there = _people(world).find(account, name)
    falls = fallen(world.tokens, world.clock, account, name)
    told = {"role": there.role, "revoked": [row.key_id for row in falls]}
    audit(world).record(operator(account), "user.remove", name, told)
    _people(world).remove(account, name, last_too=True)
    taken = take_back(world.tokens, world.clock, falls)
    said = f"Where they were just active they may pass for {CACHE_S:.0f} s more."
    click.echo(f"{name} is in account {account} no more.{taken} {said}", err=True)


def _people(world: Adapters) -> People:
    from daskscope_lambdas.service.people import People

    return People(world.users, world.clock)
