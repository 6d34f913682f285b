"""Parquet files of the lake: how rows become one, how many are read as one, and which of them cannot be read.

Pages carry checksums, so that a flipped bit is an error and not a wrong number.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from daskscope_query.tables import MOMENT, Table

_ROW_GROUP_ROWS = 8 * 1024
"""Reading one cluster out of a day unpacks the whole of each row group that has rows of it: at 48k rows that took three
to five times as long. Much smaller ones are larger together, and all days' footers with them."""
_ROW_GROUP_ROWS_OF = {"workers": 32 * 1024}
"""Most of a lake's bytes, of narrow columns: smaller groups would compress worse."""

SCAN = ds.ParquetFragmentScanOptions(
    page_checksum_verification=True,
    pre_buffer=True,
    # One read for columns of a row group that are near each other: the bytes between them cost less than a request.
    cache_options=pa.CacheOptions(hole_size_limit=256 << 10, range_size_limit=32 << 20, lazy=True),
)
FORMAT = ds.ParquetFileFormat(default_fragment_scan_options=SCAN)
_STEADY = {"seq", "received_at", "at", "uptime_us", "no"}
"""Columns that grow by small steps where rows are sorted by time: differences are smaller than the values."""
_WALKS = {"memory_mib", "managed_mib", "cpu_pct", "ready", "net_read_kib_s", "net_write_kib_s", "disk_read_kib_s",
          "disk_write_kib_s"}  # fmt: skip
"""Likewise where each worker's rows follow one another; their times then come over and over, which zstd finds."""


def encode(table: Table, rows: pa.Table, *, for_long: bool = True) -> bytes:
    """One Parquet file: strings and nested values by dictionary, numbers by what suits them.

    Compressed by zstd; not `for_long`, by snappy: a fifth larger and a third cheaper, where a small file lives for a
    day. The same rows give the same bytes with the same pyarrow.
    """
    encodings: dict[str, str] = {}
    by_small_steps = _WALKS if "address" in table.order else _STEADY
    for column in table.columns:
        if column.name in by_small_steps:
            encodings[column.name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type):
            encodings[column.name] = "BYTE_STREAM_SPLIT"
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression="zstd" if for_long else "snappy",
        compression_level=9 if for_long else None,
        # Documented as "bool or list", annotated as bool.
        use_dictionary=[p for p in _leaves(rows.schema) if p not in encodings],  # pyright: ignore[reportArgumentType]
        column_encoding=encodings,
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        writer.write_table(rows, row_group_size=_ROW_GROUP_ROWS_OF.get(table.name, _ROW_GROUP_ROWS))
        writer.add_key_value_metadata(table.schema.metadata)
    return sink.getvalue().to_pybytes()


def _leaves(schema: pa.Schema) -> list[str]:
    """Parquet's dotted paths of the columns."""
    paths: list[str] = []

    def walk(path: str, type: pa.DataType) -> None:
        if pa.types.is_map(type):
            walk(f"{path}.key_value.key", type.key_type)
            walk(f"{path}.key_value.value", type.item_type)
        elif pa.types.is_list(type):
            walk(f"{path}.list.element", type.value_type)
        elif pa.types.is_struct(type):
            for field in type:
                walk(f"{path}.{field.name}", field.type)
        else:
            paths.append(path)

    for field in schema:
        walk(field.name, field.type)
    return paths


def condition(
    account: str | None, clusters: Sequence[str] | None, until: datetime | None, hidden: pc.Expression | None
) -> pc.Expression | None:
    """Which rows count: those of `account`, of `clusters`, received until `until`, and none that is `hidden`; None for
    what does not narrow them.
    """
    found: list[pc.Expression] = []
    if account is not None:
        found.append(pc.field("account") == account)
    if clusters is not None:
        # Of one, statistics of row groups are compared by equality.
        one = pc.field("cluster") == clusters[0] if len(clusters) == 1 else None
        found.append(pc.field("cluster").isin(pa.array(clusters, pa.string())) if one is None else one)
    if until is not None:
        found.append(pc.field("received_at") <= pa.scalar(until, MOMENT))
    if hidden is not None:
        found.append(~hidden)
    return reduce(and_, found) if found else None


def relation(
    filesystem: pafs.FileSystem,
    fragments: Sequence[ds.Fragment],
    schema: pa.Schema,
    wanted: pc.Expression | None,
) -> ds.Dataset:
    """These files as one relation of the rows that are `wanted`, or of all.

    A column that a file lacks is null, one that `schema` lacks is left out.
    """
    rows = ds.FileSystemDataset([*fragments], schema, FORMAT, filesystem)
    return rows if wanted is None else rows.filter(wanted)


def fragment(filesystem: pafs.FileSystem, path: str) -> ds.Fragment:
    """A file of which nothing is known yet: it is opened when it is read."""
    return FORMAT.make_fragment(path, filesystem)


class UnreadableError(ValueError):
    """The bytes of a file are no table of its schema; the message says why."""


def read(filesystem: pafs.FileSystem, path: str, schema: pa.Schema) -> pa.Table:
    """All rows of one file, of every account. Raises UnreadableError.

    Raises FileNotFoundError if it is gone, and OSError if the store fails: that is no flaw of the file.
    """
    with filesystem.open_input_stream(path) as stream:
        return decode(stream.read(), schema)


def decode(body: bytes, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of a file that is `body`, in `columns` (None: in all). Raises UnreadableError."""
    try:
        return FORMAT.make_fragment(pa.py_buffer(body)).to_table(schema=schema, columns=columns and list(columns))
    except (pa.ArrowException, OSError, NotImplementedError) as error:
        raise UnreadableError(str(error)) from error


def holds(filesystem: pafs.FileSystem, path: str, schema: pa.Schema, wanted: pc.Expression) -> bool:
    """Whether a file has any such row; of most, its footer tells. Raises as `read`."""
    try:
        fragment = FORMAT.make_fragment(path, filesystem)
        return ds.Scanner.from_fragment(fragment, schema=schema, filter=wanted).count_rows() > 0
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, NotImplementedError) as error:
        raise UnreadableError(str(error)) from error
