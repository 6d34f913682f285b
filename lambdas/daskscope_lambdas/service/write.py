"""From the queue to the open day: envelopes become rows, rows become one small Parquet file per table."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import date, timedelta
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daskscope import wire
from daskscope_lambdas.ports import ObjectStore, Seals, Taken
from daskscope_lambdas.service.envelope import Envelope
from daskscope_query import files, layout, tables

logger = logging.getLogger("daskscope.write")

Columns = dict[str, Any]
"""Each column as it grows: a list, or _Maps where the column is a map of integers."""

_LAST_MS = 253_402_300_799_999
"""End of the year 9999: no later time can be shown, and DuckDB refuses to read one."""


class _Maps:
    """A growing column of maps, kept flat: a tuple for every entry would keep the garbage collector busy."""

    __slots__ = ("ends", "keys", "values")

    def __init__(self) -> None:
        self.ends, self.keys, self.values = [0], list[str](), list[int]()

    def add(self, entries: Mapping[str, int]) -> None:
        self.keys += entries.keys()
        self.values += entries.values()
        self.ends.append(len(self.keys))

    def add_columns(self, columns: Mapping[str, Sequence[int]], n: int) -> None:
        """`n` rows out of columns by name, without what is 0."""
        names = list(columns)
        for row in zip(*columns.values(), strict=True) if names else [()] * n:
            self.keys += compress(names, row)
            self.values += filter(None, row)
            self.ends.append(len(self.keys))

    def array(self) -> pa.Array:
        keys, values = pa.array(self.keys, pa.string()), pa.array(self.values, pa.int64())
        return pa.MapArray.from_arrays(pa.array(self.ends, pa.int32()), keys, values)


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
        for (table, day), body in bodies.items():
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
        if rows.num_rows
    }


def to_rows(envelopes: Iterable[Envelope]) -> list[tuple[tables.Table, pa.Table]]:
    """The rows of all tables. Raises ValueError or OverflowError for what its column cannot take."""
    received = list(envelopes)
    found: dict[str, Columns] = {
        name: {c.name: _Maps() if c.type == tables.ACTIONS else [] for c in table.columns[len(tables.ORIGIN) :]}
        for name, table in tables.TABLES.items()
    }
    owners: dict[str, list[int]] = {name: [] for name in found}
    for number, envelope in enumerate(received):
        for name, add in _ADDERS.items():
            owners[name] += [number] * add(found[name], envelope.message)
    origin = _origin(received)
    return [(table, _arrow(table, origin, owners[name], found[name])) for name, table in tables.TABLES.items()]


def _arrow(table: tables.Table, origin: pa.RecordBatch, owners: Sequence[int], columns: Columns) -> pa.Table:
    """`owners`: for each row, the row of `origin` that it starts with."""
    rest = table.columns[len(tables.ORIGIN) :]
    arrays = [_array(table.name, column, columns[column.name]) for column in rest]
    return pa.Table.from_arrays([*origin.take(pa.array(owners, pa.int32())), *arrays], schema=table.schema)


def _array(table: str, column: tables.Column, values: _Maps | list[Any]) -> pa.Array:
    array = values.array() if isinstance(values, _Maps) else pa.array(values, column.type)
    if column.type == tables.MOMENT and len(array):
        ends = pc.call_function("min_max", [array.cast(pa.int64())])
        if (ends["min"].as_py() or 0) < 0 or (ends["max"].as_py() or 0) > _LAST_MS:
            raise ValueError(f"{table}.{column.name} holds a time before 1970 or after 9999")
    return array


def _origin(envelopes: Sequence[Envelope]) -> pa.RecordBatch:
    """What the rows of each message start with, a row a message."""
    values: Columns = {
        "account": [e.account for e in envelopes],
        "cluster": [e.message.cluster for e in envelopes],
        "cluster_id": [e.cluster_id for e in envelopes],
        "boot": [e.message.boot for e in envelopes],
        "seq": [e.message.seq for e in envelopes],
        "received_at": [int(e.received_at * 1000) for e in envelopes],
        "at": [e.message.made_at_ms for e in envelopes],
    }
    arrays = [_array("every table", column, values[column.name]) for column in tables.ORIGIN]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in tables.ORIGIN])


def _clusters(columns: Columns, message: wire.Message) -> int:
    identity = message.identity
    if identity is None:
        return 0
    for name in ("name", "scheduler_id", "user", "host", "python", "platform"):
        columns[name].append(getattr(identity, name))
    columns["started_at"].append(identity.started_at_ms)
    columns["versions"].append(list(identity.versions.items()))
    columns["tags"].append(list(identity.tags.items()))
    return 1


_GAUGES = tuple({c.name for c in tables.SAMPLES.columns} & {f.name for f in fields(wire.Totals)} - {"action_us"})


def _samples(columns: Columns, message: wire.Message) -> int:
    totals = message.totals
    for name in _GAUGES:
        columns[name].append(getattr(totals, name))
    columns["uptime_us"].append(message.uptime_us)
    columns["action_us"].add(totals.action_us)
    columns["phase"].append(message.phase)
    columns["reason"].append(message.reason)
    columns["lost"].add(message.lost)
    return 1


_WORKER_FIELDS = tuple(f.name for f in fields(wire.Workers))


def _workers(columns: Columns, message: wire.Message) -> int:
    workers = message.workers
    if workers.address:
        for name in _WORKER_FIELDS:
            columns[name] += getattr(workers, name)
    return len(workers.address)


_GROUP_FIELDS = ("no", "name", "prefix", "computation", "span", "n_tasks", "nbytes", "dependencies", "types")


def _groups(columns: Columns, message: wire.Message) -> int:
    groups, n = message.groups, len(message.groups.no)
    if n:
        for name in _GROUP_FIELDS:
            columns[name] += getattr(groups, name)
        columns["start_at"] += groups.start_ms
        columns["stop_at"] += groups.stop_ms
        columns["states"].add_columns(groups.states, n)
        columns["action_us"].add_columns(groups.action_us, n)
    return n


_FRAME = tuple(field.name for field in tables.FRAME)


def _computations(columns: Columns, message: wire.Message) -> int:
    for computation in message.computations:
        columns["no"].append(computation.no)
        columns["start_at"].append(computation.start_ms)
        columns["stop_at"].append(computation.stop_ms)
        columns["code"].append(
            [[{name: getattr(f, name) for name in _FRAME} for f in call] for call in computation.code]
        )
    return len(message.computations)


_EXCEPTION_FIELDS = ("no", "type", "text", "traceback", "key", "prefix", "workers", "count")


def _exceptions(columns: Columns, message: wire.Message) -> int:
    for family in message.exceptions:
        for name in _EXCEPTION_FIELDS:
            columns[name].append(getattr(family, name))
        columns["group_no"].append(family.group)
        columns["first_at"].append(family.first_ms)
        columns["last_at"].append(family.last_ms)
    return len(message.exceptions)


_EVENT_FIELDS = ("no", "topic", "action", "worker", "detail")


def _events(columns: Columns, message: wire.Message) -> int:
    for event in message.events:
        for name in _EVENT_FIELDS:
            columns[name].append(getattr(event, name))
        columns["logged_at"].append(event.at_ms)
    return len(message.events)


_ADDERS: dict[str, Callable[[Columns, wire.Message], int]] = {
    "clusters": _clusters,
    "samples": _samples,
    "workers": _workers,
    "groups": _groups,
    "computations": _computations,
    "exceptions": _exceptions,
    "events": _events,
}
"""For each table, what adds a message's rows but for ORIGIN, and tells how many."""
