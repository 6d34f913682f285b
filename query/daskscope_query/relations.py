"""What files of the lake hold of an account, as one relation, and what is known of it before any row is read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from daskscope_query import files, footers, layout, unpacked
from daskscope_query.kept import Kept

_newest = Kept[datetime](1024)
"""Of relations that do not change: whoever looks at a cluster asks several questions about it."""


@dataclass(frozen=True, slots=True)
class Relation:
    """`unique`: no key is there twice, for no cluster has rows of two days. `received_until`: no row was received
    later; None if only the rows tell. `identity`: two with the same have the same rows; None for what may change.
    `table`: its rows, where they are at hand, and `apart` those of which no key is there twice, and the others."""

    dataset: ds.Dataset
    unique: bool
    received_until: datetime | None
    identity: Hashable = None
    table: pa.Table | None = None
    apart: tuple[pa.Table, pa.Table] | None = None
    known_boots: frozenset[tuple[str, str]] | None = None

    @property
    def rows(self) -> ds.Dataset | pa.Table:
        """What DuckDB reads soonest."""
        return self.dataset if self.table is None else self.table

    def newest(self) -> datetime | None:
        """When the last of its rows was received; None if it has none. Reads that column. Raises what pyarrow does."""
        known = _newest.get(self.identity) if self.identity else None
        if known is not None:
            return known
        batches = self.dataset.scanner(columns=["received_at"], use_threads=False).to_batches()
        latest = [pc.call_function("max", [batch.column("received_at")]) for batch in batches if batch.num_rows]
        found = max((each.as_py() for each in latest), default=None)
        if self.identity and found is not None:
            _newest.put(self.identity, found, 1)
        return found

    def boots(self) -> set[tuple[str, str]]:
        """Clusters and boots of its rows. Reads these columns where it must. Raises what pyarrow does."""
        if self.known_boots is not None:
            return {*self.known_boots}
        found: set[tuple[str, str]] = set()
        for batch in self.dataset.scanner(columns=["cluster", "boot"], use_threads=False).to_batches():
            pairs = pa.Table.from_batches([batch]).group_by(["cluster", "boot"]).aggregate([])
            found.update(zip(pairs.column("cluster").to_pylist(), pairs.column("boot").to_pylist(), strict=True))
        return found


@dataclass(frozen=True, slots=True)
class Wanted:
    """As `files.condition` takes it. `unpacked`: rows of small files may come from what the process keeps; then texts
    are dictionaries."""

    account: str
    clusters: Sequence[str] | None = None
    until: datetime | None = None
    hidden: pc.Expression | None = None
    unpacked: bool = False


def related(
    filesystem: pafs.FileSystem,
    root: str,
    keys: Sequence[str],
    listed: Mapping[str, pafs.FileInfo],
    schema: pa.Schema,
    wanted: Wanted,
) -> Relation:
    """Files `keys` under `root`; of sealed ones that are `listed`, footers are looked at. Raises FileNotFoundError,
    pa.ArrowInvalid, OSError.
    """
    sealed = [key for key in keys if key in listed and not key.startswith(layout.OPEN)]
    known = footers.footers(files.FORMAT, filesystem, [listed[key] for key in sealed])
    if wanted.unpacked and (relation := _unpacked(filesystem, keys, listed, known, schema, wanted)):
        return relation
    account = wanted.account
    if len(sealed) == len(keys) and all(footer.account == account for footer in known):
        account = None  # They hold nobody else's: no row need be asked whose it is.
    condition = files.condition(account, wanted.clusters, wanted.until, wanted.hidden)
    parts: dict[str, ds.Fragment] = {}
    for key, footer in zip(sealed, known, strict=True):
        part = footer.fragment if wanted.clusters is None else _part(footer.fragment, wanted.clusters, schema)
        if part is not None:
            parts[key] = part
    fresh = [key for key in keys if key not in listed or key.startswith(layout.OPEN)]
    unique = not fresh and len({layout.day_in(key) for key in parts}) < 2
    until = [footer.received_until for key, footer in zip(sealed, known, strict=True) if key in parts]
    told = [each for each in until if each is not None]
    exact = account is None and wanted.until is None and wanted.hidden is None and len(told) == len(until)
    fragments = [*parts.values(), *(files.fragment(filesystem, root + key) for key in fresh)]
    dataset = files.relation(filesystem, fragments, schema, condition)
    identity = None
    if exact and not fresh and wanted.clusters is not None and len(wanted.clusters) == 1:
        identity = wanted.account, wanted.clusters[0], *(footers.identity(listed[key]) for key in parts)
    return Relation(dataset, unique, max(told, default=None) if exact else None, identity)


def _unpacked(
    filesystem: pafs.FileSystem,
    keys: Sequence[str],
    listed: Mapping[str, pafs.FileInfo],
    known: Sequence[footers.Footer],
    schema: pa.Schema,
    wanted: Wanted,
) -> Relation | None:
    """None if the files are too large for that, or not all of them were listed."""
    if not all(key in listed for key in keys):
        return None
    sealed = [listed[key] for key in keys if not key.startswith(layout.OPEN)]
    fresh = [listed[key] for key in keys if key.startswith(layout.OPEN)]
    if not unpacked.is_small(known, fresh):
        return None
    mine = files.condition(wanted.account, wanted.clusters, wanted.until, wanted.hidden)
    alone = all(footer.account == wanted.account for footer in known)
    told = [footer.received_until for footer in known if footer.received_until is not None]
    until = max(told, default=None) if len(told) == len(known) else None
    late = wanted.until is not None and (until is None or until > wanted.until)
    theirs = None if alone else wanted.account
    of_sealed = files.condition(theirs, wanted.clusters, wanted.until if late else None, wanted.hidden)
    found = [rows.where(of_sealed, wanted.clusters) for rows in unpacked.sealed(filesystem, sealed, schema)]
    found += [rows.where(mine, wanted.clusters) for rows in unpacked.fresh(filesystem, fresh, schema)]
    once, other = unpacked.split(found)
    rows = unpacked.joined([*once, *other], schema)
    return Relation(
        ds.dataset(rows),
        not other,
        until if of_sealed is None and not fresh else None,
        table=rows,
        apart=(unpacked.joined(once, schema), unpacked.joined(other, schema)) if other else None,
        known_boots=frozenset[tuple[str, str]]().union(*(rows.boots for rows in found)),
    )


def with_entries(rows: pa.Table) -> pa.Table:
    """Each map as a list of `key` and `value`; nothing is copied."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_map(field.type):
            entry = pa.struct([("key", field.type.key_type), ("value", field.type.item_type)])
            rows = rows.set_column(place, field.name, rows.column(place).cast(pa.list_(entry)))
    return rows


def _part(
    fragment: ds.ParquetFileFragment, clusters: Sequence[str], schema: pa.Schema
) -> ds.ParquetFileFragment | None:
    """The row groups that may have rows of these clusters, None if none may."""
    if "cluster" not in schema.names:
        return fragment
    if not clusters:
        return None
    low, high = pa.scalar(min(clusters)), pa.scalar(max(clusters))
    part = fragment.subset(filter=(pc.field("cluster") >= low) & (pc.field("cluster") <= high), schema=schema)
    return part if part.num_row_groups else None
