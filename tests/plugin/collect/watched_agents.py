"""What the watch does with agents and the lines they say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from daskscope.collect import agents as module
from daskscope.collect.agents import Agents
from daskscope.collect.logs import LogReader
from tests.plugin.rig import settings, until


class Watched:
    """What the watch does with agents and lines, without the rest of it."""

    def __init__(self, scheduler: Any, **changes: Any) -> None:
        given = settings(**changes)
        self.agents = Agents(scheduler, given)
        self.logs = LogReader(scheduler, given.logs)
        self.hellos: dict[str, Mapping[str, Any]] = {}
        self.rows: list[tuple[str, str | None, str, int]] = []
        self.agents.start()
        self.logs.start()
        self.agents.look()

    def read(self) -> list[tuple[str, str | None, str, int]]:
        """All lines so far: role, worker, text, dropped."""
        self.agents.drain({"logs": self.logs.take, "hello": self.hellos.__setitem__})
        found = self.logs.read()
        self.rows += zip(found.role, found.worker, found.text, found.dropped, strict=True)
        return self.rows

    def texts(self, role: str) -> list[str]:
        return [text for its_role, _, text, _ in self.read() if its_role == role]

    def greeted(self, worker: str) -> bool:
        self.read()
        return worker in self.hellos

    def close(self) -> None:
        self.agents.close()
        self.logs.close()


async def answered(watched: Watched, worker: str) -> str:
    await until(lambda: watched.agents.status(worker) not in ("", module.ASKED))
    return watched.agents.status(worker)


def say(n: int = 1) -> Callable[[], None]:
    """A task that logs so many warnings; made here, so that it goes by value to where this file is not."""

    def task() -> None:
        for k in range(n):
            logging.getLogger("mine").warning("line %d", k)

    return task
