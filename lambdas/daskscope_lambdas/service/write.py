"""From the queue to the open day: envelopes become rows, rows become one small Parquet file per table."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta

import pyarrow as pa

from daskscope_lambdas.ports import ObjectStore, Seals, Taken
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.rows import to_rows
from daskscope_query import files, layout
from daskscope_query.tables import SAMPLES

logger = logging.getLogger("daskscope.write")


class Writer:
    """Adds files to open days, and never to a day that the boundary says is sealed."""

    def __init__(self, objects: ObjectStore, seals: Seals) -> None:
        self._objects, self._seals = objects, seals

    def write(self, envelopes: Sequence[Envelope], name: str) -> None:
        """Keep a batch as files called `name`: the same name must mean the same batch, so a repeat changes nothing.

        An envelope belongs to the day on which it was received; if that is sealed, to the first open day.
        Raises ValueError or OverflowError, with nothing kept, for a number or time that its column cannot take.
        """
        bodies = _bodies(envelopes)
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

    def write_what_fits(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """Keep a batch; returns those that fit no table, the rest is kept. Raises StoreError if the lake itself fails.

        All go into one file a table; if a value stops that, the halves apart, until only what cannot be kept is left.
        """
        if not envelopes:
            return []
        try:
            self.write(envelopes, _name(envelopes))
        except (ValueError, OverflowError, pa.ArrowException) as error:
            if len(envelopes) == 1:
                logger.warning("Message %s fits no table: %s", envelopes[0].message.seq, error)
                return list(envelopes)
            half = len(envelopes) // 2
            return self.write_what_fits(envelopes[:half]) + self.write_what_fits(envelopes[half:])
        return []


def _name(envelopes: Iterable[Envelope]) -> str:
    """The same batch gets the same name: delivered again, it adds no second file."""
    told = (f"{e.received_at} {e.message.cluster} {e.message.boot} {e.message.seq}" for e in envelopes)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


def _bodies(envelopes: Iterable[Envelope]) -> dict[tuple[str, date], bytes]:
    """The files of a batch by table and day of receipt: what is in each depends on the batch alone."""
    days: dict[date, list[Envelope]] = defaultdict(list)
    for envelope in envelopes:
        days[layout.day_of(envelope.received_at)].append(envelope)
    return {
        (table.name, day): files.encode(table, rows)
        for day, received in days.items()
        for table, rows in to_rows(received)
    }
