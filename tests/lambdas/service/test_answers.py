import dataclasses
from typing import Any

import pytest

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service import words
from daskscope_lambdas.service.answers import Depth, answers
from daskscope_lambdas.service.cost import Cost, priced
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.records import up_s
from daskscope_lambdas.service.usage import Usage

START = 1_000_000.0
GIB = 1 << 30


def row(at_s: float = 600.0, **totals: Any) -> ClusterRow:
    """A cluster that sent its last message `at_s` after its start."""
    return ClusterRow(
        account="acme", id=7, uuid="0" * 32, started_at=START, first_received_at=START, last_received_at=START + at_s,
        made_at=START + at_s, next_s=10.0, totals=totals,
    )  # fmt: skip


def cost_of(found: ClusterRow) -> Cost:
    """By its threads alone."""
    return priced(found, None, packaged())


def say(which: str, found: ClusterRow, later_s: float = 0.0, depth: Depth | None = None) -> tuple[str, str]:
    answer = answers(found, found.last_received_at + later_s, depth or Depth(), cost_of(found))[which]
    return answer["verdict"], answer["sentence"]


def test_running():
    assert say("finished", row(n_tasks=100, processing=12, waiting=13)) == (
        "running", "Running for 10 min; 75 % of 100 tasks done.",
    )  # fmt: skip
    assert say("finished", row())[1] == "Running for 10 min; no task seen yet."


def test_closed():
    closed = dataclasses.replace(row(n_tasks=100, n_tasks_erred=3), phase="closed", reason="idle-timeout-exceeded")
    assert say("finished", closed, 9999) == (
        "finished", "Closed after 10 min (idle-timeout-exceeded); 100 tasks seen, 3 failed, none left to do.",
    )  # fmt: skip
    told = dataclasses.replace(row(n_tasks=1, idle_timeout_us=1_800_000_000), phase="closed", reason=closed.reason)
    for question in ("finished", "running"):
        assert "(idle-timeout-exceeded: nothing to do for 30 min)" in say(question, told)[1]
    unfinished = dataclasses.replace(row(n_tasks=100, queued=1), phase="closed")
    assert say("finished", unfinished) == (
        "unfinished", "Closed after 10 min; 100 tasks seen, 0 failed, 1 task not done.",
    )  # fmt: skip


def test_tasks_that_were_given_up_are_not_done():
    def left(n_given_up: int, n_tasks_erred: int = 0) -> Depth:
        read = {"prefix": "read", "seconds": {}, "n_given_up": n_given_up, "n_tasks_erred": n_tasks_erred}
        return Depth(prefixes=[read, {**read, "prefix": "sum", "n_given_up": 0, "n_tasks_erred": 0}])

    closed = dataclasses.replace(row(n_tasks=5), phase="closed")
    assert say("finished", closed, depth=left(4)) == (
        "unfinished", "Closed after 10 min; 5 tasks seen, 0 failed; 4 tasks were given up before done.",
    )  # fmt: skip
    assert say("finished", row(n_tasks=5), depth=left(1))[1] == "Running for 10 min; 80 % of 5 tasks done."
    erred = dataclasses.replace(row(n_tasks=5, n_tasks_erred=2), phase="closed")
    assert say("finished", erred, depth=left(2)) == (
        "finished", "Closed after 10 min; 5 tasks seen, 2 failed, none left to do.",
    ), "of which group they were nobody knows"  # fmt: skip
    assert answers(erred, START, left(2, 1), cost_of(erred))["finished"]["n_given_up"] == 1


def test_lost():
    found = row(n_tasks=100, processing=9, memory_bytes=94, memory_limit_bytes=100)
    assert say("finished", found, 31) == (
        "lost",
        "Not heard of for 31 s, after 10 min: lost. At its last message: 100 tasks seen, 0 failed, 9 tasks not done, "
        "workers' memory 94 % full.",
    )
    assert say("running", found, 31)[0] == "lost"


