"""Adaptive scaling: how many workers Dask would have, and between which limits.

The limits stand in the cluster object, which the scheduler knows nothing of: they are told where both live in one
process (LocalCluster, an SSHCluster does not), None elsewhere.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Scheduler

EVERY_S = 60.0
MAX_WORKERS = 2_000
"""With more, Dask is not asked: it takes 5 ms for 1,000."""


@dataclass(frozen=True, slots=True)
class Adaptive:
    """None for what is not known, or is no limit."""

    desired: int | None = None
    minimum: int | None = None
    maximum: int | None = None


class AdaptiveReader:
    """Asks Dask at most once a minute; in between its answer is the same."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._desired: int | None = None
        self._asked_at_s: float | None = None
        self.lost: Counter[str] = Counter()
        """`unreadable-adaptive`."""

    def read(self, now_s: float) -> Adaptive:
        minimum = maximum = None
        try:
            minimum, maximum = self._limits()
            if self._asked_at_s is None or abs(now_s - self._asked_at_s) >= EVERY_S:
                self._asked_at_s, self._desired = now_s, None
                if len(self._scheduler.workers) <= MAX_WORKERS:
                    self._desired = int(self._scheduler.adaptive_target())
        except Exception:  # noqa: BLE001  # users' plugins have a say in it, and cluster objects are anybody's
            self.lost["unreadable-adaptive"] += 1
        return Adaptive(self._desired, minimum, maximum)

    def _limits(self) -> tuple[int | None, int | None]:
        spec: Any = sys.modules.get("distributed.deploy.spec")  # where it is not imported, no cluster object is
        for cluster in list(spec.SpecCluster._instances) if spec else ():
            scaling: Any = cluster._adaptive
            if scaling and scaling.periodic_callback and getattr(cluster, "scheduler", None) is self._scheduler:
                return _limit(scaling.minimum), _limit(scaling.maximum)
        return None, None


def _limit(value: Any) -> int | None:
    return None if math.isinf(value) else int(value)
