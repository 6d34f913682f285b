"""Footers of sealed files, kept by the process: a sealed file never changes, so it is the same one as long as its path,
size and time are. They tell without reading which row groups may hold a cluster, whose all rows are, and when the last
of them was received.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from daskscope_query.kept import Kept

_KEPT_BYTES = 24 << 20
"""Of footers as they stand in the files; in memory they take some times that."""
_AT_ONCE = 16
"""Footers read together: in a bucket each takes its time."""


@dataclass(frozen=True, slots=True)
class Footer:
    """`account`: whose all rows are; `received_until`: when the last was. None where the statistics do not tell."""

    fragment: ds.ParquetFileFragment
    account: str | None
    received_until: datetime | None
    size_bytes: int
    unpacked_bytes: int
    """Of its rows, about, with texts by dictionary."""


_kept = Kept[Footer](_KEPT_BYTES)


def forget() -> None:
    """Read all of them anew when they are asked for again."""
    _kept.clear()


def footers(format: ds.ParquetFileFormat, filesystem: pafs.FileSystem, files: Sequence[pafs.FileInfo]) -> list[Footer]:
    """Of these sealed files, as listed just now. Raises FileNotFoundError, pa.ArrowInvalid, OSError."""
    # By process: a forked child must not use what hangs on its parent's threads.
    keys = [(os.getpid(), filesystem.type_name, *identity(file)) for file in files]
    found = [_kept.get(key) for key in keys]
    missing = [place for place, footer in enumerate(found) if footer is None]

    def load(place: int) -> Footer:
        return _read(format, filesystem, files[place])

    if len(missing) < 2:
        loaded = [*map(load, missing)]
    else:
        with ThreadPoolExecutor(min(_AT_ONCE, len(missing))) as pool:
            loaded = [*pool.map(load, missing)]
    for place, footer in zip(missing, loaded, strict=True):
        found[place] = footer
        _kept.put(keys[place], footer, footer.size_bytes)
    return [footer for footer in found if footer]


def identity(file: pafs.FileInfo) -> tuple[str, int, int]:
    """What is the same as long as a sealed file is."""
    return file.path, file.size, file.mtime_ns


def _read(format: ds.ParquetFileFormat, filesystem: pafs.FileSystem, file: pafs.FileInfo) -> Footer:
    fragment = format.make_fragment(file.path, filesystem, file_size=file.size)
    fragment.ensure_complete_metadata()
    metadata = fragment.metadata
    accounts, received = _statistics(metadata, "account"), _statistics(metadata, "received_at")
    account = until = None
    if accounts and {(each.min, each.max) for each in accounts} == {(accounts[0].min, accounts[0].min)}:
        account = accounts[0].min
    if received:
        until = max(each.max for each in received)
    return Footer(fragment, account, until, metadata.serialized_size, _unpacked_bytes(metadata))


def _unpacked_bytes(metadata: pq.FileMetaData) -> int:
    columns = [metadata.schema.column(n) for n in range(metadata.num_columns)]
    row_bytes = sum(8 if column.physical_type in ("INT64", "DOUBLE") else 4 for column in columns)
    texts_bytes = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    return metadata.num_rows * row_bytes + texts_bytes


def _statistics(metadata: pq.FileMetaData, column: str) -> list[pq.Statistics]:
    """Of each row group with rows; empty if one lacks them, or has nulls."""
    names = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
    if column not in names:
        return []
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    chunks = [group.column(names.index(column)) for group in groups if group.num_rows]
    found = [chunk.statistics for chunk in chunks]
    told = [each for each in found if each is not None and each.has_min_max and each.null_count == 0]
    return told if len(told) == len(found) else []
