"""What is to be done once a day: after a day was sealed, and again until it is done."""

from __future__ import annotations

from contextlib import suppress

from daskscope_lambdas.ports import Missing, Taken
from daskscope_lambdas.service.retention import Retention
from daskscope_lambdas.service.unused import UnusedCode
from daskscope_lambdas.service.world import World
from daskscope_query import layout


class Tidier:
    def __init__(self, world: World) -> None:
        self._world = world

    def run(self) -> bool:
        """Whether there was anything to be done."""
        boundary = self._world.seals.boundary()
        if boundary is None:
            return False
        done = layout.tidied_key(boundary)
        with suppress(Missing):
            self._world.objects.get(done)
            return False
        Retention(self._world).run(boundary)
        UnusedCode(self._world).run(boundary)
        with suppress(Taken):
            self._world.objects.put_new(done, b"")
        return True
