"""How much the embedded server takes in on one core, and how long an acknowledgement waits while a question runs."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from bench.envelopes import N_WORKERS, messages
from bench.rows import Row, progress
from daskscope import discovery, wire
from daskscope.compression import compress

CONNECTIONS = 4


@dataclass(frozen=True, slots=True)
class _Served:
    url: str
    token: str


def ingest(tiny: bool) -> Iterator[Row]:
    """A real `daskscope serve`, its writer running, pinned to one core; who posts has another."""
    n_clusters, n_each = (2, 5) if tiny else (20, 300)
    sent = [compress(wire.encode(message)) for message in messages(n_clusters, n_each)]
    with TemporaryDirectory() as folder, _server(Path(folder)) as server:
        begun_s = time.perf_counter()
        waits_ms = _post(server, sent)
        took_s = time.perf_counter() - begun_s
        of = f"{len(sent):,} messages of {n_clusters} clusters with {N_WORKERS} workers, {CONNECTIONS} connections"
        pinned = (
            "pinned to one core with writer and pages" if _can_pin() else "not pinned, for this machine has one core"
        )
        yield Row(
            name="ingest/posts",
            value=len(sent) / took_s,
            unit="posts a second",
            peers={"acknowledged after, ms, median": statistics.median(waits_ms), "p99": _p99(waits_ms)},
            how=f"`daskscope serve` {pinned}: {of}, each answered once it is on the disk; wall clock.",
        )
        progress("the same beside a long question")
        with _asking(server) as asked:
            calm_ms = _post(server, sent[: len(sent) // 10], connections=1, pause_s=0.0 if tiny else 0.01)
        yield Row(
            name="ingest/acknowledged-beside-a-question",
            value=statistics.median(calm_ms),
            unit="ms",
            peers={"p99": _p99(calm_ms), "questions answered meanwhile": max(asked[0], 1)},
            how=f"one post each 10 ms while the page of a cluster with {n_each} messages is asked for over and over: "
            "wall clock to the acknowledgement, median.",
        )


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def _can_pin() -> bool:
    return hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1


@contextlib.contextmanager
def _server(folder: Path) -> Generator[_Served]:
    command = [sys.executable, "-m", "daskscope.cli", "serve", "--port", "0", "--data", str(folder / "data")]
    environ = os.environ | {"DASK_DASKSCOPE__DATA": str(folder)}
    cores = sorted(os.sched_getaffinity(0)) if _can_pin() else []
    if cores:
        os.sched_setaffinity(0, cores[:1])  # what is started now inherits it
    try:
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    finally:
        if cores:
            os.sched_setaffinity(0, cores[1:])
    try:
        assert process.stdout
        url = process.stdout.readline().split()[-1]
        port = int(url.rpartition(":")[2])
        while not (file := discovery.rendezvous(folder, port)).exists():
            time.sleep(0.05)
        found = json.loads(file.read_text())
        yield _Served(found["url"], found["token"])
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout:
            process.stdout.close()
        if cores:
            os.sched_setaffinity(0, cores)


def _post(
    server: _Served, sent: Sequence[tuple[bytes, str]], connections: int = CONNECTIONS, pause_s: float = 0.0
) -> list[float]:
    """Milliseconds to each acknowledgement."""
    waits_ms: list[float] = []
    waiting = iter(list(sent))
    turn = threading.Lock()

    def one() -> None:
        with httpx.Client(timeout=60) as pool:
            while True:
                with turn:
                    body, encoding = next(waiting, (None, ""))
                if body is None:
                    return
                headers = {
                    "authorization": f"Bearer {server.token}",
                    "content-type": wire.CONTENT_TYPE,
                    "content-encoding": encoding,
                }
                begun_s = time.perf_counter()
                status = pool.post(server.url + wire.PATH, headers=headers, content=body).status_code
                waits_ms.append((time.perf_counter() - begun_s) * 1e3)
                assert status == 200, status
                time.sleep(pause_s)

    threads = [threading.Thread(target=one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(waits_ms) == len(sent)
    return waits_ms


@contextlib.contextmanager
def _asking(server: _Served) -> Generator[list[int]]:
    """Asks for the page of the first cluster, without a pause; how often it was answered."""
    asked, stop = [0], threading.Event()

    def ask() -> None:
        with httpx.Client(timeout=60) as pool:
            while not stop.is_set():
                headers = {"authorization": f"Bearer {server.token}"}
                reply = pool.get(f"{server.url}/api/v1/local/clusters/1", headers=headers)
                asked[0] += reply.status_code == 200

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield asked
    finally:
        stop.set()
        thread.join()
