"""The report that is made of a run after the fact against the one that Dask writes of the same run."""

from __future__ import annotations

import importlib.util
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from bench.one_run import one_run
from bench.report_size import workload
from bench.rows import Budget, Row, progress
from bench.served import event
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.letters import Letters
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.wiring import connect

ACCOUNT = "bench"
PROFILE_S = 5.0
"""Between two profiles: at the usual minute runs that are shorter would have none, and Dask's report has."""


def run_report(tiny: bool) -> Iterator[Row]:
    """Two rows a run: without a row for each task, and with."""
    if importlib.util.find_spec("bokeh") is None:
        how = "performance_report needs bokeh (pip install --group bench), so there is nothing to compare with."
        yield Row(name="run-report", value=None, unit="x smaller", how=how)
        return
    empty = _measured(lambda _: None, tiny)
    runs: list[tuple[str, bool, Callable[[Any], None], str]] = [
        ("tiny-tasks", True, lambda client: _tiny(client, 200 if tiny else 13_000), "futures of microseconds"),
        ("mixed", True, lambda client: workload(client, 8), "a shuffle, an array, futures of which some raise"),
        ("small", False, lambda client: _tiny(client, 1_000), "futures of microseconds"),
    ]
    for name, is_judged, work, what in runs[: 1 if tiny else None]:
        progress(f"run-report: {name}")
        yield from _rows(name, is_judged, _measured(work, tiny), empty, what)


def _tiny(client: Any, n: int) -> None:
    for _ in range(4):
        client.gather(client.map(operator.index, range(n // 4), pure=False))


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes of Dask's file, of ours, and of ours with a row for each task."""

    n_tasks: int
    dask: int
    plain: int
    tasks: int


def _measured(work: Callable[[Any], None], tiny: bool) -> Measured:
    ran = one_run(work, processes=not tiny, tasks=True, profile_interval_s=PROFILE_S)
    with TemporaryDirectory() as folder:
        env = LocalEnv(data=folder)
        adapters = connect(env)
        try:
            ingest = Ingest.over(adapters)
            for body, encoding in ran.sent:
                ingest.take(ACCOUNT, body, encoding)
            queued = [(each.id, each.body) for each in adapters.feed.receive(len(ran.sent), 60)]
            letters = Letters(adapters.objects, adapters.clock)
            if write_batch(Writer(adapters.objects, adapters.seals), letters, queued):
                raise ValueError("Messages of the run could not be written.")
            with house.entered(house.House(lambda: env, lambda: adapters)):
                from daskscope_lambdas.handlers import api  # makes ready what it finds in the house

                bearer = f"Bearer {mint(adapters.tokens, adapters.clock, ACCOUNT, ('read',), 'bench')[0]}"
                plain, tasks = (_file_bytes(api, bearer, asked) for asked in ("false", "true"))
        finally:
            adapters.close()
    return Measured(ran.n_tasks, ran.html_bytes, plain, tasks)


def _file_bytes(api: Any, bearer: str, tasks: str) -> int:
    answer = api.handler(event(f"/api/v1/{ACCOUNT}/clusters/1/report", {"tasks": tasks}, bearer), None)
    if answer["statusCode"] != 200:
        raise ValueError(f"No report was made: {answer['body'][:500]}")
    return len(answer["body"].encode())


def _rows(name: str, is_judged: bool, found: Measured, empty: Measured, what: str) -> Iterator[Row]:
    dask = found.dask - empty.dask
    for suffix, ours, less, least in (
        ("", found.plain, empty.plain, 100),
        ("/with-task-rows", found.tasks, empty.tasks, 40),
    ):
        yield Row(
            name=f"run-report/{name}{suffix}",
            value=dask / (ours - less),
            unit="x smaller",
            budget=Budget("at least", least) if is_judged else None,
            peers={
                "performance_report's data, bytes": dask,
                "ours, bytes": ours - less,
                "its whole file": found.dask,
                "our whole file": ours,
            },
            how=f"{found.n_tasks:,} tasks ({what}) in a LocalCluster of two processes: performance_report without "
            "BokehJS in it, and our report of the same run out of the lake, each less the same file of a run without "
            f"a task; a profile each {PROFILE_S:g} s, code and exceptions in it.",
        )
