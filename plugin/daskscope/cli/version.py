"""`daskscope version`."""

from __future__ import annotations

import click


@click.command()
def version() -> None:
    """Print the version of daskscope."""
    from daskscope import __version__

    click.echo(__version__)
