"""The commands that list what happened: a table, or one JSON document with --json."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import click
import dask.config

from daskscope import client
from daskscope.errors import NotFound
from daskscope.records import CELL, Records


def _listing(command: Callable[..., Records]) -> click.Command:
    """A command that prints the Records of a function, with the options that every list has."""

    @functools.wraps(command)
    def run(*, as_json: bool, server: str | None, **options: Any) -> None:
        with dask.config.set({"daskscope.server": server} if server else {}):
            _print(command(**options), as_json)

    decorators = (
        click.command(),
        click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table."),
        click.option("--account", "--workspace", "account", help="Whose clusters; else the token's own account."),
        click.option("--server", metavar="URL", help="Which server; else the setting, or the one on this machine."),
        click.option("--limit", type=click.IntRange(min=1), help="At most so many, latest first."),
    )
    made: Any = functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), run)
    return made


def _since(default: str) -> Callable[[Any], Any]:
    text = f"How far back, like '36h'; 'all' for all history.  [default: {default}]"
    return click.option("--since", metavar="SPAN", help=text)


_user = click.option("--user", help="Only of this user.")
_cluster = click.argument("cluster", metavar="CLUSTER")


@_listing
@_since("7 days")
@_user
@click.option("--status", type=click.Choice(["running", "stopped", "lost"]), help="Only those in this state.")
def clusters(since: str | None, **options: Any) -> Records:
    """List clusters, latest start first."""
    return client.list_clusters(since=_span(since or "7 days"), **options)


@_listing
@_cluster
def computations(cluster: str, **options: Any) -> Records:
    """List the computations of CLUSTER: its number, scheduler id, UUID, or `latest`."""
    return client.list_computations(_number(cluster, options["account"]), **options)


@_listing
@_since("7 days; all with --cluster")
@_user
@click.option("--cluster", metavar="CLUSTER", help="Only of this cluster: number, scheduler id, UUID, or `latest`.")
def exceptions(since: str | None, cluster: str | None, **options: Any) -> Records:
    """List exceptions, latest first."""
    number = None if cluster is None else _number(cluster, options["account"])
    span = since or ("7 days" if cluster is None else "all")
    return client.list_exceptions(since=_span(span), cluster_id=number, **options)


@_listing
@_cluster
def events(cluster: str, **options: Any) -> Records:
    """List the events of CLUSTER: its number, scheduler id, UUID, or `latest`."""
    return client.list_events(_number(cluster, options["account"]), **options)


def _span(text: str) -> str | None:
    return None if text == "all" else text


def _number(cluster: str, account: str | None) -> str:
    if cluster != "latest":
        return cluster
    found = client.list_clusters(account, since=None, limit=1)
    if not found:
        raise NotFound("No cluster yet: `daskscope.register()` on a client makes the first.")
    return str(found[0]["id"])


def _print(records: Records, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(records, indent=2))
    elif records:
        # Cells are cut for people only: what a program reads is whole.
        click.echo(records.text(cell=CELL if sys.stdout.isatty() else None))
    else:
        click.echo("No records.", err=True)
