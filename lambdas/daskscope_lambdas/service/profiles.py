"""What workers spent their time in: of one cluster, one computation, and all clusters of an account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa

from daskscope.errors import NotFound
from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service import flame
from daskscope_lambdas.service.found import UNLISTED, Asker, Days, Found, Record, days_of, days_since, found_in
from daskscope_query.lake import Answer

By = Literal["prefix", "user"]

MAX_STACKS = 20_000
"""What trees are made of: the heaviest."""
ALL = "all"
"""Name of the root of a tree that keeps nothing apart; of one that does, where nothing tells whose it is: `UNKNOWN`."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which stacks. None takes all.

    `since` and `until` take the intervals of a profile (a minute, as a rule) of which a part lies between them. `by`
    keeps the stacks of two prefixes, or users, apart.
    """

    prefix: str | None = None
    user: str | None = None
    by: By | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """`given`: the relations of the question."""

    account: str
    days: Days
    narrowing: Mapping[str, Any]
    given: Mapping[str, pa.Table]
    by: By | None


class Profiles:
    def __init__(self, asker: Asker, clock: Clock, catalog: Callable[[str], pa.Table]) -> None:
        """`catalog`: an account's clusters as rows of the lake's table of that name."""
        self._asker, self._clock, self._catalog = asker, clock, catalog

    def of_cluster(self, row: ClusterRow, wanted: Wanted, computation: str | None = None) -> Profile:
        """`computation` (an id) takes the stacks of its task prefixes in the intervals in which it ran. Others that had
        tasks of these prefixes at that time are in them, too: workers look at prefixes, not at computations. Raises
        NotFound."""
        narrowing = {"cluster": row.uuid, **_narrowing(wanted)}
        if computation is not None:
            narrowing = self._of_computation(row, computation, wanted, narrowing)
        return Profile(self._asker, _Asked(row.account, days_of(row), narrowing, UNLISTED, wanted.by))

    def of_account(self, account: str, wanted: Wanted) -> Profile:
        days = days_since(wanted.since, self._clock.now())
        given = {"catalog": self._catalog(account)}
        narrowing = {**_narrowing(wanted), "user": wanted.user}
        return Profile(self._asker, _Asked(account, days, narrowing, given, wanted.by))

    def _of_computation(
        self, row: ClusterRow, id: str, wanted: Wanted, narrowing: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        found = self._asker.ask_of(row, "computation_prefixes", id=id).records()
        if not found:
            raise NotFound(f"No computation {id} in cluster {row.id}. `daskscope computations {row.id}` lists them.")
        (ran,) = found
        prefixes = [name for name in ran["prefixes"] or () if wanted.prefix in (None, name)]
        since = max(filter(None, (wanted.since, ran["start_at"])))
        until = min(filter(None, (wanted.until, ran["stop_at"])), default=None)
        return {**narrowing, "boot": ran["boot"], "prefixes": prefixes, "since": since, "until": until}


class Profile:
    """One that was asked for, as a list or as trees."""

    def __init__(self, asker: Asker, asked: _Asked) -> None:
        self._asker, self._asked = asker, asked

    def stacks(self, limit: int, offset: int) -> Found:
        """Each stack once, heaviest first. `more`: `total` of the stacks, and `cut`: rare ones that were left out
        before they were sent, of all prefixes together."""
        page = self._page(limit, offset)
        by = self._asked.by or "prefix"
        records = [
            {by: found["key"], "stack": found["stack"], **_sampled(found["count"], found["sampled_us"])}
            for found in page.records()
        ]
        if offset:
            return found_in(records, page)
        sums = self._totals(page)
        (found,) = sums.records()
        return replace(found_in(records, page, sums), more=_more(found))

    def trees(self) -> Found:
        """A flame tree for each of what is kept apart, else one (see flame.py), of the MAX_STACKS heaviest stacks; of a
        single tree what others took is the rest. `more` as of stacks."""
        page = self._page(MAX_STACKS, 0)
        sums = self._totals(page)
        (found,) = sums.records()
        by = self._asked.by
        stacks = [
            (ALL if by is None else each["key"] or UNKNOWN, each["stack"], each["count"], each["sampled_us"])
            for each in page.records()
        ]
        whole = {} if by else {ALL: (found["count"], found["sampled_us"])}
        return replace(found_in(flame.trees(stacks, whole), page, sums), more=_more(found))

    def _page(self, limit: int, offset: int) -> Answer:
        asked = self._asked
        wanted = {**asked.narrowing, "by": asked.by, "limit": limit, "offset": offset}
        return self._asker.ask("profile", asked.account, asked.days, given=asked.given, **wanted)

    def _totals(self, page: Answer) -> Answer:
        asked = self._asked
        steady = self._asker.at(page.until)
        return steady.ask("profile_totals", asked.account, asked.days, given=asked.given, **asked.narrowing)


def _narrowing(wanted: Wanted) -> dict[str, Any]:
    prefixes = None if wanted.prefix is None else [wanted.prefix]
    return {"prefixes": prefixes, "since": wanted.since, "until": wanted.until}


def _more(found: Record) -> Record:
    return {"total": _sampled(found["count"], found["sampled_us"]), "cut": _sampled(found["cut"], found["cut_us"])}


def _sampled(count: int, sampled_us: int) -> Record:
    return {"count": count, "seconds": sampled_us / 1e6}
