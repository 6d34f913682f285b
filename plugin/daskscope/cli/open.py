"""The command that shows a page in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from daskscope.cli.asking import asking, clusters_known, number_of
from daskscope.cli.browser import show
from daskscope.errors import BadRequest
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.session import Session


@click.command("open")
@click.argument("cluster", metavar="[CLUSTER]", required=False, shell_complete=clusters_known)
@click.option("--browser/--no-browser", "wanted", default=None, help="Open the page, or only print its address.")
@asking
def open_(session: Session, cluster: str | None, wanted: bool | None) -> None:
    """Open the page of CLUSTER, or of the account, in your browser; without one, print its address.

    Whoever is not signed in there is asked to.
    """
    if cluster is None:
        url = session.list_clusters(since=None, limit=1).url
    else:
        url = session.get_cluster(number_of(session, cluster)).url
    if url is None:
        raise BadRequest(
            "A lake that is read without a server has no pages: `daskscope serve --data FOLDER` shows them."
        )
    if not show(url, wanted):
        click.echo(printable(url))
