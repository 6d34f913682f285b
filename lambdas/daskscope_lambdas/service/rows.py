"""Messages to rows: what the tables of the lake take of them, as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.rows_columns import Columns, array, empty
from daskscope_lambdas.service.rows_parts import ADDERS
from daskscope_query import tables

_OWN = {tables.SAMPLES.name: "skew_ms", tables.CLUSTERS.name: "user_claimed"}
"""What a row of these takes of the envelope, for the message does not know it."""


def to_rows(envelopes: Iterable[Envelope]) -> list[tuple[tables.Table, pa.Table]]:
    """The tables that have rows of these messages. Raises ValueError or OverflowError for what a column cannot take."""
    received = list(envelopes)
    found = {name: empty(table) for name, table in tables.TABLES.items()}
    owners: dict[str, list[int]] = {name: [] for name in found}
    for number, envelope in enumerate(received):
        for name, add in ADDERS.items():
            if n := add(found[name], envelope.message):
                owners[name] += [number] * n
                if own := _OWN.get(name):
                    found[name][own].append(getattr(envelope, own))
    origin = _origin(received)
    # A table without rows costs nothing: making its empty columns would cost as much as a few messages.
    return [
        (table, _arrow(table, origin, owners[name], found[name]))
        for name, table in tables.TABLES.items()
        if owners[name]
    ]


def _arrow(table: tables.Table, origin: pa.RecordBatch, owners: Sequence[int], columns: Columns) -> pa.Table:
    """`owners`: for each row, the row of `origin` that it starts with."""
    rest = table.columns[len(tables.ORIGIN) :]
    arrays = [array(table.name, column, columns[column.name]) for column in rest]
    return pa.Table.from_arrays([*origin.take(pa.array(owners, pa.int32())), *arrays], schema=table.schema)


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
    arrays = [array("every table", column, values[column.name]) for column in tables.ORIGIN]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in tables.ORIGIN])
