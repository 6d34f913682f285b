"""Records as programs read them, on stdout: JSON, a line a record, CSV, Parquet."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO

import click

from daskscope.extras import needed
from daskscope.records import Records
from daskscope.records.result import Result

TABLE = "table"
FORMATS = (TABLE, "json", "jsonl", "csv", "parquet")

_FORMULA = ("=", "+", "-", "@", "\t")
"""What a text begins with that a spreadsheet reckons out."""


def write(records: Records, form: str) -> None:
    """All of the records on stdout, in one of FORMATS but the table. Raises UsageError, ClickException."""
    _WRITERS[form](records)


def document(found: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(found, indent=2))


def line(record: dict[str, Any]) -> None:
    """A record as a line of JSON, at once."""
    click.echo(json.dumps(record, separators=(",", ":")))


def chosen(records: Records, columns: Sequence[str] | None) -> Records:
    """The records with these keys alone, in this order. Raises UsageError for a key that none of them has; without a
    record nobody knows which there are, but of a query in SQL."""
    if columns is None:
        return records
    known = keys_of(records) or (records.columns if isinstance(records, Result) else columns)
    if unknown := [name for name in columns if name not in known]:
        raise click.UsageError(f"There is no column {', '.join(unknown)}; there are {', '.join(known)}.")
    return Records(({name: row.get(name) for name in columns} for row in records), columns=columns)


def keys_of(records: Iterable[dict[str, Any]]) -> list[str]:
    """The keys of all records, in the order in which they come up."""
    return [*dict.fromkeys(key for record in records for key in record)]


def _lines(records: Records) -> None:
    for record in records:
        line(record)


def _csv(records: Records) -> None:
    """As RFC 4180 has it, with the keys as the first line."""
    keys, text = keys_of(records) or records.columns, io.StringIO()
    rows = csv.writer(text)
    if keys:
        rows.writerow(map(_cell, keys))
    rows.writerows([_cell(record.get(key)) for key in keys] for record in records)
    click.echo(text.getvalue().encode(), nl=False)  # as bytes: Windows would make two line breaks of one


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    # Whoever opens it in a spreadsheet or prints it has not asked what a task's exception wants to do there.
    text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _parquet(records: Records) -> None:
    if sys.stdout.isatty():
        raise click.UsageError("Parquet is not for a terminal: send it to a file, as in `> records.parquet`.")
    written = io.BytesIO()
    save(records, written)
    click.echo(written.getvalue(), nl=False)


def save(records: Records, file: BinaryIO) -> None:
    """As Parquet. Raises ImportError without pyarrow."""
    table = records.to_arrow()
    needed("pyarrow.parquet", "arrow", "Parquet").write_table(table, file, compression="zstd")


_WRITERS: dict[str, Callable[[Records], None]] = {
    "json": document,
    "jsonl": _lines,
    "csv": _csv,
    "parquet": _parquet,
}
