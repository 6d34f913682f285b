"""What it was worth that idle clusters closed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from daskscope_lambdas.service.closing import IDLED
from daskscope_lambdas.service.savings import BEFORE_DAYS, LEAST, saved
from daskscope_query.tables import CATALOG

TODAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
WEEK = (date(2026, 11, 15), date(2026, 11, 21))
HOUR_US = 3_600_000_000


def ended(number: int, idle_s: float, *, closed: bool = False, days_ago: float = 1, **values: Any) -> dict[str, Any]:
    """A cluster of 4 threads that cost $0.10 an hour each; `closed`: after half an hour of idleness."""
    return {
        "account": "acme", "cluster": f"{number:032x}", "cluster_id": number, "user": "ada", "phase": "closed",
        "reason": IDLED if closed else "scheduler-close", "last_received_at": TODAY - timedelta(days=days_ago),
        "next_s": 10.0, "idle_s": idle_s, "idle_timeout_s": 1800.0 if closed else None, "n_threads": 4,
        "thread_us": 10 * HOUR_US, "dollars": 1.0,
    } | values  # fmt: skip


def told(*rows: dict[str, Any], user: str | None = None) -> dict[str, Any]:
    return saved(pa.Table.from_pylist(list(rows), CATALOG.schema), WEEK, TODAY.timestamp(), user, "USD")


def left_alone(*hours: float, **values: Any) -> list[dict[str, Any]]:
    return [ended(100 + n, each * 3600) | values for n, each in enumerate(hours)]


def test_it_is_what_clusters_idled_on_that_nobody_closed():
    found = told(ended(1, 1800, closed=True), ended(2, 1800, closed=True), *left_alone(1.5, 2.5, 3.5, 9.5, 0.6))
    # Two hours longer than half an hour in the middle, 4 threads at ten cents.
    assert found["dollars"] == pytest.approx(2 * 4 * 0.1 * 2)
    assert found["n_clusters"] == 2
    assert found["sentence"] == (
        "2 clusters closed for idling, which saved about $1.60 (estimated: each would have idled for another 2 h, "
        "the median of at least 5 that nobody closed)."
    )


def test_clusters_that_idled_for_less_than_the_timeout_tell_nothing():
    found = told(ended(1, 1800, closed=True), *left_alone(0.4, 0.4, 0.4, 2.5, 2.5, 2.5, 2.5, 2.5))
    assert found["dollars"] == pytest.approx(4 * 0.1 * 2)


@pytest.mark.parametrize(
    "others",
    [
        left_alone(*[2.5] * (LEAST - 1)),
        left_alone(*[2.5] * 9, last_received_at=TODAY - timedelta(days=BEFORE_DAYS + 10)),
        left_alone(*[2.5] * 9, idle_s=None),
        left_alone(*[2.5] * 9, reason=IDLED),
        left_alone(*[2.5] * 9, phase="running", reason=None, last_received_at=TODAY - timedelta(seconds=20)),
    ],
    ids=["few", "long ago", "worked", "closed for it themselves", "still there"],
)
def test_it_is_not_known_without_others_that_idled_on(others: list[dict[str, Any]]):
    found = told(ended(1, 1800, closed=True), *others)
    assert (found["dollars"], found["n_clusters"]) == (None, 1 + 9 * (others[0]["reason"] == IDLED))
    assert "is not known" in found["sentence"]


def test_the_lost_tell_too():
    lost = left_alone(*[2.5] * 5, phase="running", reason=None)
    assert told(ended(1, 1800, closed=True), *lost)["dollars"] == pytest.approx(4 * 0.1 * 2)


def test_of_whom_and_when():
    others = left_alone(*[2.5] * 5, user="cy")
    ada, bob = ended(1, 1800, closed=True), ended(2, 1800, closed=True, user="bob", n_threads=8)
    early = ended(3, 1800, closed=True, days_ago=20)
    assert told(ada, bob, early, *others, user="bob")["dollars"] == pytest.approx(8 * 0.1 * 2)
    assert told(ada, bob, early, *others)["n_clusters"] == 2
    assert told(early, *others) == {"dollars": 0.0, "n_clusters": 0, "sentence": None}


def test_one_of_which_nothing_can_be_told_is_counted_and_said():
    found = told(ended(1, 1800, closed=True), ended(2, 1800, closed=True, n_threads=0), *left_alone(*[2.5] * 5))
    assert (found["dollars"], found["n_clusters"]) == (pytest.approx(0.8), 2)
    assert found["sentence"].endswith(" Of 1 of these nothing can be told.")
