"""A real `daskscope serve` in a process of its own, with folders of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import httpx

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.wiring import Adapters, connect


class Serving:
    """Starts on entering and is stopped on leaving. `shared` is the user's data folder, `data` the server's."""

    def __init__(self, folder: Path, *options: str, data: Path | None = None) -> None:
        self.shared = folder / "xdg" / "daskscope"
        self.data = data or folder / "data"
        self._log = folder / "serve.log"
        self._options = options

    def __enter__(self) -> Serving:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self.process = self.start(stderr=log)
        assert self.process.stdout
        first = self.process.stdout.readline().decode()
        assert first.startswith("daskscope is at "), first + self.log
        url = httpx.URL(first.split()[-1])
        # Where others ask, it says its name, which may be known to nobody here.
        self.url = str(url.copy_with(host="127.0.0.1") if "0.0.0.0" in self._options else url)
        self.http = httpx.Client(base_url=self.url, trust_env=False, timeout=30)
        self.token = (self.data / "token").read_text().strip()
        self.ingest_token = (self.data / "ingest-token").read_text().strip()
        self.bearer = {"Authorization": f"Bearer {self.token}"}
        return self

    def start(self, stderr: IO[bytes] | int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "daskscope.cli", "serve", "--port", "0", "--data", str(self.data), *self._options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, "XDG_DATA_HOME": str(self.shared.parent), "PYTHONUNBUFFERED": "1"},
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Comes back when it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(20)
        if self.process.stdout:
            self.process.stdout.close()
        self.http.close()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def api(self, path: str) -> dict[str, Any]:
        return self.http.get(f"/api/v1/{path}", headers=self.bearer).raise_for_status().json()

    @contextmanager
    def registry(self) -> Generator[Adapters]:
        """Its adapters in this process, as whoever has its data folder."""
        world = connect(LocalEnv(data=str(self.data)))
        try:
            yield world
        finally:
            world.close()

    def rendezvous(self) -> Path:
        return self.shared / "servers" / f"{httpx.URL(self.url).port}.json"

    def met(self) -> dict[str, Any]:
        return json.loads(self.rendezvous().read_text())


def children(pid: int) -> list[int]:
    """Processes that `pid` started and that live."""
    found = list[int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(true: Callable[[], object], limit_s: float = 20) -> None:
    """Ask again and again; fails after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "waited too long"
        os.sched_yield()
