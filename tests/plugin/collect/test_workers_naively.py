"""What is read of all workers in one pass, and kept of them, beside a plain reading value by value."""

import math
import random
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.core import Status

from daskscope import wire
from daskscope.collect.workers import _COLUMNS, MAX_WHOLE, WorkerReader

USUAL: dict[str, Any] = {
    "memory": 6 << 30,
    "managed_bytes": 2 << 30,
    "spilled_bytes": {"memory": 1, "disk": 5 << 20},
    "cpu": 250.4,
    "task_counts": {"executing": 4, "memory": 40},
    "host_net_io": {"read_bps": 81920.5, "write_bps": 4096.0},
    "host_disk_io": {"read_bps": 1.0, "write_bps": 0.0},
    "event_loop_interval": 0.0204,
}
ODD: list[Any] = [None, "fast", True, math.nan, math.inf, -3, 1 << 80, 10**400, [], {}, {"read_bps": "x"}, object()]


def naive(value: Any, unit: float) -> int:
    try:
        whole = round(value / unit)
    except (TypeError, ValueError, OverflowError):
        return 0
    return whole if abs(whole) <= MAX_WHOLE else 0


def plainly(states: list[Any]) -> wire.Workers:
    """One value after the other, as the message's format says."""
    columns: dict[str, list[int]] = {}
    for column, metric, key, unit in _COLUMNS:
        columns[column] = []
        for state in states:
            value: Any = state.metrics.get(metric, {} if key else 0)
            if key:
                value = value.get(key, 0) if isinstance(value, dict) else None
            columns[column].append(naive(value, unit))
    return wire.Workers(
        address=[state.address for state in states],
        name=[str(state.name) for state in states],
        status=[state.status.name for state in states],
        n_threads=[state.nthreads for state in states],
        memory_limit_mib=[naive(state.memory_limit, 1 << 20) for state in states],
        **columns,
    )


def a_worker(rng: random.Random, n: int, odd: float) -> Any:
    metrics = {name: value for name, value in USUAL.items() if rng.random() > 0.1}
    for name in list(metrics):
        if rng.random() < odd:
            metrics[name] = rng.choice(ODD)
        elif isinstance(metrics[name], float):
            metrics[name] *= rng.random() * 3
    return SimpleNamespace(
        address=f"tcp://10.0.0.1:{n}", name=n, status=rng.choice(list(Status)), nthreads=rng.randrange(1, 9),
        memory_limit=rng.choice([0, 16 << 30]), metrics=metrics,
    )  # fmt: skip


@pytest.mark.parametrize("odd", [0.0, 0.02, 0.5])
def test_whoever_comes_and_goes_and_whatever_they_report(odd: float) -> None:
    rng = random.Random(7)
    scheduler: Any = SimpleNamespace(workers={})
    reader = WorkerReader(scheduler)
    for n in range(300):
        for address in [a for a in scheduler.workers if rng.random() < 0.1]:
            if rng.random() < 0.3:  # another process, at the same address
                scheduler.workers[address] = a_worker(rng, int(address.rpartition(":")[2]), odd)
            else:
                del scheduler.workers[address]
        if rng.random() < 0.5:
            came = a_worker(rng, n, odd)
            scheduler.workers[came.address] = came
        for state in scheduler.workers.values():
            if rng.random() < 0.7:
                state.metrics = a_worker(rng, n, odd).metrics
                state.status = rng.choice(list(Status))
        assert reader.read() == plainly([*scheduler.workers.values()])
    assert (reader.lost["unreadable-metrics"] > 0) == (odd > 0)


def test_columns_of_one_message_are_not_those_of_the_next() -> None:
    scheduler: Any = SimpleNamespace(workers={"a": a_worker(random.Random(1), 1, 0.0)})
    reader = WorkerReader(scheduler)
    first, second = reader.read(), reader.read()
    for column in ("address", "name", "memory_limit_mib"):
        assert getattr(first, column) is not getattr(second, column), column


def test_what_could_not_be_read_is_read_at_the_next_look() -> None:
    class Broken:
        address = "tcp://10.0.0.1:1"

        def __init__(self) -> None:
            self.n_asked = 0

        def __getattr__(self, name: str) -> Any:
            self.n_asked += 1
            if self.n_asked == 1:
                raise RuntimeError(name)
            return getattr(a_worker(random.Random(1), 1, 0.0), name)

    scheduler: Any = SimpleNamespace(workers={"a": Broken()})
    reader = WorkerReader(scheduler)
    with pytest.raises(RuntimeError):
        reader.read()
    assert reader.read().address == ["tcp://10.0.0.1:1"]
    assert reader.read().name == ["1"]
