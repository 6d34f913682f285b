"""The commands that list clusters, and what happened in one or in all of them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, get_args

import click

from daskscope.arguments import WEEK, Done, Origin, Status
from daskscope.cli.asking import maybe_a_cluster
from daskscope.cli.listing import ends_with, listing
from daskscope.cli.times import OF_ONE, back, of_one, since, until, user

if TYPE_CHECKING:
    from daskscope.records import Records
    from daskscope.session import Session

EXIT_FOUND = 10
"""Of `exceptions --exit-code`, if there are any."""

_sort = functools.partial(click.option, "--sort", metavar="KEY")


@functools.partial(listing, nothing="No such cluster. Without --since these are of the last 7 days.")
@since(WEEK)
@until
@user
@click.option("--status", type=click.Choice(get_args(Status)), help="Only those in this state.")
@click.option("--kind", help="Only of this kind, like SLURMCluster.")
@click.option("--name", help="Only of this name.")
@click.option("--tag", metavar="KEY[=VALUE]", help="Only with this tag.")
@click.option("-q", "--search", "q", metavar="TEXT", help="Only with this in name, user, host, kind, a tag or number.")
@_sort(
    help="id, name, user, created, last_seen, duration, peak_workers, peak_memory, n_tasks, n_tasks_erred, "
    "thread_seconds, cost or idle; `-cost` is the greatest first.  [default: -created]"
)
def clusters(session: Session, since: str | None, **options: Any) -> Records:
    """List clusters, latest start first."""
    return session.list_clusters(since=back(since, WEEK), **options)


@listing
@maybe_a_cluster
@since(OF_ONE)
@until
@user
@click.option("--code", metavar="FINGERPRINT", help="Only of this code, as `daskscope code` names it.")
@click.option("--status", type=click.Choice(get_args(Done)), help="Only in this state.")
@_sort(help="start, duration, cost, ...; `-duration` is the longest first.  [default: -start]")
def computations(session: Session, cluster: str | None, since: str | None, **options: Any) -> Records:
    """List the computations of CLUSTER, or of all, latest first."""
    return session.list_computations(cluster, since=of_one(since, cluster), **options)


@functools.partial(listing, nothing="No exceptions.")
@maybe_a_cluster
@since(OF_ONE)
@user
@click.option("--origin", type=click.Choice(get_args(Origin)), help="Only where this one failed.")
@click.option("--group/--flat", default=False, help="A record for those alike, over all clusters, or for each.")
@click.option("--exit-code", "tells", is_flag=True, help=f"Exit with {EXIT_FOUND} if there are any.")
def exceptions(session: Session, cluster: str | None, since: str | None, tells: bool, **options: Any) -> Records:
    """List the exceptions of CLUSTER, or of all, latest first."""
    found = session.list_exceptions(since=of_one(since, cluster), cluster_id=cluster, **options)
    if tells and found:
        ends_with(EXIT_FOUND)
    return found


@listing
@maybe_a_cluster
@since(OF_ONE)
@until
@user
@click.option("--topic", help="Only of this topic.")
def events(session: Session, cluster: str | None, since: str | None, **options: Any) -> Records:
    """List the events of CLUSTER, or of all, latest first."""
    return session.list_events(cluster, since=of_one(since, cluster), **options)


@listing
@maybe_a_cluster
@since(OF_ONE)
@until
@user
@click.option("--expected/--unexpected", default=None, help="Only those that somebody asked for, or nobody.")
def deaths(session: Session, cluster: str | None, since: str | None, **options: Any) -> Records:
    """List the workers that went, of CLUSTER or of all, latest first, and why."""
    return session.list_deaths(cluster, since=of_one(since, cluster), **options)
