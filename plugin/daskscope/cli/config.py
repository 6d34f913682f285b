"""The command that shows what is in force, and why."""

from __future__ import annotations

import difflib
import json
from typing import Any

import click

from daskscope import settings
from daskscope.cli.listing import table
from daskscope.configuration import COLUMNS, destination
from daskscope.configuration import config as records_of
from daskscope.records import Records


@click.command()
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
@click.pass_context
def config(ctx: click.Context, keys: tuple[str, ...], as_json: bool) -> None:
    """Show the settings in force in this shell, and where each came from: KEY alone, or all.

    KEY is an option, like analytics.interval, or the start of several, like analytics. Tokens are not shown. A value
    that cannot be used is named, and the exit code is 2.
    """
    rows = _chosen(records_of(), keys)
    unusable = any(row["problem"] and row["key"] in _OPTIONS for row in rows)
    told = None if keys or unusable else destination(settings.load())
    if as_json:
        click.echo(json.dumps({"settings": rows, "destination": told}, indent=2, default=str))
    else:
        columns = COLUMNS if any(row["problem"] for row in rows) else COLUMNS[:-1]
        click.echo(table(Records(({**row, "value": _written(row["value"])} for row in rows), columns=columns)))
        if told:
            click.echo(f"\n{told}")
    if unusable:
        ctx.exit(2)


_OPTIONS = frozenset(f"daskscope.{key}" for key in settings.KEYS)


def _chosen(rows: Records, keys: tuple[str, ...]) -> Records:
    """Those that are named, or start as is said."""
    if not keys:
        return rows
    known = [row["key"] for row in rows]
    found: set[str] = set()
    for key in keys:
        whole = key.replace("_", "-")
        starts = whole + ".", f"daskscope.{whole}."
        named = {name for name in known if f"{name}.".startswith(starts)}
        if not named:
            close = difflib.get_close_matches(f"daskscope.{whole.removeprefix('daskscope.')}", known, 1)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise click.UsageError(f"{key} is no option{hint}")
        found |= named
    return Records((row for row in rows if row["key"] in found), columns=rows.columns)


def _written(value: Any) -> str:
    """As it stands in YAML."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
