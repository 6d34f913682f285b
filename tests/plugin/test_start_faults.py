"""Whatever is wrong with settings, server or machine: the scheduler starts, one line says so, work goes on."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client, LocalCluster

from daskscope import message_file
from daskscope.discovery import rendezvous
from daskscope.room import Room
from daskscope.scheduler_plugin import Starter, start_watch
from daskscope.watch import EXTENSION, Watch
from tests.plugin.ingest_server import Server, answers, talking
from tests.plugin.rig import Cluster, inc, quiet_scheduler, running, settings, until

pytestmark = pytest.mark.asyncio

DEAD = "http://127.0.0.1:1"
LOCAL: dict[str, Any] = {
    "processes": False, "n_workers": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "protocol": "tcp",
}  # fmt: skip


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What daskscope says from WARNING on, but for the end: that what could not be delivered is lost."""
    said = [r.getMessage() for r in caplog.records if r.name.endswith("daskscope") and r.levelno >= logging.WARNING]
    return [line for line in said if "could not be delivered before the scheduler closed" not in line]


async def begun(tries: int = 1) -> bool:
    """A cluster that is told to preload daskscope does its work; whether it is watched."""
    with dask.config.set({"distributed.scheduler.preload": ["daskscope"]}):
        async with running() as cluster:
            assert await cluster.client.gather(cluster.client.map(inc, range(3))) == [1, 2, 3]
            watching: Watch | None = cluster.scheduler.extensions.get(EXTENSION)
            if watching is not None:
                sender = watching.sender
                await until(lambda: sender.n_failed_tries >= tries or sender.n_delivered or sender.lost)
            assert await cluster.client.submit(inc, 7) == 8
            return watching is not None


@pytest.mark.parametrize(
    "configured",
    [
        3, "disabled", ["a"], {"server": "localhost"}, {"server": "ftp://here"}, {"server": 7},
        {"server": "http://here:port"}, {"server": "http://[::1"}, {"token": "two words"}, {"tags": ["a"]}, {"data": 7},
        {"analytics": {"interval": "soon"}}, {"analytics": {"interval": -1}}, {"analytics": {"disabled": "perhaps"}},
        {"analytics": {"events": {"allow": "all"}}}, {"analytics": {"logs": {"level": "loud"}}},
        {"analytics": {"scrub": {"patterns": ["("]}}}, {"analytics": {"budget": 0}},
    ],
    ids=str,
)  # fmt: skip
async def test_what_cannot_be_used_is_one_line(configured: Any, caplog: pytest.LogCaptureFixture, data: Path) -> None:
    told = {"data": str(data)} | configured if isinstance(configured, dict) else configured
    with dask.config.set({"daskscope": told, "distributed.scheduler.preload": ["daskscope"]}):
        async with quiet_scheduler() as scheduler:
            assert EXTENSION not in scheduler.extensions
        assert scheduler.status.name == "closed"
    (line,) = lines(caplog)
    assert line.startswith("daskscope is off: SettingsError: daskscope")


