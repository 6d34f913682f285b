"""What a report of a run tells: of a whole cluster, or of one of its computations, after the fact.

All of it is asked of what the lake had at one moment. No list is longer than a file to be sent can bear; of each is
told how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service import records, run_answers
from daskscope_lambdas.service.answers import Answer, Depth, answers
from daskscope_lambdas.service.completeness import completeness
from daskscope_lambdas.service.computations import Computations, Wanted
from daskscope_lambdas.service.costs import Costs
from daskscope_lambdas.service.found import Asker, Record
from daskscope_lambdas.service.observed import LEVELS, Lines, Observed
from daskscope_lambdas.service.profiles import Profiles
from daskscope_lambdas.service.profiles import Wanted as Stacks
from daskscope_lambdas.service.queries import Queries
from daskscope_lambdas.service.timelines import Timelines

POINTS = 120
"""Of each line over time."""
MAX_COMPUTATIONS, MAX_GROUPS, MAX_PREFIXES, MAX_WORKERS, MAX_DEATHS = 30, 40, 20, 40, 20
MAX_FAMILIES, MAX_LINES = 12, 30
MAX_TASKS = 250_000
"""Task rows in one file: a megabyte of it."""

_COUNTED = 1000
"""Families of exceptions, deaths and log lines that are looked at, to tell how many there are besides those shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The services that a report asks, all of what had been received by one time."""

    asker: Asker
    queries: Queries
    computations: Computations
    observed: Observed
    timelines: Timelines
    profiles: Profiles
    costs: Costs


@dataclass(frozen=True, slots=True)
class Part:
    """The first of a list's records, and how many there are; with `more`, at least."""

    rows: list[Record]
    n: int
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Records as docs/reference/http-api.md has them, times left as datetimes; `cluster` JSON types only.

    `computation` None: all of the cluster. Then `computations` are those that took the most worker time, latest first;
    else `groups` are its own, and `prefixes` is empty. `profile`: the root of a flame tree, `cut`: samples that it
    lacks. `families`: of exceptions, as the query `run_exceptions` tells them; `tasks`: as `run_tasks` does, None if
    nobody asked for them.
    """

    cluster: Record
    computation: Record | None
    answers: Mapping[str, Answer]
    samples: list[Record]
    computations: Part
    groups: Part
    prefixes: Part
    workers: Part
    deaths: Part
    profile: Record
    cut: Record
    families: Part
    lines: Part
    tasks: pa.Table | None
    start: datetime
    completeness: str
    skipped: list[str]
    as_of: datetime | None
    made_at: datetime


class RunReports:
    """`readers`: of what had been received by then, None: of all."""

    def __init__(self, clock: Clock, readers: Callable[[datetime | None], Readers]) -> None:
        self._clock, self._readers = clock, readers

    def of(self, row: ClusterRow, id: str | None = None, *, tasks: bool = False) -> Run:
        """Of a cluster, or of its computation `id`; `tasks`: with a row for each task. Raises NotFound."""
        now, first = self._clock.now(), self._readers(None).computations
        mine = first.of_cluster(row, MAX_COMPUTATIONS, 0, _LONGEST) if id is None else first.one(row, id)
        one = mine.rows[0] if id else None
        ask = self._readers(mine.until)
        since, until = (one["start"], one["stop"]) if one else (None, None)
        # Of a short computation no sample is taken between its ends.
        around = timedelta(seconds=row.next_s)
        samples = ask.timelines.cluster(row, POINTS, (since and since - around, until and until + around))
        prefixes = None if one else ask.computations.prefixes(row)
        workers = ask.queries.workers(row)
        deaths = ask.observed.deaths(row, _COUNTED, 0, expected=False)
        warnings = Lines(level=LEVELS["warning"], since=since, until=until)
        lines = ask.observed.logs(row, _COUNTED, 0, warnings)
        profile = ask.profiles.of_cluster(row, Stacks(), id).trees()
        families = ask.asker.ask_of(row, "run_exceptions", computation=id, limit=_COUNTED)
        failed = families.records()
        rows = ask.asker.ask_of(row, "run_tasks", computation=id, limit=MAX_TASKS) if tasks else None
        answered = [mine, samples, workers, deaths, lines, profile, families, *filter(None, (prefixes, rows))]
        told = prefixes.rows if prefixes else []
        return Run(
            cluster=records.cluster(row, now),
            computation=one,
            answers=run_answers.answers(row, one, failed)
            if one
            else answers(row, now, Depth(told, failed), ask.costs.of(row)),
            samples=samples.rows,
            computations=Part([], 0) if one else _computations(mine.rows, row),
            groups=_cut(sorted(one["groups"] if one else [], key=_spent_s, reverse=True), MAX_GROUPS),
            prefixes=_cut(told, MAX_PREFIXES),
            workers=_cut(
                [each for each in workers.rows if _meets(each["first"], each["last"], since, until)], MAX_WORKERS
            ),
            deaths=_cut([each for each in deaths.rows if _meets(each["time"], each["time"], since, until)], MAX_DEATHS),
            profile=profile.rows[0],
            cut=profile.more["cut"],
            families=_cut(failed, MAX_FAMILIES, n=failed[0]["n_families"] if failed else 0),
            lines=_cut(lines.rows, MAX_LINES),
            tasks=rows.rows if rows else None,
            start=one["start"] if one else datetime.fromtimestamp(row.started_at, UTC),
            completeness=completeness(ask.asker, row, now)["sentence"],
            skipped=sorted({name for part in answered for name in part.skipped}),
            as_of=min((part.as_of for part in answered if part.as_of), default=None),
            made_at=datetime.fromtimestamp(now, UTC),
        )


_LONGEST = Wanted(sort="-work")


def _computations(rows: list[Record], row: ClusterRow) -> Part:
    latest = sorted(rows, key=lambda each: each["start"], reverse=True)
    return Part(latest, max(row.totals.get("n_computations", 0), len(rows)))


def _cut(rows: list[Record], most: int, n: int | None = None) -> Part:
    """`n`: how many there are, if these are not all."""
    known = len(rows) if n is None else n
    return Part(rows[:most], known, more=n is None and known == _COUNTED)


def _meets(first: datetime, last: datetime, since: datetime | None, until: datetime | None) -> bool:
    """Whether a part of it lies between the two."""
    return (since is None or last >= since) and (until is None or first <= until)


def _spent_s(group: Record) -> float:
    return sum(group["seconds"].values())
