"""The tables of the lake as docs/reference/tables.md tells them."""

from __future__ import annotations

from daskscope_query.tables import CATALOG, ROLLUPS, TABLES, Table


def tables() -> str:
    return "\n\n".join(_section(table) for table in [*TABLES.values(), *ROLLUPS.values(), CATALOG])


def _section(table: Table) -> str:
    head = [f"## {table.name}", "", table.meaning, ""]
    key = f"A row is known by {_names(table.key)}; where several have the same, "
    rule = "the one with the highest `seq` counts." if "seq" in table.schema.names else "there is but one."
    rows = ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    rows += [f"| `{c.name}` | `{c.type}` | {c.unit} | {c.meaning} |" for c in table.columns]
    order = ["", f"Sealed days are sorted by {_names(table.order)}."] if table.name in TABLES else []
    return "\n".join([*head, key + rule, "", *rows, *order])


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in columns)
