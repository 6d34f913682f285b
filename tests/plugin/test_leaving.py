"""A scheduler that closes is not held up, whatever its server does: no more than five seconds, and its process ends."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from typing import Any

import pytest

from daskscope import sender, testing, wire
from daskscope.sender import Sender
from daskscope.transport import Http
from daskscope.watch import Watch
from tests.plugin.ingest_server import request, talking
from tests.plugin.rig import Inbox, quiet_scheduler, settings

MOST_S = 5.0


class Waits:
    """What a thread would have waited, in seconds; None without end. Nobody really does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.s: list[float | None] = []
        self._me = threading.current_thread()
        kinds: tuple[tuple[Any, str], ...] = (
            (threading.Thread, "join"), (threading.Event, "wait"), (threading.Condition, "wait")
        )  # fmt: skip
        for owner, name in kinds:
            monkeypatch.setattr(owner, name, self._noted(getattr(owner, name)))

    def _noted(self, real: Any) -> Any:
        def wait(thing: Any, timeout: float | None = None) -> Any:
            if threading.current_thread() is not self._me:
                return real(thing, timeout)
            self.s.append(timeout)
            return None

        return wait


@pytest.mark.asyncio
@pytest.mark.parametrize("failed_before", [False, True])
async def test_all_that_a_teardown_waits_for_is_within_five_seconds(
    monkeypatch: pytest.MonkeyPatch, failed_before: bool
) -> None:
    """The server takes a request and never answers: the sender's thread is in the middle of it."""
    asked, over = threading.Event(), threading.Event()

    def hole(connection: socket.socket, leave: threading.Event) -> None:
        request(connection)
        asked.set()
        leave.wait(30)
        over.set()

    with talking(hole) as address:
        async with quiet_scheduler() as scheduler:
            watching = Watch(scheduler, settings(), Http(f"http://{address}", None))
            watching.start()
            watching.poll()
            assert asked.wait(20)
            watching.sender._pace.n_failures = int(failed_before)
            with monkeypatch.context() as patch:
                waits = Waits(patch)
                watching.teardown()
            (wait_s,) = waits.s
            # Half a second is for what takes no waiting: the last messages.
            assert wait_s is not None
            assert wait_s <= (1.0 if failed_before else MOST_S - 0.5)
            assert watching.sender._thread.is_alive()
            assert not over.is_set()
            assert watching.sender.lost["closing"] >= 2
    watching.sender._thread.join(20)
    assert not watching.sender._thread.is_alive(), "it ends by itself"


@contextlib.contextmanager
def names_that_hang(monkeypatch: pytest.MonkeyPatch) -> Generator[threading.Event]:
    """Looking up a name takes for ever, as with a resolver that is gone; the event says that somebody does."""
    asked, leave = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        asked.set()
        leave.wait(30)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", hang)
        yield asked
        leave.set()


def test_a_close_does_not_wait_for_a_name_that_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "CLOSE_S", 0.05)
    with names_that_hang(monkeypatch) as asked:
        leaving = Sender(Http("http://far.test", None), lambda _: None)
        leaving.start()
        leaving.put(testing.message(seq=0, deaths=[testing.death()]))
        assert asked.wait(20)
        leaving.close(sender.CLOSE_S)
        assert leaving._thread.is_alive()
        assert leaving.lost == {"closing": 1, "deaths": 1}
        assert len(caplog.records) == 1
    leaving._thread.join(20)
    assert len(caplog.records) == 1, "what fails after that is not worth a word"


def test_a_slow_server_gets_what_is_left_as_long_as_there_is_time() -> None:
    """Each answer comes only after the next message is there: none of them is lost to the close."""
    ready = threading.Semaphore(0)
    inbox = Inbox(lambda _: (ready.acquire(timeout=20), sender.Outcome("kept", ""))[1])
    leaving = Sender(inbox, lambda _: None)
    leaving.start()
    for seq in range(5):
        leaving.put(testing.message(seq=seq))
    ready.release(5)
    leaving.close()
    assert [wire.decode(body).seq for body in inbox.bodies] == [0, 1, 2, 3, 4]
    assert leaving.lost == {}


PROGRAM = """
import asyncio, os, socket, sys, threading
from distributed import Scheduler
import dask.config
from daskscope import settings
from daskscope.watch import install

server, dns_hangs = sys.argv[1], sys.argv[2] == "True"
if dns_hangs:
    resolve = socket.getaddrinfo
    forever = threading.Event().wait
    socket.getaddrinfo = lambda host, *a, **k: forever() if host == "far.test" else resolve(host, *a, **k)
dask.config.set({"daskscope.server": server})

async def main():
    async with Scheduler(dashboard=False, dashboard_address="127.0.0.1:0", port=0, host="127.0.0.1") as scheduler:
        watch = install(scheduler, settings.load())
        while not (watch.sender._buffer or watch.sender.n_failed_tries):
            await asyncio.sleep(0.01)
    print("under way" if watch.sender._thread.is_alive() else "over", watch.sender.lost["closing"])

asyncio.run(main())
"""


def _drips(connection: socket.socket, leave: threading.Event) -> None:
    request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not leave.wait(0.2):
        connection.sendall(b"x")


def _hole(connection: socket.socket, leave: threading.Event) -> None:
    leave.wait(60)


@pytest.mark.long
def test_a_process_whose_server_is_dead_slow_or_gone_ends_as_ever(tmp_path: Any) -> None:
    with talking(_hole) as hole, talking(_drips) as slow:
        servers = {"http://127.0.0.1:1": "over", f"http://{hole}": "under way", f"http://{slow}": "under way",
                   f"https://{hole}": "under way", "http://far.test": "under way"}  # fmt: skip
        env = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
        children = {
            server: subprocess.Popen(
                [sys.executable, "-c", PROGRAM, server, str("far" in server)],
                env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for server in servers
        }  # fmt: skip
        for server, child in children.items():
            out, err = child.communicate(timeout=90)
            assert child.returncode == 0, err
            assert out == f"{servers[server]} 2\n", (server, err)
            assert err.count("2 messages could not be delivered before the scheduler closed") == 1, err
            assert "Traceback" not in err
