"""`daskscope preview`: JSON on stdout, what it is on stderr; to look registers nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any

import dask.config
import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from daskscope.watch import EXTENSION
from tests.plugin.rig import Cluster, Inbox, watch


async def run(*arguments: str) -> Result:
    """In a thread: the scheduler's event loop is the test's."""
    return await asyncio.to_thread(CliRunner().invoke, cli.scope, ["preview", *arguments])


@pytest.mark.asyncio
async def test_of_a_cluster_that_does_not_report(cluster: Cluster) -> None:
    with dask.config.set({"distributed.client.preload": ["daskscope"]}):
        result = await run(cluster.scheduler.address)
    assert result.exit_code == 0, result.output
    message = json.loads(result.stdout)
    assert message["identity"]["scheduler_id"] == cluster.scheduler.id
    assert result.stdout.count("\n") > 20
    assert result.stderr.startswith("daskscope: the first message that this cluster would send")
    assert EXTENSION not in cluster.scheduler.extensions


@pytest.mark.asyncio
async def test_of_one_that_does_by_its_file_and_letter_by_letter(cluster: Cluster, tmp_path: Path) -> None:
    inbox = Inbox()
    watch(cluster.scheduler, inbox)
    await inbox.next()
    file = tmp_path / "scheduler.json"
    identity: Any = cluster.scheduler.identity()
    file.write_text(json.dumps({"address": identity["address"], "id": identity["id"]}))
    result = await run("--scheduler-file", str(file), "--raw")
    await inbox.next()
    assert result.exit_code == 0, result.output
    assert result.stdout == inbox.bodies[-1].decode() + "\n"
    assert "made now and sent as ever" in result.stderr


@pytest.mark.asyncio
@pytest.mark.parametrize("option", [(), ("--raw",)])
async def test_where_reporting_is_disabled_it_is_null(cluster: Cluster, option: tuple[str, ...]) -> None:
    with dask.config.set({"daskscope.analytics.disabled": True}):
        result = await run(cluster.scheduler.address, *option)
    assert (result.exit_code, result.stdout) == (0, "null\n")
    assert "nothing leaves this cluster" in result.stderr


@pytest.mark.asyncio
@pytest.mark.parametrize("arguments", [(), ("tcp://127.0.0.1:1", "--scheduler-file", __file__)])
async def test_one_scheduler_is_to_be_named(arguments: tuple[str, ...]) -> None:
    result = await run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "ADDRESS" in result.stderr


@pytest.mark.asyncio
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "localhost", "foo://h:1"])
async def test_no_scheduler_there_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.cli.preview.CONNECT_S", 0.2)
    result = await run(address)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1].startswith(f"Error: No Dask scheduler at {address}: ")
