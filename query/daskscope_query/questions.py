"""The named questions of `sql/`: what each reads, and what it may be asked with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from daskscope_query.tables import CLUSTERS, FINE_METRICS, ROLLUPS, TABLES

BEFORE = "_before"
"""What a relation of earlier days ends in."""
ENTRIES = "_entries"
"""What a relation of a roll-up ends in where its maps are lists of key and value."""


@dataclass(frozen=True, slots=True)
class Question:
    sql: str
    reads: tuple[str, ...]

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """Every parameter of the SQL, null where none is given. Raises TypeError for one that it has not."""
        known = set(re.findall(r"\$([a-z_]+)", self.sql))
        if odd := given.keys() - known:
            raise TypeError(f"The query has no parameter {', '.join(sorted(odd))}; it has {', '.join(sorted(known))}.")
        return {name: given.get(name) for name in known}


@cache
def question(name: str) -> Question:
    text = resources.files("daskscope_query").joinpath("sql", f"{name}.sql").read_text("utf-8")
    head, _, _ = text.partition("\n")
    return Question(text, tuple(head.removeprefix("-- reads: ").split(", ")))


def sources(rollup: str) -> list[str]:
    """The tables without whose rows of a day nothing is known of what it added. A day may be without identities, and
    without metrics where Dask has none."""
    return [name for name in read_by(rollup) if name not in (CLUSTERS.name, FINE_METRICS.name)]


def read_by(rollup: str) -> list[str]:
    """The tables that it is made of."""
    return [name for name in question(rollup).reads if name in TABLES]


def baselines() -> set[str]:
    """The tables of which a roll-up needs the days before its own, for their rows tell what only ever grows."""
    reads = {name for rollup in ROLLUPS for name in question(rollup).reads}
    return {name.removesuffix(BEFORE) for name in reads if name.endswith(BEFORE)}
