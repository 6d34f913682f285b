"""`python -m tests.faults [--rows B1,B3] [--short] [--json]`, or `--page PAGE ROWS` with what `--json` printed."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from tests.faults.catalog import runs, tried
from tests.faults.page import fill
from tests.faults.peers import beside
from tests.faults.peers.trial import ROWS
from tests.faults.row import Row, count, from_json, text

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.option("--rows", "chosen", default="", metavar="B1,B3", help="Only these rows.")
@click.option("--short", is_flag=True, help="In small, as the tests run them.")
@click.option("--most", type=click.IntRange(1), metavar="N", help="At most N orders (B9), messages (C1) or kills (C5).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of a table.")
@click.option("--peers/--no-peers", default=None, help="Others beside us (B1, B2, B3, B8); with --short they are not.")
@click.option("--page", type=_FILE, help="Write the rows of the files ROWS into this page, and try nothing.")
@click.argument("files", nargs=-1, metavar="[ROWS ...]", type=_FILE)
def main(
    chosen: str,
    short: bool,
    most: int | None,
    as_json: bool,
    peers: bool | None,
    page: Path | None,
    files: tuple[Path, ...],
) -> None:
    """Put faults between plugin, server and stores, and tell what was lost or doubled; 1 if a row does not hold."""
    if (page is None) != (not files):
        raise click.UsageError("--page PAGE and the files ROWS come together.")
    known = runs()
    if page is not None:
        # Of a row that was tried again, what came of it last.
        found = [from_json(json.loads(line)) for file in files for line in file.read_text().splitlines()]
        last = {row.id: row for row in found}
        fill(page, [last[name] for name in known if name in last])
        return
    ids = [part.strip().upper() for part in chosen.split(",") if part.strip()] or list(known)
    unknown = [name for name in ids if name not in known]
    if unknown:
        raise click.UsageError(f"No row {', '.join(unknown)}; there are: {', '.join(known)}.")
    # What the plugin and the server warn of is what is being done to them.
    logging.disable(logging.CRITICAL)
    rows = list[Row]()
    for name in ids:
        row = tried(known[name], short, most)
        if name in ROWS and (not short if peers is None else peers):
            row = replace(row, peers=beside(name, short))
        rows.append(row)
        if as_json:
            click.echo(json.dumps(row.to_json()))
    if not as_json:
        for line in table(rows):
            click.echo(line)
    sys.exit(0 if all(row.held for row in rows) else 1)


def table(rows: list[Row]) -> Iterator[str]:
    """Rows for a terminal, a line each."""
    cells = [("row", "form", "tried", "lost", "doubled", "held", "what", "figures"), *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    held = "yes" if row.held else "NO"
    beside = {f"{name} {told['version']}": f"{told.get('lost', '-')} lost" for name, told in row.peers.items()}
    figures = text({**row.figures, **beside})
    return row.id, row.form or "-", count(row.tried), count(row.lost), count(row.doubled), held, row.what, figures


if __name__ == "__main__":
    main(prog_name="python -m tests.faults")
