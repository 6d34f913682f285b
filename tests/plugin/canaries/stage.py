"""One workload on one small cluster, with some switches on and the others off, and all that was sent of it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import SchedulerPlugin, Worker

import daskscope
from daskscope import wire
from daskscope.agent import NAME, TOPIC, hardware, lines
from daskscope.compression import decompress
from daskscope.message_file import SUFFIXES
from daskscope.watch import EXTENSION
from tests.plugin.agent.test_hardware import ANSWERS, metadata
from tests.plugin.canaries.capture import Capture
from tests.plugin.canaries.planted import Canaries
from tests.plugin.canaries.workload import RULES, Work, gated, gates, plugins
from tests.plugin.rig import Cluster, running, until

SWITCHES: dict[str, tuple[str, Any, Any]] = {
    "code": ("analytics.computation.code.transmit", True, False),
    "exceptions": ("analytics.exceptions.transmit", True, False),
    "events": ("analytics.events.allow", ["*"], []),
    "logs": ("analytics.logs.level", "debug", "off"),
    "profile": ("analytics.profile.transmit", True, False),
    "tasks": ("analytics.tasks.transmit", True, False),
    "hardware": ("analytics.hardware.transmit", True, False),
    "scrub": ("analytics.scrub.secrets", True, False),
}
"""Switch to its key, and its values for on and off."""
ALL = frozenset(SWITCHES)
AGENTS = frozenset({"logs", "profile", "hardware"})
"""Those that need somebody on the workers."""


def configured(on: frozenset[str]) -> dict[str, Any]:
    """The user's configuration. No budget: what it drops is not what is looked for here."""
    values = {f"daskscope.{key}": yes if name in on else no for name, (key, yes, no) in SWITCHES.items()}
    return values | {"daskscope.analytics.budget": None}


class Overheard(SchedulerPlugin):
    """What agents say to the scheduler."""

    def __init__(self) -> None:
        self.payloads: list[Mapping[str, Any]] = []

    def log_event(self, topic: str, msg: Any) -> None:
        if topic == TOPIC:
            self.payloads.append(msg)


@dataclass
class Seen:
    canaries: Canaries
    bodies: list[bytes] = field(default_factory=list)
    overheard: list[Mapping[str, Any]] = field(default_factory=list)
    has_agent: bool = False
    asked_of_ec2: list[str] = field(default_factory=list)

    @property
    def raw(self) -> bytes:
        return b"\n".join(self.bodies)

    @property
    def messages(self) -> list[wire.Message]:
        return [wire.decode(body) for body in self.bodies]


@contextmanager
def talkative() -> Generator[None]:
    """All loggers say all, and no line is too many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BURST", 1_000_000)
        patch.setattr(lines, "MAX_LINES", 1_000_000)
        for name in ("", "distributed", "distributed.client"):
            patch.setattr(logging.getLogger(name), "level", logging.DEBUG)
        logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]  # as `setLevel` does
        # Dask's own handler would write megabytes for nobody.
        patch.setattr(logging.getLogger("distributed"), "handlers", [logging.NullHandler()])
        yield
    logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]  # as `setLevel` does


@contextmanager
def surroundings(canaries: Canaries, folder: Path) -> Generator[list[str]]:
    """A machine of EC2 and a user's home, environment and command line; what EC2 was asked."""
    home = folder / "home"
    home.mkdir()
    (home / canaries["file at home"]).write_text(canaries["file at home"])
    answers = {path: f"{canaries['instance type']}.large" if "type" in path else told for path, told in ANSWERS.items()}
    with metadata(answers) as (service, environment), pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardware, "DEADLINE_S", 60.0)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("HOME", str(home))
        patch.setenv("USERS_SETTING", canaries["environment variable"])
        patch.setattr(sys, "argv", ["dask", "scheduler", "--tls-key", canaries["command line"]])
        yield service.asked


async def perform(on: frozenset[str], folder: Path, *, spool: Path | None = None) -> Seen:
    """`spool`: the data folder, where there is to be no server."""
    canaries, capture, overheard = Canaries(RULES), Capture(), Overheard()
    worker = {"local_directory": str(folder / canaries["folder of a worker"]), "resources": {canaries["resource"]: 1}}
    users = {"users.setting": canaries["configuration"]}
    with ExitStack() as stack:
        asked_of_ec2 = stack.enter_context(surroundings(canaries, folder))
        stack.enter_context(talkative())
        stack.enter_context(dask.config.set(configured(on) | users))
        stack.enter_context(capture.running())
        async with (
            running(1, worker=worker) as cluster,
            Worker(
                cluster.scheduler.address, nthreads=1, name=canaries["worker"], dashboard=False, memory_limit="1 GiB"
            ) as doomed,
        ):
            cluster.workers.append(doomed)
            cluster.scheduler.add_plugin(overheard, name="overheard")
            await plugins(cluster, canaries)
            found: Any = daskscope.register(
                cluster.client, server=None if spool else capture.url, token="dst_ours", name=canaries["cluster"],
                tags={canaries["name of a tag"]: canaries["tag"]},
            )  # fmt: skip
            await found
            await _work(cluster, canaries, on)
            has_agent = any(NAME in each.plugins for each in cluster.workers)
    bodies = bodies_in(spool) if spool else capture.bodies
    assert canaries.planted == RULES.keys(), "all are planted"
    return Seen(canaries, bodies, overheard.payloads, has_agent, asked_of_ec2)


def bodies_in(data: Path) -> list[bytes]:
    """What a spool holds, decompressed."""
    encodings = {suffix: encoding for encoding, suffix in SUFFIXES.items()}
    return [decompress(file.read_bytes(), encodings["".join(file.suffixes)]) for file in data.rglob("*.msg")]


async def preview(ons: Sequence[frozenset[str]], folder: Path) -> list[tuple[Canaries, bytes]]:
    """What each of these settings would let out of one cluster that reports nothing."""
    canaries = Canaries(RULES)
    shown: list[tuple[Canaries, bytes]] = []
    with surroundings(canaries, folder), talkative(), gated():
        async with running(1) as cluster:
            work = Work(cluster, canaries)
            for part in (work.names, work.values, work.code, work.failures, work.events, work.lines, work.everywhere):
                await part()
            for on in ons:
                with dask.config.set(configured(on)):
                    made: Any = daskscope.preview(cluster.client)
                    shown.append((canaries, (await made).json.encode()))
    return shown


async def _work(cluster: Cluster, canaries: Canaries, on: frozenset[str]) -> None:
    with gated("profile", "killed"):
        if on & AGENTS:
            await until(lambda: all(NAME in worker.plugins for worker in cluster.workers))
        work = Work(cluster, canaries)
        await work.all()
        await until(lambda: _looked_at(cluster, on))
        cluster.scheduler.extensions[EXTENSION].poll()  # while both workers are there, and can be asked their names
        await work.lose_worker()
        gates["profile"].passed.set()
        await work.running


def _looked_at(cluster: Cluster, on: frozenset[str]) -> bool:
    """Whether whoever takes profiles has met the function that runs: Dask, and our agent where it is to."""
    worker = cluster.workers[0]
    agent: Any = worker.plugins.get(NAME)
    return worker.profile_recent["count"] > 0 and ("profile" not in on or bool(agent._profiler._seen.counts))
