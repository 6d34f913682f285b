"""CPU per message on its way from the wire to Parquet."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence

from bench.envelopes import N_WORKERS, envelopes, messages, world
from bench.rows import Budget, Row
from daskscope import wire
from daskscope.compression import compress, decompress
from daskscope_lambdas.service.envelope import Envelope, pack, unpack
from daskscope_lambdas.service.write import Writer


def write_cpu(tiny: bool) -> Iterator[Row]:
    """In batches of 100 and 1,000, beside one file per post."""
    n_clusters, n_each, sizes = (2, 5, (5, 10)) if tiny else (10, 200, (100, 1000))
    sent = messages(n_clusters, n_each)
    n_groups = sum(len(message.groups.no) for message in sent) / len(sent)
    alone = _ms_per_message(sent[: sizes[0]], 1)
    for size in sizes:
        yield Row(
            name=f"write-cpu/batch-{size}",
            value=_ms_per_message(sent, size),
            unit="ms CPU",
            budget=Budget("at most", 0.15),
            peers={"one file per post": alone},
            how=f"process CPU per message ({N_WORKERS} workers, {n_groups:.0f} groups): decompress, decode, unpack "
            "the envelope, write to disk; median of the batches, all threads counted.",
        )


def _ms_per_message(sent: Sequence[wire.Message], batch: int) -> float:
    with world() as (adapters, clock, _):
        writer = Writer(adapters.objects, adapters.seals)
        ready = envelopes(sent, clock)
        bodies = [compress(wire.encode(message)) for message in sent]
        queued = [pack(envelope) for envelope in ready]
        values: list[float] = []
        gc.collect()
        gc.freeze()  # what is prepared here is no garbage of a function that has just begun
        for start in range(0, len(sent), batch):
            begun_s = time.process_time()
            for body, encoding in bodies[start : start + batch]:
                wire.decode(decompress(body, encoding))
            taken: list[Envelope] = [unpack(text) for text in queued[start : start + batch]]
            writer.write(taken, f"{start:032x}")
            values.append((time.process_time() - begun_s) * 1e3 / len(taken))
        gc.unfreeze()
    return statistics.median(values)
