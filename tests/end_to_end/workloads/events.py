"""Events that a user logs, from client, worker and scheduler: more in an interval than Dask itself keeps."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from distributed import Scheduler, get_worker

import daskscope

TOPIC = "greetings"
N_EACH = 400


def greet(start: int, stop: int) -> str:
    worker = get_worker()
    for n in range(start, stop):
        worker.log_event(TOPIC, {"action": "hello", "from": "worker", "n": n})
    return worker.address


def greet_from_scheduler(dask_scheduler: Scheduler) -> None:
    for n in range(N_EACH):
        dask_scheduler.log_event(TOPIC, {"action": "hello", "from": "scheduler", "n": n})
    dask_scheduler.log_event(TOPIC, {"odd": object(), "from": "scheduler", "n": -1})


class Events:
    def work(self, client: Any) -> None:
        for n in range(N_EACH):
            client.log_event(TOPIC, {"action": "hello", "from": "client", "n": n})
        client.log_event("secrets", {"action": "hello", "n": 0})
        self.address = client.submit(greet, 0, N_EACH).result()
        client.run_on_scheduler(greet_from_scheduler)

    def check(self, cluster_id: int) -> None:
        events = daskscope.list_events(cluster_id)
        told = Counter[tuple[str, int]]()
        for event in events:
            if event["topic"] == TOPIC:
                detail = json.loads(event["detail"])
                told[detail["from"], detail["n"]] += 1
                assert event["worker"] == (self.address if detail["from"] == "worker" else None)
        expected = Counter((who, n) for who in ("client", "worker", "scheduler") for n in range(N_EACH))
        assert told == expected + Counter([("scheduler", -1)])
        assert "secrets" not in {event["topic"] for event in events}
        assert "run-function" not in {event["action"] for event in events}
