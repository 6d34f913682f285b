"""A batch of the queue into the lake, in slices: few bytes may hold a lot, and memory is the same however many come."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from daskscope.errors import BadMessage
from daskscope_lambdas.service.envelope import Envelope, unpack_sized
from daskscope_lambdas.service.size import n_entries, n_repeated
from daskscope_lambdas.service.write import Writer

logger = logging.getLogger("daskscope.write")

SLICE_BYTES = 32 << 20
"""JSON of the envelopes that are written together, with what it says once for many rows: 1,000 of clusters with 100
workers have 9 MiB."""
SLICE_ENTRIES = 250_000
"""Of all their messages: 250 clusters with 1,000 workers. A single message may have more, and is a slice alone."""

Received = tuple[str, Envelope]
"""A message as the queue numbers it, and what it holds."""


def write_batch(writer: Writer, bodies: Iterable[tuple[str, str]]) -> list[str]:
    """Keep what the queue handed over, by its id; returns the ids of what cannot be read or kept.

    One file a table, but for batches over a slice. Raises StoreError if the lake itself fails.
    """
    failed: list[str] = []
    for received in _slices(bodies, failed):
        misfits = {id(envelope) for envelope in writer.write_what_fits([envelope for _, envelope in received])}
        failed += [message_id for message_id, envelope in received if id(envelope) in misfits]
    return failed


def _slices(bodies: Iterable[tuple[str, str]], failed: list[str]) -> Iterator[Sequence[Received]]:
    """At least one message each; the ids of those that cannot be read go to `failed`."""
    held: list[Received] = []
    n_bytes = n = 0
    for message_id, body in bodies:
        try:
            envelope, size_bytes = unpack_sized(body)
        except BadMessage as error:
            # SQS keeps no reason with what it gives up on: the log is where it stands.
            logger.warning("Message %s cannot be read: %s", message_id, error)
            failed.append(message_id)
            continue
        size_bytes += n_repeated(envelope.message)
        n_bytes, n = n_bytes + size_bytes, n + (size := n_entries(envelope.message))
        if held and (n_bytes > SLICE_BYTES or n > SLICE_ENTRIES):
            yield held
            held, n_bytes, n = [], size_bytes, size
        held.append((message_id, envelope))
    if held:
        yield held
