"""The command that shows a page in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from daskscope.cli.asking import asking, clusters_known, number_of
from daskscope.cli.browser import is_wanted, show
from daskscope.errors import BadRequest
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.session import Session


@click.command("open")
@click.argument("cluster", metavar="[CLUSTER]", required=False, shell_complete=clusters_known)
@click.option("--browser/--no-browser", "wanted", default=None, help="Open the page, or only print its address.")
@click.option(
    "--sign-in/--no-sign-in",
    "signs_in",
    default=None,
    help="By a link that signs in who opens it, once.  [default: if a browser is opened, where pages ask for it]",
)
@asking
def open_(session: Session, cluster: str | None, wanted: bool | None, signs_in: bool | None) -> None:
    """Open the page of CLUSTER, or of the account, in your browser; without one, print its address.

    Where pages are for who is signed in, it signs your browser in as who you are here.
    """
    if cluster is None:
        url = session.list_clusters(since=None, limit=1).url
    else:
        url = session.get_cluster(number_of(session, cluster)).url
    if url is None:
        raise BadRequest(
            "A lake that is read without a server has no pages: `daskscope serve --data FOLDER` shows them."
        )
    if signs_in if signs_in is not None else is_wanted(wanted) and session.asks_to_sign_in():
        url = session.sign_in_link(url)["url"]
    if not show(url, wanted):
        click.echo(printable(url))
