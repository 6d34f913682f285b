"""The commands that list what was observed inside one cluster: its number, scheduler id, UUID, or `latest`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from daskscope.arguments import Role
from daskscope.cli.asking import cluster_argument, number_of
from daskscope.cli.listing import listing
from daskscope.cli.times import ALL, back, since, until

if TYPE_CHECKING:
    from daskscope.records import Records
    from daskscope.session import Session


@listing
@cluster_argument
@click.option("--role", type=click.Choice(get_args(Role)), help="Only processes of this kind.")
def members(session: Session, cluster: str, **options: Any) -> Records:
    """List the processes of CLUSTER, and packages of other versions than its scheduler's."""
    return session.list_members(number_of(session, cluster), **options)


@listing
@cluster_argument
def workers(session: Session, cluster: str, **options: Any) -> Records:
    """List the workers that CLUSTER had: last values and peaks."""
    return session.list_workers(number_of(session, cluster), **options)


@listing
@cluster_argument
def spans(session: Session, cluster: str, **options: Any) -> Records:
    """List the spans of CLUSTER, latest first, with the sums of their task groups."""
    return session.list_spans(number_of(session, cluster), **options)


@listing
@cluster_argument
def groups(session: Session, cluster: str, **options: Any) -> Records:
    """List the task groups of CLUSTER in the order in which they came."""
    return session.list_groups(number_of(session, cluster), **options)


@listing
@cluster_argument
@click.option("--group", help="Only of this task group: its name or id.")
def tasks(session: Session, cluster: str, **options: Any) -> Records:
    """List the tasks of CLUSTER, earliest first, if daskscope.analytics.tasks.transmit was on."""
    return session.list_tasks(number_of(session, cluster), **options)


@listing
@cluster_argument
@click.option("--worker", metavar="ADDRESS", help="Of this worker instead of the whole cluster.")
@click.option("--points", type=click.IntRange(1, 600), help="At most so many.  [default: 600]")
@since()
@until
def samples(session: Session, cluster: str, since: str | None, **options: Any) -> Records:
    """List what CLUSTER, or one worker of it, was at in the course of time: at most 600 points, oldest first."""
    return session.list_samples(number_of(session, cluster), since=back(since, ALL), **options)
