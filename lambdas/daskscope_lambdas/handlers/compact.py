"""Keeps the lake in shape: gathers small files of the current day, seals the days that are over, takes away what was
deleted or is kept no longer."""

from __future__ import annotations

import logging
from typing import Any

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.cataloguer import Cataloguer
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.exclusions import Exclusions
from daskscope_lambdas.service.gather import Gatherer
from daskscope_lambdas.service.tidy import Tidier
from daskscope_query import engine

logger = logging.getLogger("daskscope.compact")

house.start("objects", "seals")
engine.limit_memory(house.memory_bytes())

CATALOG_ALONE = {"only": "catalog"}
"""The event of a server that stops: it has no time for more."""


def handler(event: dict[str, Any], context: object) -> None:
    """An EventBridge Scheduler event; what it says does not matter, only that it came. Or CATALOG_ALONE.

    Each has its turn though one before it failed; the first failure is raised at the end.
    """
    world = house.adapters()
    if event == CATALOG_ALONE:
        Cataloguer(world).run()
        return
    exclusions = Exclusions(world.deletions, world.clusters)
    turns = (
        Gatherer(world.objects, world.seals, world.clock, world.lake_root).run,
        Cataloguer(world).run,
        Compactor(world.objects, world.seals, world.clock, world.lake_root, exclusions).run,
        Deleter(world).run,
        Tidier(world).run,
    )
    trouble: Exception | None = None
    for turn in turns:
        try:
            turn()
        except Exception as error:
            logger.warning("%s failed.", turn.__qualname__, exc_info=error)
            trouble = trouble or error
    if trouble:
        raise trouble
