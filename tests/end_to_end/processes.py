"""Processes that hold a cluster and report it to a server of the test's own, and what arrived there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from daskscope import wire
from daskscope.compression import Encoding, decompress
from tests.plugin.ingest_server import Server, answers, talking

START = """
import asyncio, logging, os, signal, sys, threading, warnings
warnings.simplefilter("ignore")
import dask
dask.config.set({"daskscope.server": sys.argv[2], "daskscope.token": "t", "daskscope.data": sys.argv[3],
                 "daskscope.analytics.interval": "0.2s", "daskscope.analytics.hardware.transmit": False})
import daskscope
from distributed import Client, LocalCluster

LOCAL = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "host": "127.0.0.1", "protocol": "tcp",
         "dashboard_address": "127.0.0.1:0"}

def begun(**changes):
    cluster = LocalCluster(**{**LOCAL, **changes})
    client = Client(cluster)
    daskscope.register(client)
    assert client.submit(int, 7).result(60) == 7
    return cluster, client
"""


@dataclass
class Place:
    """A server that is up, dead, or takes connections and never answers."""

    url: str
    server: Server | None = None
    boots: dict[str, list[wire.Message]] = field(default_factory=dict[str, list[wire.Message]])

    def heard(self) -> list[wire.Message]:
        """All messages, in the order of their arrival."""
        posts = self.server.posts if self.server else []
        return [
            wire.decode(decompress(body, cast("Encoding", headers["content-encoding"]))) for _, headers, body in posts
        ]

    def of(self, cluster: str) -> list[wire.Message]:
        return [message for message in self.heard() if message.cluster == cluster]


@contextlib.contextmanager
def up() -> Generator[Place]:
    server = Server(answers(200, {"id": 1, "url": "c/1"}))
    with server.running() as url:
        yield Place(url, server)


@contextlib.contextmanager
def dead() -> Generator[Place]:
    yield Place("http://127.0.0.1:1")


@contextlib.contextmanager
def black_hole() -> Generator[Place]:
    def swallow(_: Any, leave: threading.Event) -> None:
        leave.wait(300)

    with talking(swallow) as where:
        yield Place(f"http://{where}")


def run(folder: Path, source: str, *arguments: str, timeout_s: float = 100) -> subprocess.CompletedProcess[str]:
    """A script to its end. One that hangs is killed, with all that it started, and fails the test."""
    script = folder / "script.py"
    script.write_text(source)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    child = subprocess.Popen(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env=environment | {"AWS_EC2_METADATA_DISABLED": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        told, _ = child.communicate()
        raise AssertionError(f"it hangs; it had said:\n{told}") from None
    return subprocess.CompletedProcess(child.args, child.returncode, told)
