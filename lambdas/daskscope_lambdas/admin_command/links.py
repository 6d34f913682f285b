"""Sign-in links that an operator gives to people, and where they lead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daskscope_lambdas.admin_command.acts import audit

if TYPE_CHECKING:
    from daskscope_lambdas.service.audit import Operator
    from daskscope_lambdas.wiring import Adapters


def url_option(command: Callable[..., None]) -> Callable[..., None]:
    said = "Where the server is reached.  [default: where the stack is, or the server that runs on this data folder]"
    return click.option("--url", help=said)(command)


def send_link(world: Adapters, by: Operator, user: str, url: str | None, as_json: bool) -> None:
    """Print a link by which `user` signs in once, within a day, to all that they are in each of their accounts."""
    from daskscope_lambdas.service import tickets
    from daskscope_lambdas.service.records import iso
    from daskscope_lambdas.service.tokens import OF_ROLES

    where = url or _address()
    audit(world).record(by, "login.link", user)
    link = tickets.sign_in_link(
        world.tickets, world.clock, by.account, OF_ROLES["admin"], user=user, good_s=tickets.LONG_SIGN_IN_S
    )
    found = f"{where.rstrip('/')}/{link.url}" if where else link.url
    expires = iso(link.expires_at)
    if as_json:
        told = {"account": by.account, "user": user, "url": found, "expires": expires}
        click.echo(json.dumps(told, indent=2))
        return
    said = f"{user} signs in to account {by.account} by this link, once, until {expires}."
    if not where:
        said += " Put the address of the server before it: --url does so."
    click.echo(said, err=True)
    click.echo(found)


def _address() -> str | None:
    """Of the server that the command's options name; None if that cannot be told."""
    options: dict[str, Any] = click.get_current_context().params
    if stack := options.get("stack"):
        from daskscope_lambdas.deployed import address

        return address(stack)
    return _running(Path(data).expanduser().absolute()) if (data := options.get("data")) else None


def _running(data: Path) -> str | None:
    """Of the server that runs with this data folder."""
    from daskscope_lambdas.embedded.occupancy import occupant

    found = occupant(data)
    return found.address if found else None
