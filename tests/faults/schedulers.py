"""Real schedulers in processes of their own, as `dask scheduler --preload daskscope` starts them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

LIMIT_S = 60.0


@contextlib.contextmanager
def scheduler(
    folder: Path, url: str, token: str, interval: str, spool: Path | None
) -> Generator[subprocess.Popen[bytes]]:
    """One that reports to `url`; it ends when this does, if it has not."""
    told = {
        "SERVER": url,
        "TOKEN": token,
        "DATA": str(folder / "data"),
        "ANALYTICS__INTERVAL": interval,
        "ANALYTICS__HARDWARE__TRANSMIT": "False",
        **({"SPOOL": str(spool)} if spool else {}),
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    environment = clean | {f"DASK_DASKSCOPE__{name}": value for name, value in told.items()}
    command = [
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--dashboard-address",
        "127.0.0.1:0",
    ]
    with (folder / "scheduler.log").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, *command, "--preload", "daskscope"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment | {"AWS_EC2_METADATA_DISABLED": "true"},
        )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        try:
            child.wait(LIMIT_S)
        finally:
            child.kill()
            child.wait()


def until(true: Callable[[], object], child: subprocess.Popen[bytes], folder: Path) -> None:
    """Ask again and again while the scheduler lives; fails with its log."""
    give_up = time.monotonic() + LIMIT_S
    while not true():
        goes_on = child.poll() is None and time.monotonic() < give_up
        assert goes_on, (folder / "scheduler.log").read_text()
        os.sched_yield()
