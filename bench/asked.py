"""The questions of a team that are measured, and how each is put."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from bench.year.plan import ACCOUNT, Clusters
from bench.year.size import FIRST_DAY, Size
from daskscope_lambdas.service.catalog_files import CatalogFiles
from daskscope_lambdas.service.catalog_rows import LISTED
from daskscope_query import layout
from daskscope_query.answer import Answer
from daskscope_query.lake import Lake
from daskscope_query.questions import BEFORE, question
from daskscope_query.tables import ROLLUPS

Days = tuple[date, date]
Span = Literal["cluster", "30-days", "year"]


@dataclass(frozen=True, slots=True)
class Asked:
    """`query` is a file of `sql/`; `from_base`: beside it stands a scan of the tables that its roll-ups are made of."""

    span: Span
    query: str
    days: Days
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    given: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])
    from_base: bool = False

    @property
    def name(self) -> str:
        return f"{self.span}/{self.query.replace('_', '-')}"

    def ask(self, lake: Path, boundary: date) -> Answer:
        return Lake(str(lake), boundary).ask(
            self.query, account=ACCOUNT, days=self.days, given=self.given, **self.params
        )


def read_by(asked: Sequence[Asked]) -> dict[str, set[date]]:
    """By table or roll-up, the days that the questions read of it."""
    found: dict[str, set[date]] = defaultdict(set)
    for each in asked:
        days = layout.days(*each.days)
        for name in question(each.query).reads:
            found[name].update(days)
            if each.from_base and name in ROLLUPS:
                for base in question(name).reads:
                    found[base.removesuffix(BEFORE)].update(days)
    return found


def questions(size: Size, clusters: Clusters, catalog: pa.Table) -> list[Asked]:
    """`catalog` as lists have it, with machines. The cluster is one of middling size in the middle of the year."""
    middle = clusters.on(_working_day(size.days // 2))
    place = int(np.argsort(middle.n_groups * 1.0)[len(middle) // 2])
    day = FIRST_DAY + timedelta(int(middle.day[place]))
    one: dict[str, Any] = {"cluster": middle.uuid[place]}
    page: dict[str, Any] = {"limit": 100, "offset": 0}
    listed = {"catalog": catalog}
    last = size.last_day
    month = max(FIRST_DAY, last - timedelta(29)), last
    year = FIRST_DAY, last
    costs: dict[str, Any] = {"by": ["user", "week"], "thread_hour": 0.05, **page}
    now = {"now": datetime.fromisoformat(f"{last}T23:59:59Z")}
    return [
        Asked("cluster", "groups", (day, day), one),
        Asked("cluster", "computations", (day, day), {**one, **page, **now}, listed),
        Asked("cluster", "samples", (day, day), {**one, "points": 600}),
        Asked("cluster", "workers", (day, day), one),
        Asked("30-days", "prefixes", month, {**page, "sort": "time"}),
        Asked("30-days", "families", month, page),
        Asked("30-days", "costs", month, {**costs, "by": ["user"]}, listed),
        Asked("30-days", "code", month, page, listed),
        Asked("30-days", "exceptions", month, page),
        Asked("30-days", "team_deaths", month, page, listed),
        Asked("30-days", "team_events", month, page, listed),
        Asked("30-days", "metrics_by_prefix", month, page, listed),
        Asked("year", "prefixes", year, {**page, "sort": "time"}, from_base=True),
        Asked("year", "families", year, page, from_base=True),
        Asked("year", "costs", year, costs, listed, from_base=True),
    ]


def _working_day(day: int) -> int:
    """The last one up to `day`: on the others hardly anybody works."""
    return day - max(day % 7 - 4, 0)


def catalog_of(files: CatalogFiles) -> pa.Table:
    """The newest one of the team. Raises ValueError if there is none."""
    found = files.newest(ACCOUNT, (*LISTED, "machines"))
    if found is None:
        raise ValueError(f"There is no catalog of account {ACCOUNT}: make the year anew.")
    return found.rows