def test_workers_that_died_and_failures_of_dask_stand_beside_those_of_tasks():
    died = row(n_workers_lost=2)
    assert say("exceptions", died) == ("workers-lost", "No task failed. 2 workers went without being asked to.")
    dasks = {"origin": "dask", "type": "InvalidTransition", "text": "worker", "family": "d", "count": 3}
    assert say("exceptions", row(), depth=Depth(kinds=[dasks])) == (
        "failed",
        "No task failed. Dask itself failed 3 times.",
    )
    both = Depth(kinds=[dasks, {"origin": "user", "type": "KeyError", "text": "'price'", "family": "k", "count": 4}])
    assert say("exceptions", row(n_workers_lost=1, n_tasks_erred=4), depth=both) == (
        "failed",
        "4 tasks failed, 1 kind of exception; 4 times: KeyError: 'price'. Dask itself failed 3 times. "
        "1 worker went without being asked to.",
    )


def test_exceptions_are_counted_by_kind():
    families = [
        {"type": "KeyError", "text": "'price'", "family": "k", "count": 3},
        {"type": "MemoryError", "text": "", "family": "m", "count": 1},
        {"type": "KeyError", "text": "'prize'", "family": "k", "count": 2},
    ]
    assert say("exceptions", row(n_tasks_erred=6), depth=Depth(kinds=families)) == (
        "failed", "6 tasks failed, 2 kinds of exception; the most frequent, 5 times: KeyError: 'price'",
    )  # fmt: skip
    assert say("exceptions", row(n_tasks_erred=1), depth=Depth(kinds=families[1:2])) == (
        "failed", "1 task failed, 1 kind of exception; once: MemoryError",
    )  # fmt: skip
    assert say("exceptions", row()) == ("none", "No task failed.")
    assert say("exceptions", row(n_tasks_erred=1))[1] == "1 task failed; no text of an exception has arrived."


def test_cost_says_what_it_is_based_on_and_what_came_to_nothing():
    found = row(thread_us=100 * 3_600_000_000, action_us={"compute": 25 * 3_600_000_000})
    assert say("cost", found) == (
        "estimated",
        "$4.80, estimated: 100 thread-hours at $0.033 and 400 GiB-hours at $0.00375: kinds of machine unknown. "
        "$3.60 of it for thread time in which no task that has ended ran.",
    )
    failed = priced(found, Usage(failed_us=10 * 3_600_000_000), packaged())
    answer = answers(found, START, Depth(), failed)["cost"]
    assert answer["sentence"].endswith(
        "$3.12 of it for thread time in which no task that has ended ran, $0.48 for tasks that failed."
    )
    assert (answer["thread_hours"], answer["machine_hours"], answer["used_share"]) == (100, None, 0.35)
    assert say("cost", row()) == ("unknown", "No worker has been seen, so nothing is known of the cost.")


def test_time_by_action_and_by_task():
    groups = [
        {"prefix": "read", "seconds": {"compute": 60.0, "transfer": 1.0}, "n_given_up": 0, "n_tasks_erred": 0},
        {"prefix": "sum", "seconds": {"compute": 39.0}, "n_given_up": 0, "n_tasks_erred": 0},
    ]
    found = row(action_us={"compute": 99_000_000, "transfer": 1_000_000, "disk-read": 0})
    assert say("time", found, depth=Depth(prefixes=groups)) == (
        "compute", "1 min 40 s of worker time: compute 99 %, transfer 1 %. By tasks: read 61 %, sum 39 %.",
    )  # fmt: skip
    assert say("time", row())[0] == "nothing"


def test_why_it_still_runs():
    idle = row(
        idle_since_ms=int((START + 600 - 8040) * 1000), n_clients=1, in_memory=240, held_bytes=18 * GIB, n_workers=8
    )
    assert say("running", idle) == (
        "idle", "Idle for 2 h 14 min; 1 client connected, 240 results (18 GiB) held; no idle timeout set.",
    )  # fmt: skip
    timed = dataclasses.replace(idle, totals={**idle.totals, "idle_timeout_us": 1_200_000_000})
    assert say("running", timed)[1].endswith("closes itself after 20 min of idleness, now.")
    soon = dataclasses.replace(idle, totals={**timed.totals, "idle_timeout_us": 9_000_000_000})
    assert say("running", soon, 5)[1].endswith("closes itself after 2 h 30 min of idleness, in 15 min 55 s.")
    kept = dataclasses.replace(idle, totals={**idle.totals, "adaptive_minimum": 2})
    assert say("running", kept)[1] == (
        "Idle for 2 h 14 min; 1 client connected, 240 results (18 GiB) held, adaptive scaling keeps at least "
        "2 workers; no idle timeout set."
    )
    none = dataclasses.replace(idle, totals={**idle.totals, "adaptive_minimum": 0})
    assert "adaptive" not in say("running", none)[1]
    assert say("running", row(no_worker=40, n_workers=2)) == (
        "stuck", "40 tasks wait for a worker that may run them; 2 workers present.",
    )  # fmt: skip
    assert say("running", row(queued=3)) == ("stuck", "3 tasks to do and no worker.")
    assert say("running", row(processing=112, waiting=5, n_workers=20)) == (
        "working", "20 workers at work: tasks 112 processing, 5 waiting.",
    )  # fmt: skip
    closed = dataclasses.replace(row(), phase="closed")
    assert say("running", closed)[1] == "It is not: closed on 12 Jan 1970 13:56:40 UTC."


