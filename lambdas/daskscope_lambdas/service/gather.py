"""Open days are kept readable: a millisecond a file is what a question costs, and a busy day has thousands of them.

Whenever FAN_IN files of one table and size class stand in the current day, one file of the next class replaces them.
First it is put, under a name made of theirs, then they are deleted: dying in between leaves repeats; readers drop them.
A reader that had listed one that is gone asks again. Only the day that still runs is touched, two hours before anybody
plans its sealing (see compact.py), so no plan ever names a file that goes.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import defaultdict
from contextlib import suppress

import pyarrow as pa

from daskscope_lambdas.ports import Clock, ObjectStore, Seals, Taken
from daskscope_query import files, layout
from daskscope_query.lake import Lake
from daskscope_query.tables import TABLES, Table

logger = logging.getLogger("daskscope.gather")

FAN_IN = 16
_GATHERED = re.compile(r"/gathered-(\d+)-[0-9a-f]+\.parquet$")


class Gatherer:
    """Merges small files of the current day of the lake at `lake_root`, which must be what `objects` keeps."""

    def __init__(self, objects: ObjectStore, seals: Seals, clock: Clock, lake_root: str) -> None:
        self._objects, self._seals, self._clock, self._root = objects, seals, clock, lake_root

    def run(self) -> int:
        """Returns how many files have gone. A file that cannot be read is logged as a warning, and stays."""
        today = layout.day_of(self._clock.now())
        boundary = self._seals.boundary()
        if boundary is not None and today <= boundary:
            return 0
        gone = 0
        for table in TABLES.values():
            classes: dict[int, list[str]] = defaultdict(list)
            for key in self._objects.list(layout.open_prefix(table.name, today)):
                found = _GATHERED.search(key)
                classes[int(found[1]) if found else 0].append(key)
            for size, keys in classes.items():
                for start in range(0, len(keys) - FAN_IN + 1, FAN_IN):
                    gone += self._merge(table, keys[start : start + FAN_IN], size + 1)
        return gone

    def _merge(self, table: Table, keys: list[str], size: int) -> int:
        lake = Lake(self._root, None)
        parts: dict[str, pa.Table] = {}
        for key in keys:
            try:
                parts[key] = lake.file(table.name, key)
            except files.UnreadableError as error:
                logger.warning("%s cannot be read: %s", key, error)
            except FileNotFoundError:
                logger.info("%s is gone: another run gathers too.", key)
        day = layout.day_in(keys[0])
        if len(parts) < 2 or day is None:
            return 0
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
        body = files.encode(table, pa.concat_tables(parts.values()))
        with suppress(Taken):
            self._objects.put_new(layout.open_key(table.name, day, f"gathered-{size}-{name}"), body)
        for key in parts:
            self._objects.delete(key)
        return len(parts)
