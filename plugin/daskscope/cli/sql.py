"""The command that asks in SQL."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import click

from daskscope.cli.listing import listing
from daskscope.cli.times import ALL, back, since, until

if TYPE_CHECKING:
    from daskscope.records import Records
    from daskscope.session import Session


@listing
@click.argument("query", metavar="[QUERY]", required=False)
@click.option(
    "--file", type=click.File(encoding="utf-8"), help="Where the query stands, in place of QUERY; - is stdin."
)
@since()
@until
def sql(
    session: Session, query: str | None, file: IO[str] | None, since: str | None, limit: int | None, **options: Any
) -> Records:
    """Run a SELECT of DuckDB's over the tables of the lake: of a server on this machine, or with --server FOLDER or
    s3://BUCKET/PREFIX.

    --since and --until choose days, by when a message was received.
    """
    if (query is None) == (file is None):
        raise click.UsageError("Say a QUERY, or the --file in which it stands.")
    text = file.read() if file else query or ""
    found = session.sql(text, since=back(since, ALL), **options)
    return found if limit is None else found[:limit]
