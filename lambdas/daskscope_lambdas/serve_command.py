"""The command `daskscope serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from daskscope.discovery import PORT

if TYPE_CHECKING:
    from daskscope_lambdas.serve import Running

_HOST = "Address to listen on; with any but this machine's own, pages ask for a login."
_REPORTS_PORT = "Port of the reports that are kept here, and of nothing else; 0 takes a free one [default: the next]."
_URL = (
    "How people reach this server, if a proxy stands before it: https://daskscope.example.org; with this or "
    "--allow-host, pages ask for a login."
)
_REPORTS_URL = (
    "The same for the port of reports, under a name of its own: https://reports.example.org; an https --url needs it."
)
_ALLOW_HOST = "Another name by which a proxy reaches this server; may be repeated."
_PLAIN = """\
Tokens and pages go unencrypted to whoever else is in this network. To encrypt them, put a proxy
with a certificate before it, as Caddy is, listen on this machine alone, and say how it is reached:
  caddy reverse-proxy --from daskscope.example.org --to 127.0.0.1:{port}
  daskscope serve --url https://daskscope.example.org --reports-url https://reports.example.org
and a second one for reports, with --from reports.example.org --to 127.0.0.1:{reports_port}"""

_ONE_NAME = (
    "Reports have the name of the pages, so browsers send them the pages' cookies, too, whatever the port: a name of "
    "their own is better."
)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help=_HOST)
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--reports-port", type=click.IntRange(0, 65535), help=_REPORTS_PORT)
@click.option("--data", type=click.Path(file_okay=False), help="Folder of its files [default: daskscope.data].")
@click.option("--url", metavar="URL", help=_URL)
@click.option("--reports-url", metavar="URL", help=_REPORTS_URL)
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="NAME", help=_ALLOW_HOST)
def serve(
    host: str,
    port: int,
    reports_port: int | None,
    data: str | None,
    url: str | None,
    reports_url: str | None,
    allow_hosts: tuple[str, ...],
) -> None:
    """Take in what clusters report and show it, on this machine."""
    # The server's packages are an extra: `daskscope` says so if one is missing.
    from daskscope_lambdas.embedded.listening import Proxied, checked_url
    from daskscope_lambdas.serve import run

    proxied = Proxied(
        url=url and checked_url("--url", url),
        reports_url=reports_url and checked_url("--reports-url", reports_url),
        hosts=frozenset(allow_hosts),
    )
    if proxied.has_one_name:
        click.echo(_ONE_NAME, err=True)
    run(host, port, data, _announce, proxied, reports_port)


def _announce(running: Running) -> None:
    click.echo(f"daskscope is at {running.url}")
    if running.url_here != running.url:
        click.echo(f"on this machine {running.url_here}")
    click.echo(f"sign in at      {running.sign_in_url}")
    click.echo(f"reports are at  {running.reports_url}")
    click.echo(f"data is in      {running.data}")
    if running.is_plain:
        click.echo(_PLAIN.format(port=running.port, reports_port=running.reports_port))
    click.echo("Press Ctrl-C to stop.")
