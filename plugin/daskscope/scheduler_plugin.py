"""The way into a scheduler: by a client's `register()`, by `--preload daskscope`, or by Dask's configuration.

The plugin exists only to be started. Anything that stays in `scheduler.plugins` is called at every transition, which
costs 2.5 % of a scheduler's instructions even if it does nothing; so it starts the watch and takes itself out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributed.diagnostics.plugin import SchedulerPlugin

from daskscope.agent.texts import told
from daskscope.attempts import warn
from daskscope.settings import Settings
from daskscope.watch import install

if TYPE_CHECKING:
    from distributed import Scheduler


class Starter(SchedulerPlugin):
    """Starts the watch on the scheduler that it is sent to. Safe to register any number of times."""

    name = "daskscope-starter"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def start(self, scheduler: Scheduler) -> None:
        """Never raises: an exception here would end a scheduler that is starting."""
        start_watch(scheduler, self._settings)
        # Dask adds a plugin that a client registered only after its start() has returned, so it can only be
        # taken out afterwards.
        scheduler.loop.add_callback(self._leave, scheduler)

    def _leave(self, scheduler: Scheduler) -> None:
        for name, plugin in list(scheduler.plugins.items()):
            if plugin is self:
                del scheduler.plugins[name]


def start_watch(scheduler: Scheduler, settings: Settings) -> None:
    """Watch a scheduler; if that fails, say so once and leave it in peace."""
    try:
        install(scheduler, settings)
    except Exception as error:  # noqa: BLE001  # host first
        warn("daskscope is off on this scheduler: %s", told(error))
