"""What leaves and what keeps it from leaving, for docs/privacy.md."""

import json

from daskscope.options import OPTIONS, Option
from daskscope_query.tables import TABLES
from tests.docs.always import ALWAYS, Always


def switches() -> str:
    """One section for each switch."""
    return "\n\n".join(_section(option) for option in OPTIONS if option.governs)


def _section(option: Option) -> str:
    state = "Off unless asked for." if option.default == option.off else f"By default `{json.dumps(option.default)}`."
    tables = [name for name in option.governs if "." not in name]
    columns = [place for place in option.governs if "." in place]
    kept = [f"the table [`{name}`](reference/collected.md#{name}): {TABLES[name].meaning}" for name in tables]
    if columns:
        kept.append("the columns " + ", ".join(f"`{place}`" for place in columns) + ".")
    return "\n".join(
        [
            f"### {option.key}",
            "",
            f"{option.meaning} {state}",
            "",
            f"- **What for:** {option.purpose}",
            f"- **What stays empty without it:** {'; '.join(kept)}",
            f"- **Where it stops:** {option.stops}",
            f"- **Off:** `{option.key}: {json.dumps(option.off)}` under `daskscope:`, or `{option.environment}="
            f"{_in_shell(option.off)}` in the environment.",
        ]
    )


def _in_shell(value: object) -> str:
    """As Dask reads it in every release: Python's words."""
    return value if isinstance(value, str) else str(value)


def always() -> str:
    rows = ["| what | where | why |", "| --- | --- | --- |"]
    rows += [f"| {each.what} | {_places(each)} | {each.reason} |" for each in ALWAYS]
    return "\n".join(rows)


def _places(each: Always) -> str:
    return "; ".join(
        f"{f'`{table}`' if table else 'every table'}: {', '.join(names.split())}"
        for table, names in each.columns.items()
    )