@pytest.mark.parametrize("what", ["refused", "unknown host", "500", "401", "no TLS", "garbage", "closes at once"])
async def test_a_server_that_does_not_serve_is_one_line(
    what: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve: Any = socket.getaddrinfo

    def unknown(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host == "nowhere.invalid":
            raise socket.gaierror(-2, "Name or service not known")
        return resolve(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for_all = Server(answers(int(what) if what.isdigit() else 200))
    garbage = talking(lambda connection, _: connection.sendall(b"\x16\x03\x01" * 100))
    closes = talking(lambda connection, _: connection.close())
    with for_all.running() as url, garbage as speaks, closes as silent:
        urls = {
            "refused": DEAD, "unknown host": "http://nowhere.invalid:9", "500": url, "401": url,
            "no TLS": url.replace("http", "https"), "garbage": f"http://{speaks}", "closes at once": f"http://{silent}",
        }  # fmt: skip
        with dask.config.set({"daskscope.server": urls[what], "daskscope.token": "dst_x"}):
            assert await begun()
    assert len(lines(caplog)) == 1
    assert "not reported for now, the workload goes on" in lines(caplog)[0]


@pytest.mark.parametrize("what", ["a file", "below a file", "full", "over its size"])
async def test_a_spool_that_cannot_be_written_is_one_line(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.write_text("in the way")
    folders = {"a file": place, "below a file": place / "in" / "it"}
    if what == "full":
        really = os.open

        def full(path: Any, *args: Any, **kwargs: Any) -> int:
            if str(path).endswith(".tmp"):
                raise OSError(errno.ENOSPC, "No space left on device")
            return really(path, *args, **kwargs)

        monkeypatch.setattr(message_file.os, "open", full)
    if what == "over its size":
        monkeypatch.setattr(Room, "_count", lambda self: 1 << 60)
    with dask.config.set({"daskscope.data": str(folders.get(what, tmp_path / "data"))}):
        assert await begun()
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize("what", ["for all to read", "no JSON", "of elsewhere", "a folder"])
async def test_a_file_of_a_server_that_is_not_to_be_believed_is_one_line(
    what: str, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = rendezvous(data, 8790)
    file.parent.mkdir(parents=True)
    if what == "a folder":
        file.mkdir()
    else:
        file.touch(0o644 if what == "for all to read" else 0o600)
        there = "http://192.0.2.7:8790" if what == "of elsewhere" else "http://127.0.0.1:8790"
        told = {"url": there, "token": "t", "ingest_token": "t", "pid": os.getpid()}
        file.write_text("{" if what == "no JSON" else json.dumps(told))
    assert await begun(), "it keeps a spool"
    assert len(lines(caplog)) == 1


class Odd(dict[Any, Any]):
    def __setitem__(self, key: Any, value: Any) -> None:
        if key == EXTENSION:
            raise TypeError("nobody comes in here")
        super().__setitem__(key, value)


def break_nothing_but(scheduler: Any, what: str) -> None:
    if what == "no spans":
        del scheduler.extensions["spans"]
    elif what == "other spans":
        scheduler.extensions["spans"].spans = ["of", "another", "kind"]
    elif what == "extensions of their own":
        scheduler.extensions = Odd(scheduler.extensions)
    elif what == "a list of failures":
        scheduler.erred_tasks = list(scheduler.erred_tasks)
    elif what == "computations that say nothing":
        scheduler.computations = object()
    elif what == "no id":
        scheduler.id = None
    elif what == "no threads":
        scheduler.total_nthreads_history = None
    elif what == "no stream handlers":
        scheduler.stream_handlers = None


@pytest.mark.parametrize(
    ("what", "watched"),
    [
        ("no spans", True), ("other spans", True), ("extensions of their own", False), ("a list of failures", False),
        ("computations that say nothing", False), ("no id", False), ("no threads", False),
    ],
)  # fmt: skip
async def test_a_scheduler_that_is_another_than_we_know_is_left_as_it_was(
    what: str, watched: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with quiet_scheduler() as scheduler:
        there: Any = scheduler
        before = {
            name: getattr(there, name) for name in ("id", "total_nthreads_history", "stream_handlers", "extensions")
        }
        break_nothing_but(there, what)
        broken = {name: getattr(there, name) for name in ("erred_tasks", "computations")}
        handlers = dict(there.handlers)
        start_watch(scheduler, settings(server=DEAD, tasks=True))
        assert (EXTENSION in there.extensions) is watched
        if not watched:
            assert there.handlers == handlers
            for name, memory in broken.items():
                assert type(getattr(there, name)) is type(memory), "nothing of ours stays"
            assert len(lines(caplog)) == 1
        for name, value in before.items():
            setattr(there, name, value)
        if not isinstance(there.erred_tasks, deque):
            there.erred_tasks = deque()
    assert scheduler.status.name == "closed"


async def test_no_thread_to_be_had_is_one_line_and_leaves_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    scheduler: Any = cluster.scheduler
    before = dict(scheduler.handlers), dict(scheduler.stream_handlers), logging.getLogRecordFactory()
    with monkeypatch.context() as patch:
        patch.setattr("daskscope.sender.Sender.start", none_left)
        start_watch(scheduler, settings(server=DEAD, tasks=True))
    assert (dict(scheduler.handlers), dict(scheduler.stream_handlers), logging.getLogRecordFactory()) == before
    assert EXTENSION not in scheduler.extensions
    assert type(scheduler.erred_tasks) is type(scheduler.computations) is deque
    assert lines(caplog) == ["daskscope is off on this scheduler: RuntimeError: can't start new thread"]
    start_watch(scheduler, settings(server=DEAD))
    assert EXTENSION in scheduler.extensions, "and it may be tried again"
    assert await cluster.client.submit(inc, 1) == 2


class FromAnotherRelease:
    """What a client ships whose daskscope has other settings."""

    def __init__(self, *left_out: str, **more: Any) -> None:
        self._left_out, self._more = left_out, more

    def __reduce__(self) -> tuple[Any, ...]:
        restore, (given,) = settings(server=DEAD, token="dst_x", interval_s=5.0).__reduce__()
        return restore, ({name: value for name, value in given.items() if name not in self._left_out} | self._more,)


async def test_settings_of_another_release_are_read_by_their_names(cluster: Cluster) -> None:
    shipped: Any = FromAnotherRelease("interval_s", "scrub", "kind", from_the_future={"a": 1}, before_that=2)
    await cluster.client.register_plugin(Starter(shipped))
    found = cluster.scheduler.extensions[EXTENSION]._settings
    assert (found.server, found.token) == (DEAD, "dst_x")
    assert (found.interval_s, found.scrub, found.kind) == (10.0, True, None), "as by default"


async def test_settings_of_another_kind_are_one_line(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    shipped: Any = FromAnotherRelease(interval_s="every now and then")
    await cluster.client.register_plugin(Starter(shipped))
    assert EXTENSION not in cluster.scheduler.extensions
    assert len(lines(caplog)) == 1
    assert await cluster.client.submit(inc, 1) == 2


async def test_a_local_cluster_that_is_configured_badly_works(caplog: pytest.LogCaptureFixture) -> None:
    def script() -> int:
        with (
            LocalCluster(**LOCAL) as made,
            Client(made) as client,
        ):
            found: int = client.submit(inc, 1).result(60)
            return found

    configured = {"distributed.scheduler.preload": ["daskscope"], "daskscope.server": "nonsense"}
    with dask.config.set(configured):
        assert await asyncio.to_thread(script) == 2
    assert len(lines(caplog)) == 1


BROKEN = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name in {names!r}:
            raise ImportError("broken on purpose: " + name)
sys.meta_path.insert(0, Broken())
"""
SCRIPT = """
import os, sys
LOCAL = {local!r}
{before}
import dask
dask.config.set({{"distributed.scheduler.preload": ["daskscope"], "daskscope.server": "http://127.0.0.1:1"}})
if "{module}" != "daskscope":
    dask.config.set({{"distributed.scheduler.preload": ["{module}"]}})
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(**LOCAL) as cluster, cluster.get_client() as client:
        assert client.submit(lambda: 7).result(60) == 7
        os.write(2, b"it works\\n")
"""


@pytest.mark.parametrize(
    ("module", "names", "before", "warns"),
    [
        ("daskscope.analytics", ["httpcore", "httpx"], "", True),
        pytest.param("daskscope", ["httpcore", "httpx"], "", True, marks=pytest.mark.long),
        pytest.param("daskscope", ["zstandard"], "", False, marks=pytest.mark.long),
        pytest.param("daskscope", [], "sys.stdout.close()", False, marks=pytest.mark.long),
        pytest.param("daskscope", [], "sys.stderr = sys.stdout = None", None, marks=pytest.mark.long),
        pytest.param("daskscope", [], "os.environ.pop('HOME', None); os.environ.pop('XDG_DATA_HOME', None)", None,
                     marks=pytest.mark.long),
    ],
    ids=["no httpx", "no httpx either", "no zstandard", "no stdout", "no standard streams", "no home"],
)  # fmt: skip
async def test_a_process_that_lacks_something_works(
    module: str, names: list[str], before: str, warns: bool | None, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN.format(names=names))
    (tmp_path / "script.py").write_text(SCRIPT.format(local=LOCAL, before=before, module=module))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert "it works" in done.stderr
    if warns is not None:
        assert ("daskscope is off" in done.stderr) is warns, done.stderr
