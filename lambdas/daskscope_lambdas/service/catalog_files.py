"""The catalog's files: one an account counts, the newest; older ones are there for who was just told their names."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from daskscope_lambdas.ports import Missing, ObjectStore, Taken
from daskscope_query import files, layout
from daskscope_query.tables import CATALOG

logger = logging.getLogger("daskscope.catalog")

LINGER_S = 600.0
"""How long a file outlives the one that follows it."""
MAX_HELD_BYTES = 64 << 20
"""Of tables that a process keeps at hand: 100,000 clusters as lists need them."""


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """`as_of`: epoch seconds, before anybody was asked for its `rows`. `counts`: none is newer, readable or not."""

    as_of: float
    rows: pa.Table
    counts: bool


class CatalogFiles:
    """One per process: files never change, so it keeps what it read of the last few. Safe to use from many threads."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._held: OrderedDict[tuple[str, tuple[str, ...]], pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def accounts(self) -> set[str]:
        """Those that have a catalog."""
        return {account for key in self._objects.list(layout.CATALOG) if (account := layout.account_in(key))}

    def newest(self, account: str, columns: Sequence[str]) -> CatalogFile | None:
        """The newest file that can be read; None if there is none."""
        keys = sorted(self._keys(account), reverse=True)
        for key in keys:
            # One that went meanwhile was there a moment ago: an older one, if any, is there for some minutes more.
            with suppress(Missing, files.UnreadableError):
                return CatalogFile(layout.catalog_as_of(key), self._read(key, tuple(columns)), key == keys[0])
        return None

    def _keys(self, account: str) -> list[str]:
        return list(self._objects.list(layout.catalog_prefix(account)))

    def _read(self, key: str, columns: tuple[str, ...]) -> pa.Table:
        with self._lock:
            if (key, columns) in self._held:
                self._held.move_to_end((key, columns))
                return self._held[key, columns]
        try:
            rows = files.decode(self._objects.get(key), CATALOG.schema, columns)
        except files.UnreadableError as error:
            logger.warning("%s cannot be read, the catalog is made anew: %s", key, error)
            raise
        with self._lock:
            self._held[key, columns] = rows
            while len(self._held) > 1 and sum(held.nbytes for held in self._held.values()) > MAX_HELD_BYTES:
                self._held.popitem(last=False)
        return rows

    def put(self, account: str, as_of: float, rows: pa.Table) -> None:
        """`as_of`: epoch seconds before anybody was asked for what is in `rows`."""
        # It is superseded within minutes as a rule, so it is not pressed for long.
        body = files.encode(CATALOG, rows, for_long=False)
        with suppress(Taken):
            self._objects.put_new(layout.catalog_key(account, as_of, hashlib.sha256(body).hexdigest()[:16]), body)

    def sweep(self, account: str, now: float) -> None:
        """Take away what has been superseded for a while."""
        for key, after in pairwise(sorted(self._keys(account))):
            if layout.catalog_as_of(after) <= now - LINGER_S:
                self._objects.delete(key)

    def clear(self, account: str) -> None:
        """Take away all that there is."""
        for key in self._keys(account):
            self._objects.delete(key)
