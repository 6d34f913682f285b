"""The command that asks a cluster to close."""

from __future__ import annotations

import click
import dask.config

from daskscope import client
from daskscope.cli.listing import number_of


@click.command()
@click.argument("cluster", metavar="CLUSTER")
@click.option("--reason", metavar="TEXT", help="Why, for those who are connected to it: at most 200 characters.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--account", "--workspace", "account", help="Whose cluster; else the token's own account.")
@click.option("--server", metavar="URL", help="Which server; else the setting, or the one on this machine.")
def close(cluster: str, reason: str | None, yes: bool, account: str | None, server: str | None) -> None:
    """Ask CLUSTER to close: its number, scheduler id, UUID, or `latest` (not with --yes).

    It is told when it reports next, and ends with all that it holds. Best effort: one that does not report, or was
    started with daskscope.analytics.remote-close: false, goes on.
    """
    with dask.config.set({"daskscope.server": server} if server else {}):
        if yes and cluster == "latest":
            raise click.UsageError("The latest cluster may be somebody else's: with --yes, name it by its number.")
        number = number_of(cluster, account)
        if not yes:
            found = client.get_cluster(number, account)
            who, doing = found["user"] or "somebody unknown", found["answers"]["running"]["sentence"]
            click.echo(f"Cluster {found['id']}, {found['name']!r} of {who}: {doing}", err=True)
            click.confirm("Close it? Running tasks and held results are lost", abort=True, err=True)
            number = str(found["id"])
        click.echo(client.close(number, account, reason=reason)["sentence"])
