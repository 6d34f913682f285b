"""How `daskscope admin` writes a list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from daskscope.records import Records


def write(records: Records, as_json: bool, nothing: str) -> None:
    """To stdout: a table, or one JSON document. `nothing` is said where there are none, to people alone."""
    if as_json:
        click.echo(json.dumps(records, indent=2))
    elif records:
        click.echo(records.text())
    else:
        click.echo(nothing, err=True)
