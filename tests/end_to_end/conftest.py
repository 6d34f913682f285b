"""Both worlds for one suite: a test of `place` or `cluster` runs in each, one of `embedded` is of `daskscope serve`."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dask.config
import pytest
from distributed import Client

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.wiring import connect
from tests.end_to_end.house import INTERVAL_S, START_S, House, Process
from tests.end_to_end.places import Embedded, Place, in_stack

if TYPE_CHECKING:
    from tests.deployed import Deployed

_NUMBERS = itertools.count(1)


@contextmanager
def housed(folder: Path) -> Generator[House]:
    """A folder for everything, and the end of every process afterwards."""
    configured = {
        "daskscope.data": str(folder / "home"),
        "daskscope.analytics.interval": f"{INTERVAL_S}s",
        "distributed.comm.timeouts.connect": "10s",
    }
    made = House(folder)
    with dask.config.set(configured), pytest.MonkeyPatch.context() as patch:
        # Child processes are told the same through their environment.
        patch.setenv("DASK_DASKSCOPE__DATA", str(folder / "home"))
        patch.setenv("DASK_DASKSCOPE__ANALYTICS__INTERVAL", f"{INTERVAL_S}s")
        try:
            yield made
        finally:
            for process in reversed(made.processes):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.stop()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with housed(tmp_path) as made:
        yield made


@pytest.fixture
def embedded(house: House) -> Embedded:
    """`daskscope serve` with data of this test's own."""
    return serving(house)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """`daskscope serve` for the whole run: for tests that leave it alone and look at no cluster but their own."""
    house = House(tmp_path_factory.mktemp("served"))
    try:
        yield serving(house, DASK_DASKSCOPE__DATA=str(house.folder / "home")).elsewhere
    finally:
        for process in house.processes:
            process.stop()


@pytest.fixture
def served_cluster(house: House, served: Place) -> Iterator[Cluster]:
    with dask.config.set(served.user), running(house, served) as made:
        yield made


def serving(house: House, **environment: str) -> Embedded:
    server, url = house.serve(0, **environment)
    data = house.folder / "data"
    return Embedded(
        house=house,
        server=server,
        url=url,
        account="local",
        token=(data / "token").read_text().strip(),
        ingest_token=(data / "ingest-token").read_text().strip(),
        registry=lambda: closing(connect(LocalEnv(data=str(data)))),
    )


@pytest.fixture
def aws(deployed: Deployed) -> Iterator[Place]:
    """An account of this test's own."""
    with in_stack(deployed, f"end-to-end-{next(_NUMBERS)}") as found:
        yield found


@pytest.fixture(params=["embedded", "aws"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each world in turn, configured where the user is."""
    found: Place = request.getfixturevalue(request.param)
    with dask.config.set(found.user):
        yield found


@dataclass
class Cluster:
    """A scheduler with two workers, a client, and the place it reports to."""

    place: Place
    scheduler: Process
    address: str
    client: Client


@contextmanager
def running(house: House, place: Place) -> Generator[Cluster]:
    scheduler, address = house.scheduler()
    for name in ("alpha", "beta"):
        house.worker(address, name)
    with Client(address) as client:
        client.wait_for_workers(2, timeout=START_S)
        yield Cluster(place, scheduler, address, client)


@pytest.fixture
def cluster(house: House, place: Place) -> Iterator[Cluster]:
    with running(house, place) as made:
        yield made


@pytest.fixture
def embedded_cluster(house: House, embedded: Embedded) -> Iterator[Cluster]:
    with dask.config.set(embedded.user), running(house, embedded) as made:
        yield made


@contextmanager
def in_this_process() -> Generator[Client]:
    """A small cluster, where its processes are not what is tested."""
    with Client(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as client:  # fmt: skip
        yield client
