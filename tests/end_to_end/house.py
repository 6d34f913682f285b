"""Real processes: servers, schedulers and workers, started as a user would start them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import daskscope

INTERVAL_S = 0.5
START_S = 60
T = TypeVar("T")


def eventually(ask: Callable[[], T], good: Callable[[T], bool], within_s: float = 60) -> T:
    """Ask until the answer is good; fails with the last answer, or the last error."""
    give_up = time.monotonic() + within_s
    pause = threading.Event()
    while True:
        try:
            answer = ask()
            if good(answer) or time.monotonic() > give_up:
                assert good(answer), f"still {answer!r} after {within_s} s"
                return answer
        except daskscope.DaskscopeError:
            if time.monotonic() > give_up:
                raise
        pause.wait(0.1)


@dataclass
class Process:
    """A Python process with its output; `line` waits for a line that matches."""

    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, *self.arguments],
            env=os.environ | {"PYTHONUNBUFFERED": "1"} | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stdout
        self.output.extend(iter(self.child.stdout.readline, ""))

    def line(self, pattern: str) -> re.Match[str]:
        give_up = time.monotonic() + START_S
        pause = threading.Event()
        while time.monotonic() < give_up:
            for line in list(self.output):
                if found := re.search(pattern, line):
                    return found
            assert self.child.poll() is None, "ended early:\n" + "".join(self.output)
            pause.wait(0.05)
        raise AssertionError(f"no line like {pattern!r} in:\n" + "".join(self.output))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.child.poll() is None:
            self.child.send_signal(number)
        try:
            code = self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise
        self._reader.join(5)
        if self.child.stdout:
            self.child.stdout.close()
        return code


@dataclass
class House:
    """Where things are in one test, and what was started."""

    folder: Path
    processes: list[Process] = field(default_factory=list)

    def start(self, *arguments: str, **environment: str) -> Process:
        process = Process(list(arguments), environment)
        self.processes.append(process)
        return process

    def serve(self, port: int = 0, **environment: str) -> tuple[Process, str]:
        """`daskscope serve` with this test's data; its address."""
        options = ("--port", str(port), "--data", str(self.folder / "data"))
        server = self.start("-m", "daskscope.cli", "serve", *options, **environment)
        return server, server.line(r"(http://127\.0\.0\.1:\d+)")[1]

    def scheduler(self, *options: str, **environment: str) -> tuple[Process, str]:
        scheduler = self.start(
            "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *options, **environment
        )
        return scheduler, scheduler.line(r"Scheduler at:\s+(tcp://127\.0\.0\.1:\d+)")[1]

    def worker(self, address: str, name: str, *options: str, **environment: str) -> Process:
        return self.start(
            "-m", "dask", "worker", address, "--name", name, "--nthreads", "2", "--memory-limit", "512 MiB",
            "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(self.folder),
            *options, **environment,
        )  # fmt: skip
