"""SQL of a user's own, over an account's lake: for who reads it in their own process, with their own rights."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime

import pyarrow as pa

from daskscope.errors import BadRequest
from daskscope_lambdas.ports import Deletions, Seals
from daskscope_lambdas.service.exclusions import excluding
from daskscope_lambdas.service.found import TRIES
from daskscope_query import free
from daskscope_query.answer import Answer
from daskscope_query.lake import MovedError


class Sql:
    """`catalog`: its rows of an account, with the columns that free.py shows."""

    def __init__(self, lake_root: str, seals: Seals, deletions: Deletions, catalog: Callable[[str], pa.Table]) -> None:
        self._root, self._seals, self._deletions, self._catalog = lake_root, seals, deletions, catalog

    def select(
        self, sql: str, account: str, params: free.Params, since: datetime | None, until: datetime | None
    ) -> Answer:
        """What one SELECT finds in what was received on the days from `since` to `until`; None: on all.

        Raises BadRequest with what DuckDB says.
        """
        question = free.question(sql, params)
        days = since.date() if since else date.min, until.date() if until else date.max
        if days[0] > days[1]:
            raise BadRequest(f"since ({days[0]}) is after until ({days[1]}).")
        for _ in range(TRIES - 1):
            with suppress(MovedError):
                return self._select(question, account, days)
        return self._select(question, account, days)

    def _select(self, question: free.FreeQuestion, account: str, days: tuple[date, date]) -> Answer:
        without = excluding(self._deletions.pending(account))
        lake = free.FreeLake(self._root, self._seals.boundary(), without=without)
        return lake.select(question, account=account, days=days, catalog=lambda: self._catalog(account))
