"""Bytes in the lake: open files, and sealed ones per worker sample."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.envelopes import DAY_S, N_WORKERS, envelopes, messages, world
from bench.rows import Budget, Row, progress
from daskscope import wire
from daskscope.compression import compress
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.write import Writer


def at_rest(tiny: bool) -> Iterator[Row]:
    """A day of some clusters, written in batches and then sealed."""
    n_clusters, n_each, batch = (2, 5, 5) if tiny else (10, 1000, 100)
    progress(f"{n_clusters * n_each} messages")
    sent = messages(n_clusters, n_each)
    n_samples = sum(len(message.workers.address) for message in sent)
    rows = b"\n".join(_worker_lines(sent))
    with world() as (adapters, clock, lake):
        writer = Writer(adapters.objects, adapters.seals)
        ready = envelopes(sent, clock)
        for start in range(0, len(ready), batch):
            writer.write(ready[start : start + batch], f"{start:032x}")
        yield Row(
            name=f"at-rest/open-batch-{batch}",
            value=_bytes(lake, "open") / len(sent),
            unit="bytes per message",
            peers={"as posted": sum(len(compress(wire.encode(m))[0]) for m in sent) / len(sent)},
            how=f"open files of all tables; {N_WORKERS} workers a message, {batch} messages a file.",
        )
        open_workers = _bytes(lake, "open/workers")
        clock.advance(2 * DAY_S)
        progress("sealing")
        Compactor(adapters.objects, adapters.seals, clock, adapters.lake_root).run()
        yield Row(
            name="at-rest/sealed-worker-sample",
            value=_bytes(lake, "sealed/workers") / n_samples,
            unit="bytes per sample",
            budget=Budget("at most", 10.0),
            peers={"open files": open_workers / n_samples, "JSON lines, gzip": len(gzip.compress(rows, 6)) / n_samples},
            how=f"sealed `workers` of a day: {n_samples:,} samples of 15 random walks, {n_clusters} clusters.",
        )


def _bytes(lake: Path, below: str) -> int:
    return sum(file.stat().st_size for file in (lake / below).rglob("*.parquet"))


def _worker_lines(sent: Sequence[wire.Message]) -> Iterator[bytes]:
    for message in sent:
        columns: dict[str, list[object]] = msgspec.to_builtins(message.workers)
        origin = {"cluster": message.cluster, "seq": message.seq, "at": message.made_at_ms}
        for values in zip(*columns.values(), strict=True):
            yield msgspec.json.encode(origin | dict(zip(columns, values, strict=True)))
