"""What a workload is: something done on a cluster, and what must be told of it afterwards."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import daskscope

T = TypeVar("T")


class Workload(Protocol):
    """`work` does it and keeps what it did; `check` holds that against what the Python API says, or raises."""

    def work(self, client: Any) -> None: ...
    def check(self, cluster_id: int) -> None: ...


def agrees(check: Callable[[], None], within_s: float = 30) -> None:
    """Check until it holds: the lake follows the cluster by a message and the queue's window."""
    give_up = time.monotonic() + within_s
    pause = threading.Event()
    while True:
        try:
            return check()
        except (AssertionError, LookupError, daskscope.DaskscopeError):
            if time.monotonic() > give_up:
                raise
        pause.wait(0.5)


def only(records: list[T]) -> T:
    """The one there is."""
    assert len(records) == 1, records
    return records[0]


def totals(cluster_id: int, what: str = "n_tasks") -> Counter[str]:
    """A figure of all task groups of a cluster, by prefix."""
    sums = Counter[str]()
    for group in daskscope.list_groups(cluster_id):
        sums[group["prefix"]] += group[what]
    return sums
