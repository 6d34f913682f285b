"""The command that shows what leaves a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import dask.config

if TYPE_CHECKING:
    from daskscope.previews import Preview

CONNECT_S = 10.0


@click.command()
@click.argument("address", metavar="[ADDRESS]", required=False)
@click.option(
    "--scheduler-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file that `dask scheduler --scheduler-file` wrote, in place of ADDRESS.",
)
@click.option("--raw", is_flag=True, help="Letter by letter as it leaves, without blanks and line breaks.")
def preview(address: str | None, scheduler_file: Path | None, raw: bool) -> None:
    """Print the literal next message of the cluster whose scheduler is at ADDRESS, like tcp://127.0.0.1:8786.

    A cluster that reports sends it, too. Of one that does not, it is what the first message would be with the settings
    in force here, and nothing is sent. Where reporting is disabled it is `null`.
    """
    if (address is None) == (scheduler_file is None):
        raise click.UsageError("Say the scheduler's ADDRESS, or its --scheduler-file.")
    # With daskscope among the client's preloads, to look would be to register.
    with dask.config.set({"distributed.client.preload": [], "distributed.client.preload-argv": []}):
        shown = asyncio.run(_ask({"address": address} if address else {"scheduler_file": str(scheduler_file)}))
    click.echo(shown.heading, err=True)
    click.echo(shown.json if raw and shown.json else shown.pretty)


async def _ask(where: dict[str, Any]) -> Preview:
    # Not at the top: this takes a second, and most commands need none of it.
    from distributed import Client

    from daskscope.rehearsal import preview as preview_of

    client: Any = Client(**where, asynchronous=True, set_as_default=False, timeout=CONNECT_S)
    try:
        await client
    except (OSError, ValueError) as error:
        await client.close()
        raise click.ClickException(f"No Dask scheduler at {', '.join(where.values())}: {error}") from error
    async with client:
        shown: Any = preview_of(client)
        return await shown
