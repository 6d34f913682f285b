"""CPU per message on its way from the wire to Parquet."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from bench.envelopes import N_WORKERS, envelopes, messages, world
from bench.rows import Budget, Row
from daskscope import wire
from daskscope.compression import compress, decompress
from daskscope_lambdas.service.check import check
from daskscope_lambdas.service.envelope import Envelope, pack, unpack
from daskscope_lambdas.service.write import Writer


def write_cpu(tiny: bool) -> Iterator[Row]:
    """In batches of 100 and 1,000, beside one file per post; and what ingest decodes before."""
    n_clusters, n_each, sizes = (2, 5, (5, 10)) if tiny else (10, 200, (100, 1000))
    sent = messages(n_clusters, n_each)
    n_groups = sum(len(message.groups.no) for message in sent) / len(sent)
    of = f"process CPU per message ({N_WORKERS} workers, {n_groups:.0f} groups), all threads counted, median of the"
    alone = _written_ms(sent[: sizes[0]], 1)
    for size in sizes:
        yield Row(
            name=f"write-cpu/batch-{size}",
            value=_written_ms(sent, size),
            unit="ms CPU",
            budget=Budget("at most", 0.15),
            peers={"one file per post": alone},
            how=f"{of} batches: from what the queue holds (base64, zstd, JSON) to Parquet on disk.",
        )
    yield Row(
        name="write-cpu/ingest",
        value=_decoded_ms(sent),
        unit="ms CPU",
        how=f"{of} messages: what ingest does with a body before: decompress, decode, check, pack for the queue.",
    )


def _written_ms(sent: Sequence[wire.Message], batch: int) -> float:
    with world() as (adapters, clock, _):
        writer = Writer(adapters.objects, adapters.seals)
        queued = [pack(envelope) for envelope in envelopes(sent, clock)]
        values: list[float] = []
        with _no_garbage():
            for start in range(0, len(sent), batch):
                begun_s = time.process_time()
                writer.write([unpack(text) for text in queued[start : start + batch]], f"{start:032x}")
                values.append((time.process_time() - begun_s) * 1e3 / len(queued[start : start + batch]))
    return statistics.median(values)


def _decoded_ms(sent: Sequence[wire.Message]) -> float:
    bodies = [compress(wire.encode(message)) for message in sent]
    values: list[float] = []
    with _no_garbage():
        for body, encoding in bodies:
            begun_s = time.process_time()
            message = wire.decode(decompress(body, encoding))
            check(message)
            pack(Envelope(account="bench", cluster_id=1, received_at=0.0, message=message))
            values.append((time.process_time() - begun_s) * 1e3)
    return statistics.median(values)


@contextmanager
def _no_garbage() -> Generator[None]:
    """What was prepared here is no garbage of a function that has just begun."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
