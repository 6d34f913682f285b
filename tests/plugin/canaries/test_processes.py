"""Workers and nannies in processes of their own: what their agents say, and what of these processes never leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import wait

import daskscope
from daskscope.agent import NAME, hardware
from daskscope.watch import EXTENSION
from tests.plugin.agent.test_hardware import ANSWERS, metadata
from tests.plugin.canaries.capture import Capture
from tests.plugin.canaries.planted import ALWAYS, NEVER, Canaries, Rule, needs, only_may
from tests.plugin.canaries.stage import AGENTS, ALL, Overheard, Seen, configured
from tests.plugin.canaries.workload import run_cell
from tests.plugin.rig import running, until
from tests.plugin.worker_process import worker_process

pytestmark = pytest.mark.asyncio

ELSEWHERE = """
import logging
from distributed import get_worker
def seen():
    # whether our agent has met this thread in a task; where it does not look, Dask has
    worker = get_worker()
    profiler = getattr(worker.plugins.get("daskscope-agent"), "_profiler", None)
    return worker.profile_recent["count"] if profiler is None else profiler._seen.counts
def say(text):
    logging.getLogger("users").warning("here: %s", text)
def agents(dask_worker):
    return sorted({name for name in {**vars(dask_worker), **dask_worker.plugins} if "daskscope" in name})
"""
"""What runs in these processes, which cannot import this module."""

RULES: dict[str, Rule] = {
    "line of a worker": needs("logs"),
    "line of a worker below the level": NEVER,
    "line of a preload": only_may("logs"),  # said before an agent can be there
    "line of a nanny": needs("logs"),
    "exception of a worker's line": needs("logs"),
    "exception": needs("exceptions"),
    "function that runs": needs("profile"),
    "event": needs("events"),
    "instance type": needs("hardware"),
    "name": ALWAYS,
    "argument": NEVER,
    "result": NEVER,
    "environment variable": NEVER,
    "name of an environment variable": NEVER,
    "source of a preload": NEVER,
    "argument of a preload": NEVER,
    "file in the worker's folder": NEVER,
    "printed": NEVER,
    "standard error": NEVER,
    "warning": NEVER,
    "folder": only_may("logs"),
}

AGENTS_TELL = ("line of a worker", "line of a nanny", "exception of a worker's line", "function that runs")


async def perform(on: frozenset[str], folder: Path) -> tuple[Seen, list[str], list[str]]:
    """What was sent, and what of ours was in the worker and in its nanny."""
    c, capture, overheard = Canaries(RULES), Capture(), Overheard()
    preload = folder / "preload.py"
    preload.write_text(f"""
import click, logging, sys
{c["source of a preload"]} = 1
@click.command()
@click.option("--told")
def dask_setup(worker, told):
    print("{c["printed"]}")
    print("{c["standard error"]}", file=sys.stderr)
    logging.getLogger("users").warning("from a preload: {c["line of a preload"]}")
""")
    source = f"""
import warnings
def work(argument):
    logging.getLogger("users").warning("{c["line of a worker"]}")
    logging.getLogger("users").info("{c["line of a worker below the level"]}")
    warnings.warn("{c["warning"]}")
    try:
        raise KeyError("{c["exception of a worker's line"]}")
    except KeyError:
        logging.getLogger("users").exception("it failed")
    get_worker().log_event("topic", {{"text": "{c["event"]}"}})
    {c["function that runs"]}()
    return argument[:0] + result
def {c["function that runs"]}():
    while not seen():
        pass
def fail():
    raise ValueError("{c["exception"]}")
"""
    scope = run_cell(ELSEWHERE + source, "/ipykernel_1/work.py", result=c["result"])
    answers = {path: f"{c['instance type']}.large" if "type" in path else told for path, told in ANSWERS.items()}
    paces = {"daskscope.analytics.profile.interval": "1s"}
    paces |= {"daskscope.analytics.logs.level": "warning"} if "logs" in on else {}
    with (
        metadata(answers) as (_, environment),
        capture.running(),
        dask.config.set({**configured(on), **paces}),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(hardware, "DEADLINE_S", 60.0)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv(c["name of an environment variable"], c["environment variable"])
        inner = folder / c["folder"]
        options = ("--name", c["name"], "--preload", str(preload), "--told", c["argument of a preload"])
        async with running(0) as cluster:
            cluster.scheduler.add_plugin(overheard, name="overheard")
            found: Any = daskscope.register(cluster.client, server=capture.url, token="dst_x")
            await found
            async with worker_process(cluster.scheduler, inner, *options, nanny=True):
                (inner / c["file in the worker's folder"]).write_text(c["file in the worker's folder"])
                client: Any = cluster.client
                if on & AGENTS:
                    await until(lambda: "hello" in {each["kind"] for each in overheard.payloads})
                await until(lambda: "logs" not in on or _has_nanny(cluster.scheduler))
                await client.run(scope["say"], c["line of a nanny"], nanny=True)
                assert await client.submit(scope["work"], c["argument"]) == c["result"]
                failing = client.submit(scope["fail"])
                await wait([failing])
                # Now, for a process that ends may be too slow with its last words.
                wanted = {name for name, rule in RULES.items() if name in AGENTS_TELL and rule.must(on)}
                await until(lambda: wanted <= _told(c, overheard.payloads))
                cluster.scheduler.extensions[EXTENSION].poll()  # while the worker is there, and can be asked its name
                (in_worker,) = (await client.run(scope["agents"])).values()
                (in_nanny,) = (await client.run(scope["agents"], nanny=True)).values()
    return Seen(c, capture.bodies, overheard.payloads), in_worker, in_nanny


def _told(canaries: Canaries, payloads: list[Mapping[str, Any]]) -> set[str]:
    """Canaries in what agents said."""
    return canaries.found(json.dumps(payloads, default=list, ensure_ascii=False).encode())


def _has_nanny(scheduler: Any) -> bool:
    """Whether its nanny has taken its agent."""
    nannies: Any = scheduler.extensions[EXTENSION].readers._agents._nannies._known
    return any(nanny.id and not nanny.n_failed for nanny in nannies.values())


@pytest.mark.parametrize(
    "on",
    [
        ALL,
        pytest.param(frozenset[str](), marks=pytest.mark.long),
        *(pytest.param(ALL - {name}, marks=pytest.mark.long) for name in sorted(AGENTS)),
        *(pytest.param(frozenset([name]), marks=pytest.mark.long) for name in sorted(AGENTS)),
    ],
    ids=lambda on: "-".join(sorted(on)) or "none",
)
async def test_what_agents_say(on: frozenset[str], tmp_path: Path) -> None:
    seen, in_worker, in_nanny = await perform(on, tmp_path)
    seen.canaries.check(seen.raw, on)
    kinds = {payload["kind"] for payload in seen.overheard}
    assert kinds == ({"hello"} if on & AGENTS else set()) | ({"logs", "profile"} & on)
    assert any("cores" in payload for payload in seen.overheard) == ("hardware" in on)
    assert not {name for name in _told(seen.canaries, seen.overheard) if not RULES[name].may(on)}
    assert in_worker == ([NAME] if on & AGENTS else [])
    assert in_nanny == ([NAME] if "logs" in on else [])
