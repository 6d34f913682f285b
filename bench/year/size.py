"""How much a year holds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
"""A column of a table, or of the plan."""
DAYS = 365
FIRST_DAY = date(2025, 11, 17)
"""A Monday."""
SEED = 20_251_117


@dataclass(frozen=True, slots=True)
class Size:
    """Rows in all. `computations`, `groups` and `exceptions` are met to the row, `worker_samples` to the percent, for
    each cluster has as many as it has workers x messages."""

    days: int = DAYS
    clusters: int = 20_000
    computations: int = 2_000_000
    groups: int = 20_000_000
    worker_samples: int = 97_000_000
    exceptions: int = 60_000

    @property
    def last_day(self) -> date:
        return FIRST_DAY + timedelta(self.days - 1)


def scaled(scale: float) -> Size:
    """The part of the year that `scale` (1.0: all of it) says: fewer days, each as busy as ever, so that its files are
    those of a year. Raises ValueError for a scale that is not above 0 and at most 1.
    """
    if not 0 < scale <= 1:
        raise ValueError(f"scale is {scale}; allowed: above 0, at most 1.0, which is {DAYS} days.")
    year, days = Size(), max(1, round(DAYS * scale))
    rest = [round(getattr(year, field.name) * days / DAYS) for field in fields(Size)[1:]]
    return Size(days, *rest)


TINY = Size(days=3, clusters=12, computations=90, groups=700, worker_samples=3_000, exceptions=40)
"""For tests: days of a few clusters."""


def apportion(total: int, weights: Numbers) -> Numbers:
    """Whole numbers in proportion to `weights` (not negative) whose sum is `total`."""
    exact = weights / weights.sum() * total
    found = np.floor(exact).astype(np.int64)
    short = total - int(found.sum())
    found[np.argsort(exact - found, kind="stable")[::-1][:short]] += 1
    return found
