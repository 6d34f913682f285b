"""The command that brings a folder's messages to a server."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from daskscope import settings
from daskscope.discovery import Server, find_server, shared_folder
from daskscope.errors import ServerUnreachable
from daskscope.importing import Import, Progress
from daskscope.transport import Http

FIRST_S, TERMINAL_S, LOG_S = 1.0, 0.2, 10.0
"""When there is a first word of how far it is, and how often there are more: on a terminal, and in a log."""


@click.command("import")
@click.argument("directory", metavar="FOLDER", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--again", is_flag=True, help="Send what was set aside (*.bad), too.")
@click.pass_context
def import_(ctx: click.Context, directory: Path, again: bool) -> None:
    """Send the messages in FOLDER to the server, and remove those that it has.

    FOLDER is one that clusters report to (daskscope.server: file:///FOLDER), or a spool; they may write into it
    meanwhile. The server is the one that is configured, else the one on this machine. What it refuses, and what is no
    message, is set aside as *.bad; where it is no daskscope server, nothing is. Run it again, and it goes on where it
    stopped. Exits with 1 if the server has not got all of it.
    """
    server = _server()
    shows = _Shows()
    transport = Http(server.url, server.ingest_token, account=server.ingest_account)
    importing = Import(transport, shows.say, shows.progress)
    try:
        is_all_in = importing.run(directory, again=again)
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be read: {error}") from error
    finally:
        transport.close()
        shows.say(f"{_told(importing.progress)} The server is {server.url}.")
    ctx.exit(0 if is_all_in else 1)


def _server() -> Server:
    """A folder in place of a server means the one on this machine. Raises ServerUnreachable."""
    found = settings.load()
    server = find_server(found if shared_folder(found.server) is None else replace(found, server=None))
    if server is None:
        raise ServerUnreachable(
            "No server to send messages to: set daskscope.server to its address, like "
            "DASK_DASKSCOPE__SERVER=https://HOST, or run `daskscope serve` on this machine."
        )
    return server


def _told(progress: Progress) -> str:
    parts = [f"{progress.n_in:,} messages in"]
    parts += [f"{progress.n_unremovable:,} of them cannot be removed"] if progress.n_unremovable else []
    parts += [f"{progress.n_aside:,} set aside"] if progress.n_aside else []
    parts += [f"at least {progress.n_left:,} left"] if progress.n_left else []
    return ", ".join(parts) + "."


class _Shows:
    """What is said on stderr: stdout is for what was asked for, and that is nothing."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._is_terminal = sys.stderr.isatty()
        self._next_at = monotonic() + FIRST_S
        self._shown = ""

    def progress(self, progress: Progress) -> None:
        if self._monotonic() < self._next_at:
            return
        self._next_at = self._monotonic() + (TERMINAL_S if self._is_terminal else LOG_S)
        if self._is_terminal:
            self._shown = _told(progress)
            click.echo(f"\r{self._shown}", err=True, nl=False)
        else:
            click.echo(_told(progress), err=True)

    def say(self, text: str) -> None:
        gap = "\r" + " " * len(self._shown) + "\r" if self._shown else ""
        self._shown = ""
        click.echo(f"{gap}daskscope: {text}", err=True)
