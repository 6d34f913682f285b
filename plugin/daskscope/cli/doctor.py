"""The command that looks whether all is well, and says what to do where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from daskscope.cli import checks
from daskscope.cli.asking import whom
from daskscope.cli.checks import Finding
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted
from daskscope.errors import DaskscopeError, NotLoggedIn, PermissionDenied, SettingsError

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@formatted(TABLE, "json")
@whom
def doctor(server: str | None, account: str | None, timeout: str, form: str) -> None:
    """Look whether clusters can report from here, and whether they can be asked about: a line for each check.

    Each is ok, warn or fail, and says what to do. Exits with 1 if one fails.
    """
    found = list[Finding]()
    for each in _findings(server, account, timeout):
        found.append(each)
        if form == TABLE:
            click.echo(f"{click.style(f'{each.state:<4}', fg=_COLOURS[each.state])}  {each.check:<8}  {each.said}")
    if form != TABLE:
        document([asdict(each) for each in found])
    if any(each.state == "fail" for each in found):
        click.get_current_context().exit(1)


def _findings(server: str | None, account: str | None, timeout: str) -> Iterator[Finding]:
    yield from checks.of_settings()
    yield from checks.of_dask()
    yield from checks.of_extras()
    try:
        yield from checks.of_login()
        yield from checks.of_spool()
        yield from _asked(server, account, timeout)
    except (NotLoggedIn, PermissionDenied) as error:
        yield Finding("token", "fail", str(error))
    except SettingsError as error:
        yield Finding("settings", "fail", str(error))
    except (DaskscopeError, ImportError, OSError) as error:
        yield Finding("server", "fail", str(error))


def _asked(server: str | None, account: str | None, timeout: str) -> Iterator[Finding]:
    from daskscope.connection import Connection  # not at the top: `daskscope --help` loads every command
    from daskscope.session import Session

    connection = Connection(server, account=account, timeout=timeout)
    try:
        yield from checks.of_server(connection)
        if connection.source.pages is not None:
            yield from checks.of_reporting(server, account)
    finally:
        connection.close()
    with Session(server, account=account, timeout=timeout) as session:
        yield from checks.of_clusters(session)
