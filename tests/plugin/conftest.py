"""No test of the plugin reads or writes anything of the user's own."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask.config
import pytest
import pytest_asyncio

import daskscope
from tests.plugin.api_server import ApiServer
from tests.plugin.posting import PROXY_NAMES
from tests.plugin.rig import Cluster, running


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder of this test; nothing else is configured, and daskscope is imported, as for every user."""
    assert daskscope.__version__
    for name in list(os.environ):
        if name.startswith("DASK_DASKSCOPE"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(dask.config, "PATH", str(tmp_path / "dask"))
    folder = tmp_path / "data"
    with dask.config.set({"daskscope": {"data": str(folder)}}):
        yield folder


@pytest.fixture
def serve(request: pytest.FixtureRequest, data: Path) -> Iterator[Callable[..., ApiServer]]:
    """Starts a server that answers as the file's `api` does, unless told, and makes it the configured one."""
    with ExitStack() as stack:

        def start(answer: Any = None, **settings: Any) -> ApiServer:
            server = stack.enter_context(ApiServer(answer or request.module.api).running())
            configured = {"server": server.url, "token": "secret-1", "data": str(data), **settings}
            stack.enter_context(dask.config.set({"daskscope": configured}))
            return server

        yield start


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A scheduler with one worker of one thread, and its client."""
    async with running() as started:
        yield started


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXY_NAMES, "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
