"""`python -m bench [NAME ...] [--json]`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace

import click

from bench.catalog import BENCHES
from bench.rows import Row, progress, text


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of a table.")
@click.option("--list", "show_list", is_flag=True, help="What can be measured.")
@click.option("--tiny", is_flag=True, help="Sizes that show only that it runs; no budget is judged.")
def main(names: tuple[str, ...], as_json: bool, show_list: bool, tiny: bool) -> None:
    """Measure what NAMEs stand for, or everything, and print a row a figure."""
    if show_list:
        width = max(map(len, BENCHES))
        for bench in BENCHES.values():
            click.echo(f"{bench.name:{width}}  {bench.meaning}")
        return
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        raise click.UsageError(f"No benchmark {', '.join(unknown)}; there are: {', '.join(BENCHES)}.")
    _quieten()
    rows = _measure(names or tuple(BENCHES), tiny)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row.to_json()))
    else:
        for line in _table(rows):
            click.echo(line)


def _quieten() -> None:
    """Dask's news of workers that come and go, and of tasks that fail on purpose, would stand between the rows."""
    for part in ("core", "scheduler", "worker", "http.proxy"):
        logging.getLogger(f"distributed.{part}").setLevel(logging.CRITICAL)


def _measure(names: Iterable[str], tiny: bool) -> Iterator[Row]:
    for name in dict.fromkeys(names):
        progress(name)
        for row in BENCHES[name].measure(tiny):
            yield replace(row, judged=not tiny)


def _table(rows: Iterable[Row]) -> Iterator[str]:
    cells = [("name", "value", "budget", "held", "peers"), *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    if row.value is None:
        return row.name, "-", "", "-", row.how
    budget = f"{row.budget.direction} {row.budget.limit:,g}" if row.budget else ""
    peers = ", ".join(f"{name} {text(value)}" for name, value in row.peers.items())
    held = {True: "yes", False: "NO", None: "-"}[row.held]
    return row.name, f"{text(row.value)} {row.unit}", budget, held, peers


if __name__ == "__main__":
    main(prog_name="python -m bench")
