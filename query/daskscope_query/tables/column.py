"""What a table of the lake is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

VERSION = 3

MOMENT = pa.timestamp("ms", tz="UTC")
NAME = pa.string()
COUNT = pa.int64()
SMALL = pa.int32()
ACTIONS = pa.map_(pa.string(), pa.int64())


@dataclass(frozen=True, slots=True)
class Column:
    """`unit` is empty where the type says enough."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """`key`: the columns that tell one row from another, besides `seq`."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    order: tuple[str, ...] = ("cluster", "at", "boot", "seq")
    """What rows of a sealed day are sorted by, and then by the key."""

    schema: pa.Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        described = [pa.field(c.name, c.type, metadata={"unit": c.unit, "meaning": c.meaning}) for c in self.columns]
        schema = pa.schema(described, metadata={"daskscope.table": self.name, "daskscope.version": str(VERSION)})
        object.__setattr__(self, "schema", schema)


ORIGIN = (
    Column("account", NAME, "", "Whose cluster it is, from the token."),
    Column("cluster", NAME, "", "The cluster's UUID, 32 hex digits."),
    Column("cluster_id", COUNT, "", "The cluster's number in its account."),
    Column("boot", NAME, "", "One run of the plugin; sorts by time."),
    Column("seq", COUNT, "", "Number of the message in its boot."),
    Column("received_at", MOMENT, "", "When the server had the message, by the server's clock."),
    Column("at", MOMENT, "", "When the message was made, by the scheduler's clock."),
)
"""The columns that every table starts with."""
