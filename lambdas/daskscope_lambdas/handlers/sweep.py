"""Once a minute: tells in the log which clusters fell silent or idle for long, and takes reports away that are kept no
longer."""

from __future__ import annotations

import logging
from dataclasses import asdict
from functools import cache
from typing import Any

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.report_sweep import ReportSweeper
from daskscope_lambdas.service.sweep import Sweeper

logger = logging.getLogger("daskscope.handlers")

house.start("clusters")


@cache
def _sweeper() -> Sweeper:
    return Sweeper(house.adapters().clusters, house.adapters().clock)


@cache
def _report_sweeper() -> ReportSweeper:
    return ReportSweeper(house.adapters())


def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    """An EventBridge Scheduler event; what it says does not matter, only that it came. The answer is what was seen of
    clusters.

    Reports have their turn though clusters failed; the first failure is raised at the end.
    """
    try:
        swept = asdict(_sweeper().run())
    finally:
        reports = asdict(_report_sweeper().run())
    logger.debug("Swept.", extra={**swept, "reports": reports})
    return swept
