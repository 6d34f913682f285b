"""The command that asks a cluster to close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from daskscope.cli.asking import asking, cluster_argument, number_of
from daskscope.errors import NotClosable
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.session import Session


@click.command()
@cluster_argument
@click.option("--reason", metavar="TEXT", help="Why, for those who are connected to it: at most 200 characters.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@asking
def stop(session: Session, cluster: str, reason: str | None, yes: bool) -> None:
    """Ask CLUSTER to close: its number, scheduler id, UUID, or `latest` (not with --yes).

    It is told when it reports next, and ends with all that it holds. Best effort: one that does not report, or was
    started with daskscope.analytics.remote-close: false, goes on.
    """
    if yes and cluster == "latest":
        raise click.UsageError("The latest cluster may be somebody else's: with --yes, name it by its number.")
    number = number_of(session, cluster)
    if not yes:
        found = session.get_cluster(number)
        who, doing = found["user"] or "somebody unknown", found["answers"]["running"]["sentence"]
        if found.get("status") in ("stopped", "lost"):  # as the server would say, once somebody had confirmed it
            raise NotClosable(f"Cluster {found['id']} cannot be asked to close: it is {found['status']}. {doing}")
        click.echo(printable(f"Cluster {found['id']}, {found['name']!r} of {who}: {doing}"), err=True)
        click.confirm("Close it? Running tasks and held results are lost", abort=True, err=True)
        number = str(found["id"])
    click.echo(printable(session.close(number, reason=reason)["sentence"]))
