"""What the commands that list something share: their options, and how records are printed."""

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

Show = Callable[[Records], str]


def table(records: Records) -> str:
    """Cells are cut for people only: what a program reads is whole."""
    return records.text(cell=CELL if sys.stdout.isatty() else None)


def listing(command: Callable[..., Records], show: Show = table) -> click.Command:
    """A command that prints the Records of a function, with the options that every list has."""

    @functools.wraps(command)
    def run(*, as_json: bool, server: str | None, **options: Any) -> None:
        with dask.config.set({"daskscope.server": server} if server else {}):
            _print(command(**options), as_json, show)

    decorators = (
        click.command(),
        click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table."),
        click.option("--account", "--workspace", "account", help="Whose clusters; else the token's own account."),
        click.option("--server", metavar="URL", help="Which server; else the setting, or the one on this machine."),
        click.option("--limit", type=click.IntRange(min=1), help="At most so many from the start of the list."),
    )
    made: Any = functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), run)
    return made


cluster_argument = click.argument("cluster", metavar="CLUSTER")


def number_of(cluster: str, account: str | None) -> str:
    """What names the cluster: as given, or of the one that started last."""
    if cluster != "latest":
        return cluster
    found = client.list_clusters(account, since=None, limit=1)
    if not found:
        raise NotFound("No cluster yet: `daskscope.register()` on a client makes the first.")
    return str(found[0]["id"])


def _print(records: Records, as_json: bool, show: Show) -> None:
    if as_json:
        click.echo(json.dumps(records, indent=2))
    elif records:
        click.echo(show(records))
    else:
        click.echo("No records.", err=True)
