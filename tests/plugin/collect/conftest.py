from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from daskscope.collect import agents as module
from tests.plugin.rig import Cluster, running


@pytest.fixture
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents look for workers when a test says so."""
    monkeypatch.setattr(module, "LOOK_S", 3600.0)


@pytest_asyncio.fixture
async def empty() -> AsyncIterator[Cluster]:
    """A scheduler and a client, and no worker yet."""
    async with running(0) as started:
        yield started
