"""The demo: a server, a real scheduler, two real workers, a real workload, and the page that shows it."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import dask.config
from distributed import Client

import daskscope
from daskscope import client as api
from daskscope import settings
from daskscope.discovery import Server, find_server, rendezvous
from daskscope.errors import DaskscopeError, NotFound, ServerUnreachable
from daskscope_lambdas.children import Children

DEADLINE_S = 90
"""How long a process may take to start, and the pages to show what ran."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

Say = Callable[[str], None]

_IGNORED = "distributed.diagnostics.computations.ignore-modules"


def run(port: int, data: Path | None, *, leave: bool, say: Say) -> None:
    """See `demo_command`. Raises click.ClickException with the end of a log if a part does not come up."""
    url, interrupted = f"http://127.0.0.1:{port}", False
    with (
        # The demo's own server is meant, whatever the user has configured; posts come fast, so that nobody waits.
        dask.config.set({"daskscope.server": url, "daskscope.token": None, "daskscope.analytics.interval": "1s"}),
        dask.config.set({_IGNORED: _but_ours(dask.config.get(_IGNORED))}),
        tempfile.TemporaryDirectory(prefix="daskscope-demo-") as scratch,
        Children(Path(scratch)) as servers,
    ):
        try:
            ours = _serve(servers, port, data, say)
            with Children(Path(scratch)) as cluster:
                page = _show_cluster(cluster, Path(scratch), say)
            say(f"The page of this run: {page}")
            if ours and not leave:
                _wait(servers, say)
        except KeyboardInterrupt:
            interrupted = True
        except RuntimeError as error:
            raise click.ClickException(str(error)) from error
        except ImportError as error:
            raise click.ClickException(
                f"The demo's workload needs the package {error.name}: pip install 'daskscope[demo]'"
            ) from error
    say("Stopped.")
    if interrupted:
        raise SystemExit(INTERRUPTED)


def _but_ours(patterns: list[str]) -> list[str]:
    """Dask takes no code from modules whose names begin with `dask`; the demo's workload stands in for a user's."""
    return [r"dask(\.|$)" if pattern == "dask" else pattern for pattern in patterns]


def _serve(servers: Children, port: int, data: Path | None, say: Say) -> bool:
    """Have a server on the port; whether it had to be started."""
    folder = (data or Path(settings.load().data)).absolute()
    if _answers():
        where = Path(json.loads(rendezvous(settings.load().data, port).read_text())["data"])
        if data is not None and where != folder:
            raise RuntimeError(
                f"Port {port} has a server with the data of {where} already: stop it, or choose another --port."
            )
        say(f"Using the server that runs on port {port}, data in {where}.")
        return False
    say(f"Starting `daskscope serve` on http://127.0.0.1:{port}, data in {folder} ...")
    servers.start("server", "daskscope.cli", "serve", "--port", str(port), "--data", str(folder))
    _until("the server", _answers, servers)
    return True


def _answers() -> bool:
    server: Server | None = find_server(settings.load())
    if server is None or server.token is None:
        return False
    try:
        api.list_clusters(limit=1)
    except ServerUnreachable:
        return False
    return True


def _show_cluster(cluster: Children, scratch: Path, say: Say) -> str:
    """Start a cluster, run the workload, wait until the pages know of it, close; the page's address."""
    from daskscope_lambdas import demo_workload

    say("Starting a scheduler and two workers ...")
    file = scratch / "scheduler.json"
    common = ("--scheduler-file", str(file), "--host", "127.0.0.1")
    cluster.start("scheduler", "dask", "scheduler", *common, "--port", "0", "--dashboard-address", "127.0.0.1:0",
                  "--idle-timeout", "10 minutes")  # fmt: skip
    _until("the scheduler", file.exists, cluster)
    for name in ("worker-0", "worker-1"):
        cluster.start(name, "dask", "worker", *common, "--name", name, "--local-directory", str(scratch),
                      "--no-nanny", "--no-dashboard", "--nthreads", "2", "--memory-limit", "1 GiB",
                      "--death-timeout", "60")  # fmt: skip
    with Client(scheduler_file=str(file), set_as_default=True) as client:
        client.wait_for_workers(2, timeout=DEADLINE_S)
        daskscope.register(client, name="demo")
        say("Running:")
        failed = _unless_interrupted(lambda: demo_workload.run(client, say))
        say(f"  done; {failed} tasks failed, as they should. Waiting for the pages to show it ...")
        scheduler_id = str(client.scheduler_info()["id"])
        _until("the pages", lambda: _shown(scheduler_id, failed), cluster)
        client.shutdown()
    _until("the cluster's end", lambda: _record(scheduler_id).get("status") == "stopped", None)
    found = _record(scheduler_id)
    say(f"Cluster {found['id']}: {found['n_tasks']} tasks in {found['n_computations']} computations, "
        f"{found['n_tasks_erred']} failed.")  # fmt: skip
    return _absolute(str(found["url"]))


def _unless_interrupted(work: Callable[[], int]) -> int:
    try:
        return work()
    except KeyboardInterrupt:
        # The computation that was waited for is given up inside Dask, and asyncio would tell of that with a traceback
        # when the client closes. The process ends soon: nothing else is lost with it.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        raise


def _shown(scheduler_id: str, failed: int) -> bool:
    if _record(scheduler_id).get("n_tasks_erred") != failed:
        return False
    told = sum(row["count"] for row in api.list_exceptions(scheduler_id=scheduler_id))
    computations = api.list_computations(scheduler_id=scheduler_id)
    return told == failed and bool(computations) and all(c["status"] != "running" for c in computations)


def _record(scheduler_id: str) -> dict[str, Any]:
    try:
        return api.get_cluster(scheduler_id)
    except NotFound:
        return {}


def _absolute(url: str) -> str:
    server = settings.load().server or ""
    return url if "://" in url else f"{server}/{url.lstrip('/')}"


def _until(what: str, ready: Callable[[], bool], children: Children | None) -> None:
    """Poll until it is so. Raises RuntimeError after the deadline, or if a child ends meanwhile."""
    give_up = time.monotonic() + DEADLINE_S
    trouble: Exception | None = None
    while time.monotonic() < give_up:
        if children is not None:
            children.check()
        try:
            if ready():
                return
        except DaskscopeError as error:
            trouble = error
        time.sleep(0.25)
    words = f"Waited {DEADLINE_S} s for {what} in vain" + (f": {trouble}" if trouble else ".")
    raise RuntimeError("\n".join([words, *(children.words() if children else ())]))


def _wait(servers: Children, say: Say) -> None:
    try:
        say("The server keeps running. Ctrl-C stops it; `daskscope serve` shows the same data again.")
        while True:
            servers.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        return
