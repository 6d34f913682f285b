"""What a scheduler waits for when the plugin starts."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.rows import Budget, Row

WAYS = {
    "register": ("from daskscope.scheduler_plugin import Starter", "await Starter(configured).start(scheduler)"),
    "preload": ("from daskscope import dask_setup", "await dask_setup(scheduler)"),
}
"""What is imported, and what the scheduler awaits."""
CHILD = """
import asyncio, json, time
from bench.fleet import Fleet

async def main():
    scheduler = (await Fleet.of(2)).scheduler
    clock, cpu = time.perf_counter(), time.process_time()
    {imports}
    imported = time.perf_counter() - clock, time.process_time() - cpu
    from daskscope import settings
    configured = settings.load()
    clock, cpu = time.perf_counter(), time.process_time()
    {start}
    started = time.perf_counter() - clock, time.process_time() - cpu
    assert "daskscope" in scheduler.extensions
    scheduler.extensions["daskscope"].teardown()
    print(json.dumps([imported, started]))

asyncio.run(main())
"""


def start(tiny: bool) -> Iterator[Row]:
    """A row a way in."""
    for way, (imports, begin) in WAYS.items():
        runs = [_run(CHILD.format(imports=imports, start=begin)) for _ in range(1 if tiny else 9)]
        (import_ms, import_cpu_ms), (start_ms, start_cpu_ms) = (
            [statistics.median(run[part][kind] * 1e3 for run in runs) for kind in (0, 1)] for part in (0, 1)
        )
        yield Row(
            name=f"start/{way}",
            value=start_ms,
            unit="ms",
            budget=Budget("at most", 50),
            peers={"of it CPU, ms": start_cpu_ms, "import before it, ms": import_ms, "of it CPU": import_cpu_ms},
            how=f"wall clock that a scheduler with 2 workers awaits, median of {len(runs)} fresh processes; what of "
            "daskscope is imported before it stands apart.",
        )


def _run(program: str) -> list[list[float]]:
    """Seconds and CPU seconds of the import, and of the start."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"DASK_DASKSCOPE__DATA": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    if child.returncode:
        raise RuntimeError(child.stderr[-2000:])
    return json.loads(child.stdout.splitlines()[-1])
