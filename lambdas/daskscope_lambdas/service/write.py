"""From the queue to the open day: envelopes become rows, rows become one small Parquet file per table."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa

from daskscope_lambdas.ports import ObjectStore, Seals, Taken
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.rows import to_rows
from daskscope_query import files, layout
from daskscope_query.tables import SAMPLES

logger = logging.getLogger("daskscope.write")

Bodies = dict[tuple[str, date], bytes]
"""Files of a batch, by table and day of receipt."""


@dataclass(frozen=True, slots=True)
class Misfit:
    envelope: Envelope
    reason: str
    for_good: bool
    """No table takes its values. Else something else went wrong with it, and another release may know better."""


class Writer:
    """Adds files to open days, and never to a day that the boundary says is sealed."""

    def __init__(self, objects: ObjectStore, seals: Seals) -> None:
        self._objects, self._seals = objects, seals

    def write(self, envelopes: Sequence[Envelope], name: str) -> None:
        """Keep a batch as files called `name`: the same name must mean the same batch, so a repeat changes nothing.

        An envelope belongs to the day on which it was received; if that is sealed, to the first open day.
        Raises ValueError or OverflowError, with nothing kept, for a number or time that its column cannot take.
        """
        self.put(_bodies(envelopes), name)

    def put(self, bodies: Bodies, name: str) -> None:
        """Keep files called `name`, as `write`."""
        boundary = self._seals.boundary()
        # Samples last: whoever sees that a message is there finds all of it.
        for (table, day), body in sorted(bodies.items(), key=lambda entry: entry[0][0] == SAMPLES.name):
            if boundary is None or day > boundary:
                key = layout.open_key(table, day, name)
            else:
                to = boundary + timedelta(1)
                key = layout.late_key(table, to, name, day)
                # Before the rows, so that none stands where nobody looks.
                with suppress(Taken):
                    self._objects.put_new(layout.late_mark_key(day, to), b"")
            with suppress(Taken):
                self._objects.put_new(key, body)

    def write_what_fits(self, envelopes: Sequence[Envelope]) -> list[Misfit]:
        """Keep a batch; returns what cannot be kept, the rest is. Raises StoreError if the lake itself fails.

        All go into one file a table; if a message stops that, the halves apart, until it is alone.
        """
        if not envelopes:
            return []
        try:
            bodies = _bodies(envelopes)
        except Exception as error:  # noqa: BLE001 - whatever a message does to us, it does alone
            if len(envelopes) == 1:
                return [_misfit(envelopes[0], error)]
            half = len(envelopes) // 2
            return self.write_what_fits(envelopes[:half]) + self.write_what_fits(envelopes[half:])
        # Not above: what the store raises is no fault of a message.
        self.put(bodies, _name(envelopes))
        return []


def _misfit(envelope: Envelope, error: Exception) -> Misfit:
    """Raises what says more of this machine than of the message, for which the whole batch is to come again."""
    if isinstance(error, (MemoryError, OSError)):
        raise error
    reason = f"It fits no table: {error} ({type(error).__name__})"
    for_good = isinstance(error, (ValueError, OverflowError, pa.ArrowException))
    if not for_good:
        logger.error(
            "Message %s of cluster %s was not written.", envelope.message.seq, envelope.cluster_id, exc_info=error
        )
    return Misfit(envelope, reason, for_good)


def _name(envelopes: Iterable[Envelope]) -> str:
    """The same batch gets the same name: delivered again, it adds no second file."""
    told = (
        f"{e.received_at} {e.account} {e.message.cluster} {e.message.boot} {e.message.seq} {e.message.part}"
        for e in envelopes
    )
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


def _bodies(envelopes: Iterable[Envelope]) -> Bodies:
    """What is in each depends on the batch alone."""
    days: dict[date, list[Envelope]] = defaultdict(list)
    for envelope in envelopes:
        layout.checked_account(envelope.account)  # a folder of sealed days is named by it
        days[layout.day_of(envelope.received_at)].append(envelope)
    return {
        (table.name, day): files.encode(table, rows, for_long=False)
        for day, received in days.items()
        for table, rows in to_rows(received)
    }
