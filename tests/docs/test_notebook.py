"""docs/notebooks/first-look.ipynb, run from its top to its end as its reader would, over what real clusters did."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask.config
import nbformat
import pytest
from nbclient import NotebookClient

import daskscope
from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import compact, house
from daskscope_lambdas.wiring import connect
from tests.docs import cli_team
from tests.docs.reference import FOLDER
from tests.lambdas.serving import Serving, until

ROOT = FOLDER.parents[1]
NOTEBOOK = FOLDER.parent / "notebooks" / "first-look.ipynb"

pytestmark = pytest.mark.timeout(240)


@contextmanager
def told_of_a_team(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A server with the history of a small team, as the kernel's environment names it."""
    cli_team.make(folder / "data")
    with Serving(folder) as server:
        name_server(server, monkeypatch)
        yield


@contextmanager
def told_by_clusters(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The same of two clusters that told it themselves, with the catalog that it makes once a minute."""
    with Serving(folder) as server:
        name_server(server, monkeypatch)
        for name, value in {"INTERVAL": "0.5s", "PROFILE__TRANSMIT": "True", "PROFILE__INTERVAL": "1s"}.items():
            monkeypatch.setenv(f"DASK_DASKSCOPE__ANALYTICS__{name}", value)
        subprocess.run([sys.executable, "-m", "tests.docs.two_runs"], cwd=ROOT, check=True, capture_output=True)
        with dask.config.set({"daskscope": {"server": server.url, "data": str(server.shared)}}):
            until(lambda: all(is_all_here(number) for number in (1, 2)), limit_s=60)
        env = LocalEnv(data=str(server.data))
        world = connect(env, SystemClock())
        with ExitStack() as stack:
            stack.callback(world.close)
            stack.enter_context(house.entered(house.House(lambda: env, lambda: world)))
            compact.handler({}, None)
        yield


def name_server(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_DASKSCOPE__SERVER", server.url)
    monkeypatch.setenv("DASK_DASKSCOPE__DATA", str(server.shared))


def is_all_here(number: int) -> bool:
    try:
        cluster = daskscope.get_cluster(number)
    except daskscope.NotFound:
        return False
    return cluster["status"] == "stopped" and not cluster["completeness"]["waiting"]


def executed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the cells show, by their last line, with a kernel whose own files are in this folder."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        (folder / name).mkdir()
        monkeypatch.setenv(name, str(folder / name))
    notebook: Any = nbformat.read(NOTEBOOK, 4)
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = [out.text for cell in cells for out in cell.outputs if out.get("name") == "stderr"]
    assert not said
    return {
        cell.source.splitlines()[-1]: "".join(out.data.get("text/html", "") for out in cell.outputs if "data" in out)
        for cell in cells
    }


def test_it_answers_what_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with told_of_a_team(tmp_path, monkeypatch):
        pages = executed(tmp_path, monkeypatch)
    assert "nightly-etl" in pages["clusters"]
    assert "ValueError" in pages["failed"]
    assert "Did it finish?" in pages["newest"]
    assert "dollars" in pages["costs"]
    assert "<svg" in pages["profile"]
    assert "measures" in pages["compared"]
    assert (tmp_path / "profile.json").exists()


@pytest.mark.long
def test_so_it_does_over_what_real_clusters_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with told_by_clusters(tmp_path, monkeypatch):
        pages = executed(tmp_path, monkeypatch)
    assert "monday" in pages["clusters"]
    assert "could not convert string to float" in pages["failed"]
    assert "20 tasks failed" in pages["newest"]
    assert "read_amount" in next(page for line, page in pages.items() if line.startswith("seconds.assign"))
    assert "tuesday" in pages["compared"]
    assert "LocalCluster" in pages["costs"]


def test_it_is_kept_without_outputs() -> None:
    notebook: Any = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) > 10
    assert not [cell for cell in code if cell.outputs or cell.execution_count is not None]
    assert os.fspath(Path.home()) not in NOTEBOOK.read_text(encoding="utf-8")
