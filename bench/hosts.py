"""CPU of a real scheduler process for the same work: bare, watched by daskscope, and watched by others.

Real processes: `dask scheduler`, two `dask worker`s, a client here. Variants take turns, so that whatever else the
machine does falls on all of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import operator
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from distributed import Client, performance_report

from bench.rows import Row, progress
from bench.sink import sink

PRELOAD = """
from distributed import SchedulerPlugin

class Idle(SchedulerPlugin):
    pass

def dask_setup(scheduler):
    scheduler.add_plugin(Idle(), name="bench-peer")
"""
INTERVAL_S = 1.0
"""A run takes less than the usual 10 s: at those it would tell of one message or of none."""


@dataclass(slots=True)
class Run:
    """What one variant took in one run."""

    cpu_us: float
    """Of the scheduler's process, a task."""
    n_bytes: float | None
    """That left it for whoever watches; None where nobody does, or they cannot be counted."""
    n_messages: int | None = None
    """Of daskscope while the tasks ran."""


@dataclass(slots=True)
class House:
    """A cluster of real processes for one run."""

    scheduler: psutil.Process
    client: Client
    dashboard: str | None


def hosts(tiny: bool) -> Iterator[Row]:
    """A row a variant: percent more CPU than a bare scheduler in the same round."""
    n_rounds, n_tasks = (1, 200) if tiny else (3, 8000)
    wanted = ("bare", "daskscope") if tiny else VARIANTS
    if importlib.util.find_spec("bokeh") is None:  # no dashboard without it (pip install --group bench)
        wanted = tuple(name for name in wanted if VARIANTS[name] not in (_dashboard, _viewer, _report))
    variants = {name: VARIANTS[name] for name in wanted}
    runs: dict[str, list[Run]] = {name: [] for name in variants}
    for number in range(n_rounds):
        for name, variant in variants.items():
            runs[name].append(variant(n_tasks))
            progress(f"round {number + 1} of {n_rounds}, {name}: {runs[name][-1].cpu_us:.0f} us CPU a task")
    bare = runs.pop("bare")
    for name, found in runs.items():
        more = [(run.cpu_us / without.cpu_us - 1) * 100 for run, without in zip(found, bare, strict=True)]
        counted = [run.n_bytes for run in found if run.n_bytes is not None]
        peers = {"from": min(more), "to": max(more)} if n_rounds > 1 else {}
        if counted:
            peers["bytes a run"] = statistics.median(counted)
        if messages := [run.n_messages for run in found if run.n_messages is not None]:
            peers["messages while tasks ran"] = statistics.median(messages)
        yield Row(
            name=f"hosts/{name.replace(' ', '-')}",
            value=statistics.median(more),
            unit="%",
            peers=peers,
            how="CPU of the process of `dask scheduler` over that of a bare one in the same round, median of "
            f"{n_rounds} with the least and the most beside it; {n_tasks} tiny tasks, two workers, "
            f"{statistics.median(run.cpu_us for run in bare):.0f} us a task bare."
            + (f" Messages go each {INTERVAL_S:g} s, ten times as often as is usual." if name == "daskscope" else ""),
        )


