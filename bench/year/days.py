"""All rows of a day, table by table, in the order of sealed files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bench.year import happenings, processes, work
from bench.year.plan import Clusters
from bench.year.size import SEED
from daskscope_query.tables import TABLES, Table

WITHOUT = ("tasks", "audit")
"""Tables that stay empty: what is only there where a setting asks for it, and what no cluster tells."""


def rows(clusters: Clusters, day: int) -> Iterator[tuple[Table, pa.Table]]:
    """Of every table but those of WITHOUT. `clusters`: those of the day."""
    rng = np.random.default_rng([SEED, day])
    hands, done = processes.crew(clusters), work.computed(clusters, rng)
    spans, ids = work.spans(clusters, rng)
    yield TABLES["clusters"], processes.identities(clusters)
    yield TABLES["samples"], processes.samples(clusters, rng)
    yield TABLES["workers"], processes.workers(clusters, hands, rng)
    yield TABLES["members"], processes.members(clusters, hands)
    yield TABLES["deaths"], processes.deaths(clusters, hands, rng)
    yield TABLES["spans"], spans
    yield TABLES["computations"], work.computations(clusters, done, rng)
    yield TABLES["groups"], work.groups(clusters, done, ids, rng)
    yield TABLES["fine_metrics"], work.fine_metrics(clusters, ids, rng)
    yield TABLES["exceptions"], happenings.exceptions(clusters, rng)
    yield TABLES["events"], happenings.events(clusters, hands)
    yield TABLES["logs"], happenings.logs(clusters, hands, rng)
    yield TABLES["profiles"], happenings.profiles(clusters, rng)
