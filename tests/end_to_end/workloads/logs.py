"""Log lines of a scheduler, workers and nannies."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from distributed import Scheduler, get_worker

import daskscope
from tests.end_to_end.workloads.workload import only

LOGGER = "tests.lines"
N_EACH = 20


def say(n: int) -> str:
    logging.getLogger(LOGGER).warning("line %d of a task", n)
    logging.getLogger(LOGGER).info("line %d is below the level", n)
    return get_worker().address


def fail_and_say() -> None:
    try:
        raise KeyError("lost")
    except KeyError:
        logging.getLogger(LOGGER).exception("line of a failure")


def say_on_scheduler(dask_scheduler: Scheduler) -> None:
    logging.getLogger(LOGGER).error("line of the scheduler")


def say_on_nanny(dask_worker: Any) -> str:
    logging.getLogger(LOGGER).warning("line of a nanny")
    return dask_worker.worker_address


class Logs:
    def work(self, client: Any) -> None:
        self.said = Counter(client.gather(client.map(say, range(N_EACH))))
        client.submit(fail_and_say).result()
        client.run_on_scheduler(say_on_scheduler)
        self.nannies = list(client.run(say_on_nanny, nanny=True).values())

    def check(self, cluster_id: int) -> None:
        lines = [row for row in daskscope.logs(cluster_id, filter="line") if row["logger"] == LOGGER]
        by_role: dict[str, list[dict[str, Any]]] = {"scheduler": [], "worker": [], "nanny": []}
        for row in lines:
            by_role[row["role"]].append(row)
        tasks = [row for row in by_role["worker"] if "of a task" in row["text"]]
        assert sorted(row["text"] for row in tasks) == sorted(f"line {n} of a task" for n in range(N_EACH))
        assert Counter(row["worker"] for row in tasks) == self.said
        assert {row["level"] for row in tasks} == {"warning"}
        failure = only([row for row in by_role["worker"] if "failure" in row["text"]])
        assert "KeyError: 'lost'" in failure["text"]
        assert [(row["text"], row["level"], row["worker"]) for row in by_role["scheduler"]] == [
            ("line of the scheduler", "error", None)
        ]
        assert [row["text"] for row in by_role["nanny"]] == ["line of a nanny"] * len(self.nannies)
        assert sorted(row["worker"] for row in by_role["nanny"]) == sorted(self.nannies)
        assert not [row for row in lines if row["dropped"]]
