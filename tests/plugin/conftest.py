"""No test of the plugin reads or writes anything of the user's own."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import dask.config
import pytest
import pytest_asyncio

import daskscope
from tests.plugin.rig import Cluster, running


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder of this test; nothing else is configured, and daskscope is imported, as for every user."""
    assert daskscope.__version__
    for name in list(os.environ):
        if name.startswith("DASK_DASKSCOPE"):
            monkeypatch.delenv(name)
    folder = tmp_path / "data"
    with dask.config.set({"daskscope": {"data": str(folder)}}):
        yield folder


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A scheduler with one worker of one thread, and its client."""
    async with running() as started:
        yield started