def test_a_close_that_was_asked_for_is_told():
    asked = dataclasses.replace(
        row(processing=2, n_workers=1), close_asked_at=START + 604, close_asked_by="ann", close_asked_reason="idle"
    )
    assert say("running", asked, 5) == (
        "working",
        "1 worker at work: tasks 2 processing. Asked to close 1 s ago by ann (idle); it is told with its next message, "
        "due by 12 Jan 1970 13:56:50 UTC.",
    )
    told = dataclasses.replace(asked, last_received_at=START + 610, close_asked_reason=None)
    assert say("running", told, 2)[1].endswith("Asked to close 8 s ago by ann; it has been told.")
    later = dataclasses.replace(asked, last_received_at=START + 604 + 901)
    assert say("running", later)[1].endswith(
        "Asked to close 15 min 1 s ago by ann (idle), to no effect; it is not asked any more."
    )
    figures = answers(asked, START + 605, Depth(), cost_of(asked))["running"]
    assert figures["close_asked"] == {"at": "1970-01-12T13:56:44.000Z", "by": "ann", "reason": "idle"}
    closed = dataclasses.replace(asked, phase="closed", reason="close-requested")
    assert say("running", closed)[1] == (
        "It is not: closed on 12 Jan 1970 13:56:40 UTC (close-requested), asked for by ann: idle."
    )
    by_hand = dataclasses.replace(closed, reason="closed")
    assert say("running", by_hand)[1] == "It is not: closed on 12 Jan 1970 13:56:40 UTC."


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (words.duration(0.314), "314 ms"), (words.duration(31e-6), "31 µs"), (words.duration(0.9999), "1 s"),
        (words.duration(-3.0), "0 s"), (words.duration(59.9), "59 s"), (words.duration(60), "1 min"),
        (words.duration(8040), "2 h 14 min"), (words.duration(90_061), "1 d 1 h"), (words.duration(0), "0 s"),
        (words.size(0), "0 bytes"), (words.size(1023), "0.999 KiB"), (words.size(18 * GIB), "18 GiB"),
        (words.size(1 << 20), "1 MiB"), (words.share(1, 1000), "<1 %"), (words.share(999, 1000), "99 %"),
        (words.share(1, 0), "–"), (words.dollars(3.214), "$3.21"), (words.dollars(0.00421), "$0.0042"),
        (words.dollars(0), "$0.00"), (words.count(1, "task"), "1 task"), (words.count(1200, "task"), "1,200 tasks"),
    ],
)  # fmt: skip
def test_words(made: str, said: str):
    assert made == said


@pytest.mark.parametrize("ahead_s", [-3600.0, 0.0, 3600.0])
def test_uptime_does_not_mix_two_clocks(ahead_s: float):
    found = row()
    skewed = dataclasses.replace(found, started_at=found.started_at + ahead_s, made_at=found.made_at + ahead_s)
    now = found.last_received_at + 2
    assert up_s(skewed, now) == pytest.approx(found.made_at - found.started_at + 2)


def test_kinds_are_a_lower_bound_where_some_were_dropped():
    dropped = dataclasses.replace(row(n_tasks_erred=9), lost={"exceptions": 3})
    depth = Depth(kinds=[{"type": "KeyError", "text": "KeyError('a')", "family": "k", "count": 6}])
    assert "at least 1 kind of exception" in say("exceptions", dropped, depth=depth)[1]
