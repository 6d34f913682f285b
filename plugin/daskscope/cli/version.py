"""What runs here, and as whom it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from daskscope.cli.asking import asking
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted

if TYPE_CHECKING:
    from daskscope.session import Session


@click.command()
def version() -> None:
    """Print the version of daskscope."""
    from daskscope import __version__

    click.echo(__version__)


@click.command()
@formatted(TABLE, "json")
@asking
def whoami(session: Session, form: str) -> None:
    """Whose the token is, what it may do, and the server's version."""
    found = session.whoami()
    if form == "json":
        document(found)
    else:
        click.echo(found.text())
