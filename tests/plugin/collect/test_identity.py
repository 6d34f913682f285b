"""Who a cluster is."""

import os
import platform
import pwd
import socket
import sys
from importlib import metadata

import pytest

from daskscope import __version__
from daskscope.collect import identity
from daskscope.collect.identity import cluster_uuid, read_identity, system_user
from daskscope.collect.kind import kind_here
from tests.plugin.rig import Cluster, settings


def test_the_uuid_is_the_scheduler_s_id_without_its_dashes() -> None:
    assert cluster_uuid("Scheduler-0A1B2C3D-0000-4000-8000-1234567890ab") == "0a1b2c3d0000400080001234567890ab"


@pytest.mark.asyncio
async def test_a_scheduler_s_identity(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = cluster.scheduler
    found = read_identity(scheduler, settings(tags={"team": "weather"}))
    assert found.scheduler_id == scheduler.id
    assert len(cluster_uuid(scheduler.id)) == 32
    assert found.name == f"{socket.gethostname()}-{cluster_uuid(scheduler.id)[:8]}"
    assert (found.host, found.address) == (socket.gethostname(), scheduler.address)
    assert found.started_at_ms == round(scheduler.time_started * 1e3)
    assert found.python == platform.python_version()
    assert found.versions["distributed"] == metadata.version("distributed")
    assert found.versions.keys() <= set(identity.PACKAGES)
    assert found.tags == {"team": "weather"}
    assert found.plugin_version == __version__
    assert found.dashboard == f"http://127.0.0.1:{scheduler.http_server.port}/status"
    assert (found.kind, found.python_path, found.remote_close) == (kind_here(scheduler), sys.executable, True)
    with monkeypatch.context() as patched:
        patched.setattr(scheduler, "services", {})
        assert read_identity(scheduler, settings()).dashboard is None


@pytest.mark.asyncio
async def test_a_name_that_was_given_wins(cluster: Cluster) -> None:
    assert read_identity(cluster.scheduler, settings(name="nightly")).name == "nightly"


@pytest.mark.asyncio
async def test_a_kind_that_the_client_told_wins(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert read_identity(cluster.scheduler, settings()).kind == "SLURM"
    assert read_identity(cluster.scheduler, settings(kind="SSHCluster")).kind == "SSHCluster"


@pytest.mark.asyncio
async def test_a_cluster_that_may_not_be_closed_from_afar_says_so(cluster: Cluster) -> None:
    assert read_identity(cluster.scheduler, settings(remote_close=False)).remote_close is False


@pytest.mark.asyncio
async def test_an_interpreter_without_a_path(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity.sys, "executable", None)
    assert read_identity(cluster.scheduler, settings()).python_path == ""


@pytest.mark.asyncio
async def test_the_user_is_asked_for_off_the_event_loop(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's list may stand on a server that does not answer."""

    def never() -> str:
        raise AssertionError

    monkeypatch.setattr(identity, "system_user", never)
    assert read_identity(cluster.scheduler, settings()).user == ""


def test_a_user_without_a_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity.os, "getuid", lambda: 4_294_967_294 - 7)  # of nobody: the real list is asked
    assert system_user() == "unknown"


def test_a_user_is_not_who_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert system_user() == pwd.getpwuid(os.getuid()).pw_name


def test_where_the_system_has_no_such_list_python_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "pwd", None)
    monkeypatch.setenv("LOGNAME", "ann")
    assert system_user() == "ann"


@pytest.mark.asyncio
async def test_versions_are_read_without_importing_anything(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("numpy", "pandas", "pyarrow"):
        monkeypatch.setitem(identity.sys.modules, package, None)  # an import would raise
    versions = read_identity(cluster.scheduler, settings()).versions
    assert versions["numpy"]
    assert versions["pyarrow"]
