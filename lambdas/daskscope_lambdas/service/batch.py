"""A batch of the queue into the lake, in slices: few bytes may hold a lot, and memory is the same however many come."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from daskscope.errors import BadMessage
from daskscope_lambdas.service.envelope import Envelope, unpack_sized
from daskscope_lambdas.service.letters import Letters, Unfit
from daskscope_lambdas.service.size import n_entries, n_repeated
from daskscope_lambdas.service.write import Writer

logger = logging.getLogger("daskscope.write")

SLICE_BYTES = 32 << 20
"""JSON of the envelopes that are written together, with what it says once for many rows: 1,000 of clusters with 100
workers have 9 MiB."""
SLICE_ENTRIES = 250_000
"""Of all their messages: 250 clusters with 1,000 workers. A single message may have more, and is a slice alone."""

Received = tuple[str, str, Envelope]
"""A message as the queue numbers it, its body, and what that holds."""


def write_batch(writer: Writer, letters: Letters, bodies: Iterable[tuple[str, str]]) -> list[str]:
    """Keep what the queue handed over, by its id; returns the ids of what is to come again.

    One file a table, but for batches over a slice. What cannot be read, or fits no table, becomes a dead letter: that
    is for good, whatever is tried. Raises StoreError if the lake itself fails, and nothing is put aside for that.
    """
    unfit, failed = list[Unfit](), list[str]()
    for received in _slices(bodies, unfit, failed):
        misfits = {id(each.envelope): each for each in writer.write_what_fits([e for _, _, e in received])}
        for message_id, body, envelope in received:
            misfit = misfits.get(id(envelope))
            if misfit and misfit.for_good:
                unfit.append(Unfit(message_id, body, misfit.reason))
            elif misfit:
                failed.append(message_id)
    return failed + letters.put(unfit)


def _slices(bodies: Iterable[tuple[str, str]], unfit: list[Unfit], failed: list[str]) -> Iterator[Sequence[Received]]:
    """At least one message each; those that cannot be read go to `unfit`, to `failed` where that may be our mistake."""
    held: list[Received] = []
    n_bytes = n = 0
    for message_id, body in bodies:
        try:
            envelope, size_bytes = unpack_sized(body)
            size_bytes, size = size_bytes + n_repeated(envelope.message), n_entries(envelope.message)
        except (BadMessage, RecursionError) as error:
            unfit.append(Unfit(message_id, body, str(error)))
            continue
        except MemoryError:
            raise
        except Exception:
            logger.exception("Message %s was not read.", message_id)
            failed.append(message_id)
            continue
        n_bytes, n = n_bytes + size_bytes, n + size
        if held and (n_bytes > SLICE_BYTES or n > SLICE_ENTRIES):
            yield held
            held, n_bytes, n = [], size_bytes, size
        held.append((message_id, body, envelope))
    if held:
        yield held
