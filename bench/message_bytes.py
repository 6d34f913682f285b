"""Bytes of a message on the wire, against the same figures as rows and as a Prometheus scrape."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from typing import Any
from unittest import mock

from bench.fleet import Fleet
from bench.rows import Budget, Row
from bench.watched import Watched
from daskscope import wire
from daskscope.compression import SAMPLED, Plain, compress

BUDGETS: dict[tuple[int, Plain], int] = {
    (10, "zstd"): 1000,
    (100, "zstd"): 4500,
    (10, "gzip"): 1500,
    (100, "gzip"): 6000,
}
HEAD_BYTES = 281
"""Of a request with a token, as it was counted on a socket."""


def message_bytes(tiny: bool) -> Iterator[Row]:
    """Steady state at 10 and 100 workers, with the package zstandard and without."""
    for n_workers in (2,) if tiny else (10, 100):
        messages = asyncio.run(_messages(n_workers, 2 if tiny else 12))
        peers = {
            "same as JSON rows, gzip": _median(messages, lambda m: len(gzip.compress(_json_rows(m), 6))),
            "same as Prometheus exposition, gzip": _median(messages, lambda m: len(gzip.compress(_exposition(m), 6))),
        }
        if scrape := asyncio.run(_scrape_bytes(n_workers)):
            peers["Dask's own /metrics of all, gzip"] = scrape
        n_groups = _median(messages, lambda m: len(m.groups.no))
        for encoding in ("zstd", "gzip"):
            limit = BUDGETS.get((n_workers, encoding))
            first = _median(messages, lambda m, encoding=encoding: _sent_bytes(m, encoding, before_a_reply=True))
            body = _median(messages, lambda m, encoding=encoding: _sent_bytes(m, encoding))
            yield Row(
                name=f"message-bytes/{n_workers}-workers/{encoding}",
                value=body,
                unit="bytes",
                budget=None if limit is None else Budget("at most", limit),
                peers={"head and body": HEAD_BYTES + body, f"same before the first reply, {encoding}": first} | peers,
                how=f"body of one message, without the {HEAD_BYTES} bytes of the request's head, in steady state, "
                f"{n_groups:g} groups changed, metrics are random walks, "
                f"compressed after the sample that both sides know: median of {len(messages)}. Dask's own /metrics is "
                "measured where prometheus-client is installed.",
            )


async def _messages(n_workers: int, n: int) -> list[wire.Message]:
    watched = Watched(await Fleet.of(n_workers), n_tasks_per_interval=8 * n_workers)
    for _ in range(3):
        watched.interval()
    return [watched.interval() for _ in range(n)]


def _median(messages: list[wire.Message], size: Callable[[wire.Message], int]) -> float:
    return statistics.median(size(message) for message in messages)


def _sent_bytes(message: wire.Message, encoding: Plain, *, before_a_reply: bool = False) -> int:
    # The plugin falls back to gzip where `zstandard` is not to be had, or to deflate after the sample.
    without = {} if encoding == "zstd" else {"zstandard": None}
    with mock.patch.dict(sys.modules, without):
        body, used = compress(wire.encode(message), () if before_a_reply else SAMPLED)
    after_sample = SAMPLED[0] if encoding == "zstd" else SAMPLED[1]
    if used != (encoding if before_a_reply else after_sample):
        raise RuntimeError(f"The message went out as {used}: is the package zstandard installed?")
    return len(body)


def _rows(table: wire.Workers | wire.Groups) -> Iterator[dict[str, Any]]:
    # Columns of GPUs are empty where no worker has one.
    columns: dict[str, Any] = {f.name: getattr(table, f.name) for f in fields(table) if getattr(table, f.name)}
    for n in range(len(next(iter(columns.values()), ()))):
        yield {
            name: {key: values[n] for key, values in column.items()} if isinstance(column, dict) else column[n]
            for name, column in columns.items()
        }


def _json_rows(message: wire.Message) -> bytes:
    tables = {"workers": list(_rows(message.workers)), "groups": list(_rows(message.groups))}
    return json.dumps(asdict(message) | tables).encode()


def _exposition(message: wire.Message) -> bytes:
    """All numbers of a message in Prometheus' text format, one sample a line."""
    lines: list[str] = []
    for f in fields(message.totals):
        value: object = getattr(message.totals, f.name)
        if isinstance(value, int):
            lines += [f"# TYPE dask_{f.name} gauge", f"dask_{f.name} {value}"]
    for table, label in (("worker", "address"), ("group", "name")):
        rows = list(_rows(message.workers if table == "worker" else message.groups))
        for column in rows[0] if rows else ():
            lines.append(f"# TYPE dask_{table}_{column} gauge")
            for row in rows:
                named = f'dask_{table}_{column}{{{label}="{row[label]}"'
                value = row[column]
                if isinstance(value, dict):
                    pairs: dict[str, int] = value
                    lines += [f'{named},key="{key}"}} {number}' for key, number in pairs.items()]
                elif isinstance(value, int):
                    lines.append(f"{named}}} {value}")
    return "\n".join(lines).encode()


async def _scrape_bytes(n_workers: int) -> int | None:
    """The scheduler's own page and each worker's, each gzipped; None without prometheus-client.

    The worker's is that of one real, idle worker; it has the same lines under load.
    """
    if importlib.util.find_spec("prometheus_client") is None:
        return None
    prometheus: Any = importlib.import_module("prometheus_client")
    from distributed import Scheduler, Worker
    from distributed.http.scheduler.prometheus.core import SchedulerMetricCollector
    from distributed.http.worker.prometheus.core import WorkerMetricCollector

    def size(collector: Any) -> int:
        registry = prometheus.CollectorRegistry()
        registry.register(collector)
        return len(gzip.compress(prometheus.generate_latest(registry), 6))

    fleet = await Fleet.of(n_workers)
    Watched(fleet, n_tasks_per_interval=8 * n_workers).advance()
    scheduler = Scheduler(dashboard=False, dashboard_address="127.0.0.1:0", port=0, host="127.0.0.1")
    async with scheduler, Worker(scheduler.address, dashboard=False) as worker:
        return size(SchedulerMetricCollector(fleet.scheduler)) + n_workers * size(WorkerMetricCollector(worker))
