"""What Dask calls of a preload. All else is imported in here, where a failure keeps no scheduler from starting."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client
    from distributed.core import Server


async def dask_setup(server: Server | Client) -> None:
    """With a scheduler: watch it; with a client: register its cluster. Never raises."""
    try:
        from daskscope import registration
    except Exception as error:  # noqa: BLE001  # an environment where something is missing or broken
        with contextlib.suppress(Exception):  # a log handler of the user's may raise
            logger = logging.getLogger("distributed.daskscope")
            logger.warning("daskscope is off: %s: %s", type(error).__name__, error)
    else:
        await registration.dask_setup(server)
