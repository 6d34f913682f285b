"""The command that lists what was done to an account, and by whom."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from daskscope.cli.listing import listing
from daskscope.cli.times import MONTH, back, since, until

if TYPE_CHECKING:
    from daskscope.records import Records
    from daskscope.session import Session


@functools.partial(listing, nothing="Nothing was done. Without --since these are the acts of the last 30 days.")
@since(MONTH)
@until
@click.option("--actor", metavar="NAME", help="Only what this one did.")
@click.option("--action", metavar="ACTION", help="Only this, like token.create.")
def audit(session: Session, since: str | None, **options: Any) -> Records:
    """List what was done to the account, latest first, with a token that may admin.

    Tokens, users, policies, reports that somebody opened, hid or deleted, clusters asked to close, prices, deletions.
    """
    return session.list_audit(since=back(since, MONTH), **options)
