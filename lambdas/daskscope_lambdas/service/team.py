"""What all clusters of an account did: task prefixes, exceptions by family, deaths, events.

Records are those of docs/reference/http-api.md, times left as datetimes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service.computation_records import prefix
from daskscope_lambdas.service.found import (
    Asker,
    Days,
    Found,
    Record,
    days_since,
    found_in,
    scheduler_id,
)
from daskscope_lambdas.service.observed import death
from daskscope_query.lake import Answer

HISTORY_DAYS = 90
"""So far back a family of exceptions is looked for, to tell whether it is new."""

Between = tuple[datetime | None, datetime | None]
"""Since and until, both included; None has no end there."""

_EPOCH = date(1970, 1, 1)


class Team:
    def __init__(self, asker: Asker, clock: Clock, catalog: Callable[[str], pa.Table]) -> None:
        """`catalog`: an account's clusters as rows of the lake's table of that name."""
        self._asker, self._clock, self._catalog = asker, clock, catalog

    def prefixes(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        between: Between = (None, None),
        user: str | None = None,
        sort: str = "time",
    ) -> Found:
        """Task prefixes over whole days, greatest first by `sort`: time, bytes or count. `more`: `days`."""
        days = self._whole_days(between)
        page = self._asker.ask("prefixes", account, days, user=user, sort=sort, limit=limit, offset=offset)
        return _dated(found_in([prefix(found) for found in page.records()], page), days, offset)

    def prefixes_of(self, row: ClusterRow, limit: int, offset: int, sort: str) -> Found:
        """As `prefixes`, of one cluster and all of its life."""
        page = self._asker.ask_of(row, "cluster_prefixes", sort=sort, limit=limit, offset=offset)
        return found_in([prefix(found) for found in page.records()], page)

    def families(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        between: Between = (None, None),
        user: str | None = None,
        origin: str | None = None,
    ) -> Found:
        """Exceptions by family over whole days, most frequent first. `more`: `days`."""
        days = first, last = self._whole_days(between)
        bounded = between[0] is not None
        looked_at = (first - timedelta(HISTORY_DAYS), last) if bounded else days
        wanted = {"since_day": first if bounded else None, "user": user, "origin": origin}
        page = self._asker.ask("families", account, looked_at, limit=limit, offset=offset, **wanted)
        rows = page.records()
        tracebacks, answers = self._tracebacks(account, rows)
        records = [_family(found, tracebacks) for found in rows]
        return _dated(found_in(records, page, *answers), days, offset)

    def deaths(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        between: Between = (None, None),
        user: str | None = None,
        expected: bool | None = None,
    ) -> Found:
        """Workers that went, latest first, without the lines that they logged."""
        wanted = {"user": user, "expected": expected, "limit": limit, "offset": offset}
        page = self._ask("team_deaths", account, between, wanted)
        return found_in([{**_of_cluster(found), **death(found)} for found in page.records()], page)

    def events(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        between: Between = (None, None),
        user: str | None = None,
        topic: str | None = None,
    ) -> Found:
        """Events, latest first; `detail` is JSON text."""
        wanted = {"user": user, "topic": topic, "limit": limit, "offset": offset}
        page = self._ask("team_events", account, between, wanted)
        return found_in([_event(found) for found in page.records()], page)

    def _ask(self, query: str, account: str, between: Between, wanted: Record) -> Answer:
        since, until = between
        days, given = days_since(since, self._clock.now()), {"catalog": self._catalog(account)}
        return self._asker.ask(query, account, days, given=given, since=since, until=until, **wanted)

    def _whole_days(self, between: Between) -> Days:
        """The days (UTC) that it touches, as roll-ups count them."""
        since, until = between
        first, today = days_since(since, self._clock.now())
        return first, min(until.astimezone(UTC).date(), today) if until else today

    def _tracebacks(self, account: str, rows: list[Record]) -> tuple[dict[tuple[str, ...], str | None], list[Answer]]:
        """Of each family's last failure, by its cluster, origin, type and pattern; and what was asked for them."""
        told = [found for found in rows if found["newest"]]
        if not told:
            return {}, []
        days = min(found["newest_day"] for found in told), max(found["newest_day"] for found in told)
        clusters = sorted({found["newest"] for found in told})
        answer = self._asker.ask("family_tracebacks", account, days, clusters=clusters)
        keyed = {_key(found["cluster"], found): found["traceback"] for found in answer.records()}
        return keyed, [answer]


def _dated(found: Found, days: Days, offset: int) -> Found:
    """With the whole days that were counted; None for the first where all were."""
    first, last = days
    told = [None if first == _EPOCH else first.isoformat(), last.isoformat()]
    return found if offset else replace(found, more={"days": told})


def _key(cluster: str, found: Record) -> tuple[str, ...]:
    return cluster, found["origin"], found["type"], found["pattern"]


def _family(found: Record, tracebacks: dict[tuple[str, ...], str | None]) -> Record:
    return {
        **{name: found[name] for name in ("family", "origin", "type", "text", "pattern", "prefix", "n_prefixes")},
        **{name: found[name] for name in ("count", "n_clusters")},
        "users": found["users"] or [],
        "first": found["first_at"],
        "last": found["last_at"],
        "new": found["new"],
        "days": [{"day": each["day"].isoformat(), "count": each["count"]} for each in found["days"]],
        "traceback": tracebacks.get(_key(found["newest"], found)) if found["newest"] else None,
    }


def _of_cluster(found: Record) -> Record:
    return {
        "cluster_id": found["cluster_id"],
        "cluster_name": found["cluster_name"],
        "user": found["user"],
    }


def _event(found: Record) -> Record:
    return {
        **_of_cluster(found),
        "scheduler_id": scheduler_id(found["cluster"], {}),
        "time": found["logged_at"],
        **{name: found[name] for name in ("topic", "action", "worker", "detail")},
    }
