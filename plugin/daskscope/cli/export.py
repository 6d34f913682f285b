"""The command that writes lists as Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daskscope.cli.asking import asking, hint
from daskscope.cli.formats import save
from daskscope.cli.times import MONTH, back, since
from daskscope.errors import DaskscopeError, NotLoggedIn, PermissionDenied, ServerUnreachable
from daskscope.records import Records

if TYPE_CHECKING:
    from daskscope.session import Session

LISTS: dict[str, Callable[[Session, str | None], Records]] = {
    "clusters": lambda session, since: session.list_clusters(since=since),
    "computations": lambda session, since: session.list_computations(since=since),
    "exceptions": lambda session, since: session.list_exceptions(since=since),
    "deaths": lambda session, since: session.list_deaths(since=since),
    "events": lambda session, since: session.list_events(since=since),
    "logs": lambda session, since: session.logs(since=since),
    "prefixes": lambda session, since: session.list_prefixes(since=since),
    "code": lambda session, since: session.list_code(since=since),
    "costs": lambda session, since: session.costs(by=("user", "day"), since=since),
}
"""Name of the file to the list; each holds all of it in memory while it is written."""


@click.command()
@since(MONTH)
@click.option("--out", required=True, metavar="DIR", type=click.Path(file_okay=False, path_type=Path), help="Where to.")
@click.option("--only", "names", multiple=True, type=click.Choice([*LISTS]), help="Only this list; may be repeated.")
@asking
def export(session: Session, since: str | None, out: Path, names: tuple[str, ...]) -> None:
    """Write the lists of an account into DIR, a Parquet file each, in place of what an earlier export left there.

    A list without records has no file. Exits with 1 if a list could not be had; the others are written. Needs pyarrow:
    pip install 'daskscope[arrow]'.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.FileError(str(out), error.strerror or str(error)) from error
    missing = [name for name in names or LISTS if not _write(session, name, out, back(since, MONTH))]
    if missing:
        raise click.ClickException(f"Not exported: {', '.join(missing)}.")


def _write(session: Session, name: str, out: Path, since: str | None) -> bool:
    """Whether the list is there whole. Raises what would stop every other list, too."""
    path = out / f"{name}.parquet"
    hint(f"{name} ...")
    try:
        records = LISTS[name](session, since)
    except (NotLoggedIn, PermissionDenied, ServerUnreachable):
        raise
    except DaskscopeError as error:
        click.echo(f"{name}: {error}", err=True)
        return False
    if not records:
        path.unlink(missing_ok=True)
        click.echo(f"{name}: no records, no file", err=True)
        return True
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            save(records, file)
        part.replace(path)
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from error
    finally:
        part.unlink(missing_ok=True)
    click.echo(f"{name}: {len(records):,} records in {path}", err=True)
    return True
