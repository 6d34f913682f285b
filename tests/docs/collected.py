"""What leaves a cluster, from the tables of the lake and the options that govern them."""

import json
from collections.abc import Iterable

from daskscope.options import OPTIONS, Option
from daskscope_query.tables import AUDIT, ORIGIN, ROLLUPS, TABLES, Column, Table

FROM_CLUSTERS = [table for table in TABLES.values() if table is not AUDIT]
"""What people do, the server itself writes down."""


def collected() -> str:
    rows = ["| table | what | sent | turned off by |", "| --- | --- | --- | --- |"]
    rows += [f"| [`{table.name}`](#{table.name}) | {table.meaning} | {_sent(table)} |" for table in FROM_CLUSTERS]
    parts = [
        "\n".join(rows),
        f"## In every table\n\n{_columns(ORIGIN, {})}",
        *(_section(table) for table in FROM_CLUSTERS),
        "## Roll-ups\n\nSums over days that are over, which the server makes of the tables above.",
        *(f"### {table.name}\n\n{table.meaning}\n\n{_columns(table.columns, {})}" for table in ROLLUPS.values()),
    ]
    return "\n\n".join(parts)


def _sent(table: Table) -> str:
    """Two cells: when a table is sent, and what turns it, or some of its columns, off."""
    when, off = "always", list[str]()
    for option in OPTIONS:
        columns = _governed(option, table)
        if columns == [""]:
            when = "only if asked" if option.default == option.off else "by default"
            off.append(_written(option))
        elif columns:
            off.append(f"{_written(option)} ({', '.join(columns)})")
    return f"{when} | {'; '.join(off)}"


def _governed(option: Option, table: Table) -> list[str]:
    """The columns of a table that an option can turn off; an empty name is the whole table."""
    places = [place.partition(".") for place in option.governs]
    return [column for name, _, column in places if name == table.name]


def _written(option: Option) -> str:
    """What turns it off, as it stands in YAML."""
    return f"`{option.key}: {json.dumps(option.off)}`"


def _section(table: Table) -> str:
    switches = {column: _written(option) for option in OPTIONS for column in _governed(option, table)}
    own = [column for column in table.columns if column not in ORIGIN]
    return f"## {table.name}\n\n{table.meaning}\n\n{_columns(own, switches)}"


def _columns(columns: Iterable[Column], switches: dict[str, str]) -> str:
    rows = ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    for c in columns:
        switch = f" Not sent where {switches[c.name]}." if c.name in switches else ""
        rows.append(f"| `{c.name}` | `{c.type}` | {c.unit} | {c.meaning}{switch} |")
    return "\n".join(rows)
