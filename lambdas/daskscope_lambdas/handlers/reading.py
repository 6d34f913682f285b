"""What the reading functions share: the way from a request to its bearer, its cluster and what is kept of it."""

from __future__ import annotations

from datetime import datetime

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.catalog import Catalog
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.computations import Computations
from daskscope_lambdas.service.costs import Costs
from daskscope_lambdas.service.depth import DepthReader
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.live_catalog import LiveCatalog
from daskscope_lambdas.service.observed import Observed
from daskscope_lambdas.service.price_store import PriceReader
from daskscope_lambdas.service.profiles import Profiles
from daskscope_lambdas.service.queries import Queries
from daskscope_lambdas.service.same_code import SameCode
from daskscope_lambdas.service.sides import Sides
from daskscope_lambdas.service.team import Team
from daskscope_lambdas.service.timelines import Timelines
from daskscope_lambdas.service.tokens import Principal, require


@house.once
def live_catalog() -> LiveCatalog:
    return LiveCatalog.over(house.adapters(), prices().of)


@house.once
def catalog() -> Catalog:
    return Catalog(house.adapters().clusters, house.adapters().clock, live_catalog().table)


@house.once
def asker() -> Asker:
    return Asker(house.adapters().lake_root, house.adapters().seals, house.adapters().deletions)


@house.once
def codes() -> CodeKeeper:
    return CodeKeeper(house.adapters().objects, house.adapters().vault)


@house.once
def prices() -> PriceReader:
    return PriceReader(house.adapters().objects, house.adapters().clock)


def costs(until: datetime | None = None) -> Costs:
    """As `queries`."""
    return Costs(asker().at(until), prices(), house.adapters().clock, live_catalog().table)


def queries(until: datetime | None = None) -> Queries:
    """Of what the server had received by then; None: of all."""
    return Queries(asker().at(until), house.adapters().clock)


def observed(until: datetime | None = None) -> Observed:
    """As `queries`."""
    return Observed(asker().at(until), house.adapters().clock)


def team(until: datetime | None = None) -> Team:
    """As `queries`."""
    return Team(asker().at(until), house.adapters().clock, live_catalog().table)


def same_code(until: datetime | None = None) -> SameCode:
    """As `queries`."""
    return SameCode(asker().at(until), house.adapters().clock, codes(), live_catalog().table)


def sides() -> Sides:
    return Sides(asker(), house.adapters().clock, computations(), profiles(), costs())


def depth(until: datetime | None = None) -> DepthReader:
    """As `queries`."""
    return DepthReader(queries(until), computations(until))


def computations(until: datetime | None = None) -> Computations:
    """As `queries`."""
    return Computations(asker().at(until), house.adapters().clock, codes(), live_catalog().table)


def profiles(until: datetime | None = None) -> Profiles:
    """As `queries`."""
    return Profiles(asker().at(until), house.adapters().clock, live_catalog().table)


def timelines(until: datetime | None = None) -> Timelines:
    """As `queries`."""
    return Timelines(asker().at(until))


def reader(authorization: str | None, account: str | None = None) -> Principal:
    """Who reads, in that account or their token's own. Raises NotLoggedIn, PermissionDenied, NotFound."""
    return _reads(house.gate().principal(authorization, account))


def visitor(session: str, account: str | None = None) -> Principal:
    """As `reader`, for the session in a browser's cookie."""
    return _reads(house.gate().session(session, account))


def _reads(principal: Principal) -> Principal:
    require(principal, "read")
    return principal
