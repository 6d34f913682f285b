"""Seals the days that are over; started by the scheduler."""

from __future__ import annotations

from typing import Any

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.compact import Compactor

house.start_logging()


def handler(_event: dict[str, Any], _context: object) -> None:
    """An EventBridge Scheduler event; what it says does not matter, only that it came."""
    world = house.adapters()
    Compactor(world.objects, world.seals, world.clock, world.lake_root).run()
