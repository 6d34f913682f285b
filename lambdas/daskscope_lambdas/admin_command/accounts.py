"""`daskscope admin account`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from daskscope.errors import Conflict, SettingsError
from daskscope_lambdas.admin_command.acts import audit, operator
from daskscope_lambdas.admin_command.links import send_link, url_option
from daskscope_lambdas.admin_command.listing import write
from daskscope_lambdas.admin_command.registry import on_stores

if TYPE_CHECKING:
    from daskscope_lambdas.wiring import Adapters


@click.group()
def account() -> None:
    """Make accounts, and see which there are."""


@account.command()
@click.argument("name")
@on_stores
@click.option("--user", required=True, help="Its first admin: somebody new, or who has that name here.")
@url_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def create(world: Adapters, name: str, user: str, url: str | None, as_json: bool) -> None:
    """Make the account NAME and print a link, good once and for a day, by which its first admin signs in.

    They invite whom they like: `daskscope user invite`.
    """
    from daskscope_lambdas.service.belongings import going_until
    from daskscope_lambdas.service.people import People
    from daskscope_query.layout import checked_account

    try:
        checked_account(name)
    except ValueError as error:
        raise SettingsError("NAME", name, "1 to 63 of a-z, 0-9 and '-'") from error
    check_user("--user", user)
    if name in known(world) or world.tokens.list(name):
        raise Conflict(f"There is an account {name} already: `daskscope admin user role` lets somebody into it.")
    if (left_s := going_until(world, name) - world.clock.now()) > 0:
        raise Conflict(f"The account {name} was just deleted, and what comes of it goes too: wait {left_s:.0f} s.")
    by = operator(name)
    audit(world).record(by, "account.create", name, {"user": user})
    user = People(world.users, world.clock).put(name, user, "admin", by.who).user
    send_link(world, by, user, url, as_json)


@account.command("list")
@on_stores
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def list_accounts(world: Adapters, as_json: bool) -> None:
    """List the accounts that have clusters, people, reports, or anything that they want."""
    from daskscope.records import Records

    accounts = known(world)
    members = {name: world.users.list(name) for name in accounts}
    records = Records(
        {
            "account": name,
            "users": len(members[name]),
            "admins": [each.user for each in members[name] if each.role == "admin"],
            "tokens": sum(row.kind == "token" and row.revoked_at is None for row in world.tokens.list(name)),
        }
        for name in accounts
    )
    write(records, as_json, "There is no account yet.")


def known(world: Adapters) -> list[str]:
    """All accounts of which anything is known, but for those that have nothing but tokens."""
    found = {*world.clusters.accounts(), *world.users.accounts(), *world.policies.accounts(), *world.reports.accounts()}
    return sorted(found)


def check_user(option: str, user: str) -> None:
    """Raises SettingsError for what can be nobody's name."""
    from daskscope_lambdas.service.people import checked_user

    try:
        checked_user(user)
    except ValueError as error:
        allowed = "1 to 64 of A-Z, a-z, 0-9 and ._@+-, of which the first is a letter or digit"
        raise SettingsError(option, user, allowed) from error
