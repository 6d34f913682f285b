"""A `dask worker` in a process of its own, with or without nanny, and with or without daskscope."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from distributed import Scheduler

from tests.plugin.rig import until

LACKS_DASKSCOPE = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "daskscope":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


@contextlib.asynccontextmanager
async def worker_process(
    scheduler: Scheduler, folder: Path, *options: str, nanny: bool = False, lacks_daskscope: bool = False
) -> AsyncGenerator[subprocess.Popen[bytes]]:
    """It has come to the scheduler; it is asked to end at the end. What it prints is in `folder/output`."""
    folder.mkdir(exist_ok=True)
    if lacks_daskscope:
        (folder / "sitecustomize.py").write_text(LACKS_DASKSCOPE)
    env = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.address, "--host", "127.0.0.1",
               "--nthreads", "1", "--no-dashboard", "--memory-limit", "1 GiB", "--local-directory", str(folder),
               "--nanny" if nanny else "--no-nanny", *options]  # fmt: skip
    before = len(scheduler.workers)
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, env={**env, "PYTHONPATH": str(folder)}, cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        await until(lambda: len(scheduler.workers) > before or process.poll() is not None)
        assert process.poll() is None, (folder / "output").read_text()
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)
