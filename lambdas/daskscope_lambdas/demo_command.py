"""`daskscope demo`. Light to import: what it needs is loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--port", default=8790, show_default=True, type=click.IntRange(1, 65535), help="Port of the server.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Folder of the server's files.")
@click.option("--exit", "leave", is_flag=True, help="Stop the server at the end instead of waiting for Ctrl-C.")
def demo(port: int, data: Path | None, leave: bool) -> None:
    """Run a small real cluster with a mixed workload, and show it.

    Starts a server, or uses the one that runs on this port; starts a scheduler and two workers; runs group-bys,
    arrays and tasks of which some fail; and prints the address of the page that shows them.
    """
    from daskscope_lambdas.demo import run

    run(port, data, leave=leave, say=click.echo)
