"""A lake where it lies, without a server: read with the rights of who asks, on disk or in a bucket. Nothing is changed.

place.py      where a lake is: a folder or a URI to what pyarrow opens
mapping.py    what pyarrow raises, as the ports' errors
objects.py    ObjectStore: reads
seals.py      Seals: what the lake itself tells of sealed days
catalog.py    the newest catalog of an account, and the clock that stands where it was made
clusters.py   Clusters: the catalog's rows
vaults.py     Vault: keys in a folder, in the Parameter Store, or none
nothing.py    what a lake has not: tokens, people, reports, policies, deletions, a queue
"""

from daskscope_lambdas.adapters.direct.catalog import COLUMNS, CatalogClock, NewestCatalog
from daskscope_lambdas.adapters.direct.clusters import CatalogClusters
from daskscope_lambdas.adapters.direct.mapping import refused
from daskscope_lambdas.adapters.direct.nothing import (
    NoDeadLetters,
    NoDeletions,
    NoPolicies,
    NoQueue,
    NoReportFiles,
    NoReports,
    NoTickets,
    NoUsers,
    OwnToken,
)
from daskscope_lambdas.adapters.direct.objects import LakeObjects
from daskscope_lambdas.adapters.direct.place import Place
from daskscope_lambdas.adapters.direct.seals import LakeSeals
from daskscope_lambdas.adapters.direct.vaults import SSM, key_in, vault

__all__ = [
    "COLUMNS",
    "SSM",
    "CatalogClock",
    "CatalogClusters",
    "LakeObjects",
    "LakeSeals",
    "NewestCatalog",
    "NoDeadLetters",
    "NoDeletions",
    "NoPolicies",
    "NoQueue",
    "NoReportFiles",
    "NoReports",
    "NoTickets",
    "NoUsers",
    "OwnToken",
    "Place",
    "key_in",
    "refused",
    "vault",
]
