"""The newest catalog of an account, and the time at which it was made."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from daskscope_lambdas.ports import Clock, Missing

COLUMNS = ("account", "cluster", "cluster_id", "last_received_at", "row")
"""Of the catalog: what the registry's rows are made of, and found by."""
LOOKED_S = 1.0
"""For so long nobody looks whether there is a newer one."""
FRESH_S = 1800.0
"""`compact` makes one each quarter of an hour: where that is twice past, none of it runs."""


class Found(Protocol):
    """`as_of`: epoch seconds before anybody was asked for what is in `rows`."""

    @property
    def as_of(self) -> float: ...
    @property
    def rows(self) -> pa.Table: ...


class NewestCatalog:
    """`newest` gives COLUMNS of the catalog that counts, None if there is none; asked again after LOOKED_S.

    `where`: what it is called in errors.
    """

    def __init__(
        self, newest: Callable[[], Found | None], where: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._newest, self._where, self._monotonic = newest, where, monotonic
        self._kept: tuple[float, Found] | None = None

    def found(self) -> Found:
        """The same object as long as it is the same catalog. Raises StoreError, Missing if there is none."""
        now = self._monotonic()
        if self._kept is None or now - self._kept[0] >= LOOKED_S:
            self._kept = now, self._look(self._kept[1] if self._kept else None)
        return self._kept[1]

    def _look(self, known: Found | None) -> Found:
        found = self._newest()
        if found is None:
            raise Missing(
                f"{self._where}: there is no catalog of clusters that can be read, which lists come from. A server "
                "makes one within a minute of the first message (a quarter of an hour in AWS) and when it stops."
            )
        return known if known and known.as_of == found.as_of else found


class CatalogClock:
    """Stands where the catalog was made, for whoever reported then may do so still: nobody is lost whom only this
    reader did not hear. Where no catalog was made for FRESH_S, or ever, nobody hears anybody, and time goes on."""

    def __init__(self, catalog: NewestCatalog, clock: Clock) -> None:
        self._catalog, self._clock = catalog, clock

    def now(self) -> float:
        now = self._clock.now()
        try:
            as_of = self._catalog.found().as_of
        except Missing:
            return now
        return min(now, as_of) if now - as_of <= FRESH_S else now
