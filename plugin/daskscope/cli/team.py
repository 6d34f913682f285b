"""The commands that ask about the work of a team: over all clusters, unless told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from daskscope.cli.asking import maybe_a_cluster
from daskscope.cli.listing import listing
from daskscope.cli.times import MONTH, OF_ONE, back, of_one, since, until, user
from daskscope.errors import NotFound

if TYPE_CHECKING:
    from daskscope.records import Records
    from daskscope.session import Session

COSTS_BY = ("user", "tag", "day", "week", "instance_type", "cluster", "kind")


@listing
@click.option(
    "--by", default="user", show_default=True, metavar="WHAT,...", help=f"One or several of {', '.join(COSTS_BY)}."
)
@click.option("--tag", metavar="KEY", help="The tag whose values --by tag tells apart.")
@since(MONTH)
@until
@user
def costs(session: Session, by: str, since: str | None, **options: Any) -> Records:
    """What clusters cost: by user, tag, day, week, instance type, cluster or kind.

    Days count whole, in UTC: --since 1h is all of today, and of yesterday where the hour began there.
    """
    return session.costs(by=by, since=back(since, MONTH), **options)


@listing
@maybe_a_cluster
@click.option("--sort", type=click.Choice(["time", "bytes", "count"]), help="Greatest first of this.  [default: time]")
@since(OF_ONE)
@until
@user
def prefixes(session: Session, cluster: str | None, since: str | None, **options: Any) -> Records:
    """List the kinds of task (prefixes), of CLUSTER or of all, those that took the most time first."""
    return session.list_prefixes(cluster_id=cluster, since=of_one(since, cluster), **options)


@listing
@since(MONTH)
@until
@user
def code(session: Session, since: str | None, **options: Any) -> Records:
    """List code that was computed, the same of several clusters as one, that which took the most time first."""
    return session.list_code(since=back(since, MONTH), **options)


@listing
@click.argument("code", metavar="FINGERPRINT")
def hardware(session: Session, code: str, **options: Any) -> Records:
    """How the same code, as `daskscope code` names it, ran on machines of different kinds."""
    found = session.compare_hardware(code, **options)
    if not found:
        raise NotFound(f"No computation of code {code!r} in the last 90 days: `daskscope code` lists the fingerprints.")
    return found


@listing
@maybe_a_cluster
@click.option("--span", metavar="ID", help="Only of this span.")
@click.option("--by", type=click.Choice(["prefix"]), help="Sums over spans.")
@since(OF_ONE)
@user
def metrics(session: Session, cluster: str | None, since: str | None, **options: Any) -> Records:
    """List the fine performance metrics of CLUSTER, or of all, those of a unit together, greatest first."""
    return session.list_metrics(cluster, since=of_one(since, cluster), **options)
