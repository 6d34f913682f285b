"""The commands that list clusters, and what their tasks did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import click

from daskscope import client
from daskscope.cli.listing import cluster_argument, listing, number_of
from daskscope.records import Records


def _since(default: str) -> Callable[[Any], Any]:
    text = f"How far back, like '36h'; 'all' for all history.  [default: {default}]"
    return click.option("--since", metavar="SPAN", help=text)


_user = click.option("--user", help="Only of this user.")


@listing
@_since("7 days")
@_user
@click.option("--status", type=click.Choice(get_args(client.Status)), help="Only those in this state.")
def clusters(since: str | None, **options: Any) -> Records:
    """List clusters, latest start first."""
    return client.list_clusters(since=_span(since or "7 days"), **options)


@listing
@cluster_argument
def computations(cluster: str, **options: Any) -> Records:
    """List the computations of CLUSTER: its number, scheduler id, UUID, or `latest`."""
    return client.list_computations(number_of(cluster, options["account"]), **options)


@listing
@_since("7 days; all with --cluster")
@_user
@click.option("--cluster", metavar="CLUSTER", help="Only of this cluster: number, scheduler id, UUID, or `latest`.")
@click.option("--origin", type=click.Choice(get_args(client.Origin)), help="Only where this one failed.")
def exceptions(since: str | None, cluster: str | None, **options: Any) -> Records:
    """List exceptions, latest first."""
    of = None if cluster is None else number_of(cluster, options["account"])
    span = since or ("7 days" if cluster is None else "all")
    return client.list_exceptions(since=_span(span), cluster_id=of, **options)


@listing
@cluster_argument
@click.option("--topic", help="Only of this topic.")
def events(cluster: str, **options: Any) -> Records:
    """List the events of CLUSTER: its number, scheduler id, UUID, or `latest`."""
    return client.list_events(number_of(cluster, options["account"]), **options)


def _span(text: str) -> str | None:
    return None if text == "all" else text
