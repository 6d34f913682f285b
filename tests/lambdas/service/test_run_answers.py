from datetime import UTC, datetime
from typing import Any

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.run_answers import answers

ROW = ClusterRow(
    account="acme", id=7, uuid="a" * 32, started_at=0.0, first_received_at=0.0, last_received_at=0.0,
    totals={"n_tasks_erred": 90, "action_us": {"compute": 5_000_000_000}, "n_workers_lost": 2}, lost={"exceptions": 1},
)  # fmt: skip
GROUPS = [
    {"prefix": "load", "seconds": {"compute": 30.0, "disk-read": 30.0}, "n_given_up": 0},
    {"prefix": "sum", "seconds": {"compute": 20.0}, "n_given_up": 0},
]
ALIKE = {
    "since": datetime(2026, 10, 22, tzinfo=UTC), "n": 31, "n_clusters": 4, "median_duration": 302.0,
    "least_duration": 61.0, "most_duration": 900.0, "rank": 30,
}  # fmt: skip


def say(**changes: Any) -> dict[str, tuple[str, str]]:
    families = changes.pop("families", [])
    record = {
        "status": "finished", "duration": 312.0, "n_tasks": 1200, "n_tasks_erred": 0, "groups": GROUPS,
        "seconds": {"compute": 50.0, "disk-read": 30.0}, "same_code": ALIKE,
        "cost": {"dollars": 1.02, "currency": "EUR", "quality": "measured", "basis": "measured: two hours of it"},
        **changes,
    }  # fmt: skip
    return {name: (each["verdict"], each["sentence"]) for name, each in answers(ROW, record, families).items()}


def test_a_computation_answers_for_itself_and_not_for_its_cluster():
    assert say() == {
        "finished": ("finished", "It took 5 min 12 s; 1,200 tasks, 0 failed."),
        "exceptions": ("none", "No task failed."),
        "cost": ("measured", "1.02 EUR, measured: two hours of it."),
        "time": (
            "compute",
            "1 min 20 s of worker time: compute 62 %, disk-read 38 %. By tasks: load 75 %, sum 25 %.",
        ),
        "alike": (
            "repeated",
            "The same code ran 31 times since 22 Oct 2026 on 4 clusters, in 1 min 1 s to 15 min, half of them within "
            "5 min 2 s; this one is number 30 from the quickest on.",
        ),
    }


def test_what_failed_is_that_of_the_computation():
    family = {"origin": "user", "type": "KeyError", "text": "'price'", "family": "f", "count": 3}
    found = say(status="erred", n_tasks_erred=3, families=[family])
    assert found["exceptions"][0] == "failed"
    assert found["exceptions"][1].startswith("3 tasks failed, at least 1 kind of exception; 3 times: KeyError: 'price'")


def test_what_nobody_knows_is_said():
    untold = {"dollars": None, "currency": "USD", "quality": "unknown", "basis": "unknown: nobody knows yet"}
    running = say(status="running", duration=None, cost=untold, same_code=None)
    assert running["finished"] == ("running", "It runs; 1,200 tasks, 0 failed so far.")
    assert running["cost"] == ("unknown", "Unknown: nobody knows yet.")
    assert running["alike"][0] == "unknown"
    lost = say(status="unfinished", duration=None, same_code={**ALIKE, "n": 1, "median_duration": None, "rank": None})
    assert lost["finished"][1] == "Nobody knows how long it took; 1,200 tasks, 0 failed."
    assert lost["alike"] == ("first", "No other computation had this code since 22 Oct 2026.")
    none_ended = say(same_code={**ALIKE, "median_duration": None, "rank": None})
    assert none_ended["alike"][1].endswith("on 4 clusters; none of them has ended.")