@contextmanager
def _house(*arguments: str, dashboard: bool = False, environment: dict[str, str] | None = None) -> Generator[House]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        contact = Path(folder, "scheduler.json")
        shown = ["--dashboard-address", "127.0.0.1:0"] if dashboard else ["--no-dashboard"]
        variables = os.environ | {"DASK_DASKSCOPE__DATA": folder} | (environment or {})

        def run(role: str, *more: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "dask", role, "--scheduler-file", str(contact), *more]
            process = subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL, cwd=folder)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        scheduler = run("scheduler", "--host", "127.0.0.1", "--port", "0", *shown, *arguments)
        for _ in range(2):
            run("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder)
        client = stack.enter_context(Client(scheduler_file=str(contact), timeout=60, set_as_default=True))
        client.wait_for_workers(2)
        services: dict[str, int] = client.scheduler_info()["services"]
        link = f"http://127.0.0.1:{services['dashboard']}" if dashboard else None
        yield House(psutil.Process(scheduler.pid), client, link)


def _measured(house: House, n_tasks: int) -> float:
    """Microseconds of the scheduler's CPU a task."""
    _work(house.client, 100)
    begun_s = _cpu_s(house)
    _work(house.client, n_tasks)
    return (_cpu_s(house) - begun_s) / n_tasks * 1e6


def _work(client: Client, n_tasks: int) -> None:
    for _ in range(4):
        futures = client.map(operator.index, range(n_tasks // 4), pure=False)
        client.gather(futures)
        del futures


def _cpu_s(house: House) -> float:
    times = house.scheduler.cpu_times()
    return times.user + times.system


def _bare(n_tasks: int) -> Run:
    with _house() as house:
        return Run(_measured(house, n_tasks), None)


def _daskscope(n_tasks: int) -> Run:
    with sink() as server:
        told = {
            "DASK_DASKSCOPE__SERVER": server.url,
            "DASK_DASKSCOPE__TOKEN": "bench",
            "DASK_DASKSCOPE__ANALYTICS__INTERVAL": f"{INTERVAL_S:g}s",
        }
        with _house("--preload", "daskscope", environment=told) as house:
            n_before = server.n_messages
            cpu_us = _measured(house, n_tasks)
            n_messages = server.n_messages - n_before
        return Run(cpu_us, server.n_bytes, n_messages)


def _plugin(n_tasks: int) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        preload = Path(folder, "peer.py")
        preload.write_text(PRELOAD)
        with _house("--preload", str(preload)) as house:
            return Run(_measured(house, n_tasks), None)


def _dashboard(n_tasks: int) -> Run:
    with _house(dashboard=True) as house:
        return Run(_measured(house, n_tasks), None)


def _viewer(n_tasks: int) -> Run:
    bokeh: Any = importlib.import_module("bokeh.client")
    with _house(dashboard=True) as house:
        session: Any = bokeh.pull_session(url=f"{house.dashboard}/status")

        def look() -> None:
            session.force_roundtrip()  # takes in all patches that came since

        with _every(0.1, look):
            cpu_us = _measured(house, n_tasks)
        session.close()
        return Run(cpu_us, None)


def _report(n_tasks: int) -> Run:
    with _house(dashboard=True) as house, tempfile.TemporaryDirectory() as folder:
        html = Path(folder, "report.html")
        _work(house.client, 100)
        begun_s = _cpu_s(house)
        with performance_report(str(html)):
            _work(house.client, n_tasks)
        return Run((_cpu_s(house) - begun_s) / n_tasks * 1e6, html.stat().st_size)


def _prometheus(n_tasks: int) -> Run:
    with _house(dashboard=True) as house:
        sizes: list[int] = []

        def scrape() -> None:
            with urllib.request.urlopen(f"{house.dashboard}/metrics") as response:
                sizes.append(len(response.read()))

        with _every(1.0, scrape):
            cpu_us = _measured(house, n_tasks)
        return Run(cpu_us, sum(sizes))


@contextmanager
def _every(pause_s: float, look: Callable[[], None]) -> Generator[None]:
    """`look` again and again, in a thread."""
    over = threading.Event()

    def loop() -> None:
        while not over.is_set():
            begun_s = time.monotonic()
            look()
            over.wait(max(pause_s - (time.monotonic() - begun_s), 0))

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


VARIANTS: dict[str, Callable[[int], Run]] = {
    "bare": _bare,
    "daskscope": _daskscope,
    "plugin that overrides nothing": _plugin,
    "dashboard": _dashboard,
    "dashboard with a viewer": _viewer,
    "inside performance_report": _report,
    "Prometheus each second": _prometheus,
}
