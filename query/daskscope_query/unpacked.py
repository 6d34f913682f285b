"""Rows of small sealed files, unpacked and kept by the process: opening a file takes longer than its few rows do.

Texts stay dictionaries, as they are in the file: a traceback that a thousand rows have is there once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from daskscope_query import files, layout
from daskscope_query.footers import Footer, identity
from daskscope_query.kept import Kept

_KEPT_BYTES = 48 << 20
"""Of unpacked rows: what a function with a gigabyte of memory can spare."""
_SMALL_BYTES = 16 << 20
"""Of rows of all sealed files together, as their footers let one expect: more are not kept, for they would drive out
all else."""
_FEW_BYTES = 1 << 20
"""Of files of open days together: they are unpacked each time."""
_AT_ONCE = 16
"""Files read together: in a bucket each takes its time."""
_TEXT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class Rows:
    """Of one file. `day`: the sealed day, None if it is open. `boots`: clusters and boots of all; none where no columns
    tell."""

    table: pa.Table
    day: date | None
    boots: frozenset[tuple[str, str]]

    @property
    def clusters(self) -> set[str]:
        return {cluster for cluster, _ in self.boots}

    def where(self, wanted: pc.Expression | None, clusters: Sequence[str] | None) -> Rows:
        """Those that are `wanted`, which takes none but of `clusters`."""
        if clusters is not None and self.clusters.isdisjoint(clusters):
            return Rows(self.table.slice(0, 0), self.day, frozenset())
        return self if wanted is None else _rows(self.table.filter(wanted), self.day)


_kept = Kept[Rows](_KEPT_BYTES)


def forget() -> None:
    """Unpack all of them anew when they are asked for again."""
    _kept.clear()


def is_small(sealed: Sequence[Footer], fresh: Sequence[pafs.FileInfo]) -> bool:
    """Whether files of these footers, and these of open days, are fit to be unpacked for a question."""
    unpacked_bytes = sum(footer.unpacked_bytes for footer in sealed)
    return unpacked_bytes <= _SMALL_BYTES and sum(file.size for file in fresh) <= _FEW_BYTES


def sealed(filesystem: pafs.FileSystem, found: Sequence[pafs.FileInfo], schema: pa.Schema) -> list[Rows]:
    """All rows of these sealed files, as listed just now. Raises FileNotFoundError, pa.ArrowException, OSError."""
    keys = [(filesystem.type_name, *identity(file)) for file in found]
    rows = [_kept.get(key) for key in keys]
    missing = [place for place, each in enumerate(rows) if each is None]
    for place, each in zip(missing, fresh(filesystem, [found[place] for place in missing], schema), strict=True):
        rows[place] = read = _rows(each.table, layout.day_in(found[place].path))
        _kept.put(keys[place], read, read.table.get_total_buffer_size())
    return [each for each in rows if each]


def fresh(filesystem: pafs.FileSystem, found: Sequence[pafs.FileInfo], schema: pa.Schema) -> list[Rows]:
    """All rows of these files, of every account, for this once. Raises as `sealed`."""
    if not found:
        return []
    form, packed = _format(schema), _packed(schema)

    def read(file: pafs.FileInfo) -> Rows:
        with filesystem.open_input_stream(file.path) as stream:
            body = pa.py_buffer(stream.read())
        return _rows(form.make_fragment(body).to_table(schema=packed, use_threads=False), None)

    return _together(read, found)


def split(found: Sequence[Rows]) -> tuple[list[pa.Table], list[pa.Table]]:
    """Rows of which no key is there twice, and the others: those of clusters that more than one sealed day has, or an
    open one."""
    clusters = [rows.clusters for rows in found]
    days: dict[str, set[date | None]] = defaultdict(set)
    for rows, mine in zip(found, clusters, strict=True):
        for cluster in mine:
            days[cluster].add(rows.day)
    several = {cluster for cluster, on in days.items() if len(on) > 1 or None in on}
    once: list[pa.Table] = []
    other: list[pa.Table] = []
    for rows, mine in zip(found, clusters, strict=True):
        if not (both := mine & several):
            once.append(rows.table)
        elif both == mine:
            other.append(rows.table)
        else:
            is_other = pc.field("cluster").isin(pa.array(sorted(both), pa.string()))
            once.append(rows.table.filter(~is_other))
            other.append(rows.table.filter(is_other))
    return once, other


def joined(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(tables or [_packed(schema).empty_table()])


def _rows(table: pa.Table, day: date | None) -> Rows:
    if not {"cluster", "boot"} <= {*table.column_names}:
        return Rows(table, day, frozenset())
    pairs = [column.cast(pa.string()) for column in (table.column("cluster"), table.column("boot"))]
    found = pa.table(pairs, ["cluster", "boot"]).group_by(["cluster", "boot"]).aggregate([])
    told = zip(*(column.to_pylist() for column in found.columns), strict=True)
    return Rows(table, day, frozenset((cluster, boot) for cluster, boot in told if cluster is not None))


def _together(read: Callable[[pafs.FileInfo], Rows], found: Sequence[pafs.FileInfo]) -> list[Rows]:
    if len(found) < 2:
        return [*map(read, found)]
    with ThreadPoolExecutor(min(_AT_ONCE, len(found))) as pool:
        return [*pool.map(read, found)]


def _packed(schema: pa.Schema) -> pa.Schema:
    """With texts by dictionary."""
    return pa.schema([field.with_type(_TEXT) if pa.types.is_string(field.type) else field for field in schema])


def _format(schema: pa.Schema) -> ds.ParquetFileFormat:
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=texts), default_fragment_scan_options=files.SCAN
    )
