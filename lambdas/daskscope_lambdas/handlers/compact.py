"""Keeps the lake in shape: gathers small files of the current day, seals the days that are over, takes away what was
deleted or is kept no longer."""

from __future__ import annotations

from typing import Any

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.exclusions import Exclusions
from daskscope_lambdas.service.gather import Gatherer
from daskscope_lambdas.service.tidy import Tidier
from daskscope_query import engine

house.start("objects", "seals")
engine.limit_memory(house.memory_bytes())


def handler(event: dict[str, Any], context: object) -> None:
    """An EventBridge Scheduler event; what it says does not matter, only that it came."""
    world = house.adapters()
    exclusions = Exclusions(world.deletions, world.clusters)
    Gatherer(world.objects, world.seals, world.clock, world.lake_root).run()
    Compactor(world.objects, world.seals, world.clock, world.lake_root, exclusions).run()
    Deleter(world).run()
    Tidier(world).run()
