"""What the tests of the catalog share: clusters in the registry, and the catalog over them."""

from __future__ import annotations

from typing import Any

from daskscope_lambdas.ports import Beat, ClusterRow
from daskscope_lambdas.service.catalog import Catalog
from daskscope_lambdas.service.catalog_files import CatalogFiles
from daskscope_lambdas.service.cataloguer import Cataloguer
from daskscope_lambdas.service.live_catalog import LiveCatalog
from daskscope_lambdas.service.price_store import PriceReader
from daskscope_lambdas.wiring import Adapters, LocalAdapters
from daskscope_query import layout
from daskscope_query.tables import CATALOG

ACCOUNT = "acme"


def uuid_at(number: int) -> str:
    return f"{number:032x}"


def told(
    world: Adapters,
    number: int,
    *,
    account: str = ACCOUNT,
    started_s: float = 1000.0,
    seq: int = 0,
    phase: Any = "running",
    totals: dict[str, Any] | None = None,
    **identity: Any,
) -> ClusterRow:
    """One message of the cluster with UUID `number`, which started `started_s` ago; received now."""
    now, uuid = world.clock.now(), uuid_at(number)
    world.clusters.enrol(account, uuid, now - started_s, now)
    beat = Beat(
        boot="019ab0000000", seq=seq, received_at=now, made_at=now, next_s=10.0, phase=phase, reason=None,
        identity=identity or None, totals=totals or {}, lost={}, uptime_s=started_s,
    )  # fmt: skip
    world.clusters.beat(account, uuid, beat)
    return world.clusters.find(account, uuid)


def live(world: Adapters) -> LiveCatalog:
    """As another process would have it."""
    return LiveCatalog.over(world, PriceReader(world.objects, world.clock).of)


def catalog(world: Adapters) -> Catalog:
    return Catalog(world.clusters, world.clock, live(world).table)


def keys(world: LocalAdapters, account: str = ACCOUNT) -> list[str]:
    return list(world.objects.list(layout.catalog_prefix(account)))


def made(world: LocalAdapters, account: str = ACCOUNT) -> list[dict[str, Any]]:
    """Rows of the newest file."""
    found = CatalogFiles(world.objects).newest(account, CATALOG.schema.names)
    return found.rows.to_pylist(maps_as_pydicts="strict") if found else []


def ids(world: LocalAdapters, account: str = ACCOUNT) -> list[int]:
    return [row["cluster_id"] for row in made(world, account)]


def run(world: LocalAdapters) -> int:
    return Cataloguer(world).run()
