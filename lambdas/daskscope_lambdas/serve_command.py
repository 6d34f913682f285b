"""The command `daskscope serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from daskscope.discovery import PORT

if TYPE_CHECKING:
    from daskscope_lambdas.serve import Running

_HOST = "Address to listen on; any but this machine's own asks for a login."
_ALLOW_HOST = "Another name by which a proxy reaches this server; may be repeated."


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help=_HOST)
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of its files [default: daskscope.data].")
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="NAME", help=_ALLOW_HOST)
def serve(host: str, port: int, data: str | None, allow_hosts: tuple[str, ...]) -> None:
    """Take in what clusters report and show it, on this machine."""
    from daskscope_lambdas.serve import run  # the server's packages are an extra: `daskscope` says so if one is missing

    run(host, port, data, _announce, allow_hosts)


def _announce(running: Running) -> None:
    click.echo(f"daskscope is at {running.url}")
    if not running.open:
        click.echo(f"log in at       {running.url}/login?token={running.token}")
    click.echo(f"data is in      {running.data}")
    click.echo("Press Ctrl-C to stop.")
