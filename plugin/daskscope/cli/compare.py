"""The command that holds clusters or computations against each other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from daskscope.cli.asking import asking, clusters_known, number_of
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted
from daskscope.records import CELL

if TYPE_CHECKING:
    from daskscope.session import Session

MOST = 8


@click.command()
@formatted(TABLE, "json")
@asking
@click.argument("ids", metavar="ID ID...", nargs=-1, required=True, shell_complete=clusters_known)
def compare(session: Session, ids: tuple[str, ...], form: str) -> None:
    """Compare clusters (numbers, or `latest`) or computations (their ids), 2 to 8 of a kind: what took longer, and what
    else is not the same."""
    if not 2 <= (n := len(set(ids))) <= MOST:
        raise click.UsageError(f"{n} to compare, each counted once: say 2 to {MOST}.")
    found = session.compare(*(number_of(session, each) for each in ids))
    if form == "json":
        document(found)
    else:
        click.echo(found.text(cell=CELL if sys.stdout.isatty() else None))
