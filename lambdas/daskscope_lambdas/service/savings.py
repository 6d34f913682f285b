"""What it was worth that idle clusters closed: held against clusters that nobody closed for it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa

from daskscope_lambdas.service.closing import IDLED
from daskscope_lambdas.service.records import MISSED
from daskscope_lambdas.service.words import count, duration, money
from daskscope_query.given import ask_given

LEAST = 5
"""So many clusters must have idled on, or nothing is told from them."""
BEFORE_DAYS = 90


def saved(catalog: pa.Table, days: tuple[date, date], now: float, user: str | None, currency: str) -> dict[str, Any]:
    """`dollars` (null where nothing can be told), `n_clusters` that closed for idling in these days, and a `sentence`,
    null if none did.

    `catalog`: an account's clusters as rows of that table; `now`: epoch seconds.
    """
    (row,) = ask_given(
        "savings",
        {"catalog": catalog},
        reason=IDLED,
        missed=MISSED,
        now_s=now,
        first_day=days[0],
        last_day=days[1],
        user=user,
        least=LEAST,
        before_days=BEFORE_DAYS,
    ).to_pylist()
    n = row["n_clusters"]
    return {"dollars": row["dollars"] if n else 0.0, "n_clusters": n, "sentence": _sentence(row, currency)}


def _sentence(row: dict[str, Any], currency: str) -> str | None:
    n, n_told = row["n_clusters"], row["n_told"]
    if not n:
        return None
    closed = f"{count(n, 'cluster')} closed for idling"
    if not n_told:
        return f"{closed}; what that saved is not known: too few clusters idled for longer without being closed for it."
    rest = "" if n_told == n else f" Of {n - n_told} of these nothing can be told."
    return (
        f"{closed}, which saved about {money(row['dollars'], currency)} (estimated: each would have idled for another "
        f"{duration(row['longer_h'] * 3600)}, the median of at least {row['n_alone']} that nobody closed).{rest}"
    )
