"""Why workers went, out of what Dask's releases say."""

from typing import Any

import pytest

from daskscope.collect.reasons import Life, life_of, reason_of

AT = "1790000000.1234567"

CASES: list[tuple[str, Life, dict[str, Any], str, bool]] = [
    ("a crash", Life(), {"stimulus_id": f"handle-worker-cleanup-{AT}", "expected": False}, "lost", False),
    ("a crash, 2024.1", Life(), {}, "lost", False),
    ("nothing heard at all", Life(), {}, "lost", False),
    ("scaled down", Life(closing="nanny-close"), {"stimulus_id": f"handle-worker-cleanup-{AT}"}, "nanny-close", True),
    ("a signal", Life(closing="signal-15"), {"expected": False}, "signal-15", True),
    (
        "retired",
        Life(closing="scheduler-remove-worker", retired=True),
        {"stimulus_id": f"retire-workers-{AT}", "expected": True},
        "retired",
        True,
    ),
    ("retired, not yet said", Life(), {"stimulus_id": f"retire-workers-{AT}", "expected": True}, "retired", True),
    ("retired, 2024.3", Life(), {"stimulus_id": f"retire-workers-{AT}", "safe": True}, "retired", True),
    ("retired, 2024.1", Life(closing="scheduler-remove-worker", retired=True), {}, "retired", True),
    ("retired, then closed, 2024.1", Life(closing="worker-close", retired=True), {}, "retired", True),
    (
        "lifetime, not yet said",
        Life(),
        {"stimulus_id": f"worker-close-gracefully-{AT}", "expected": True},
        "worker-close-gracefully",
        True,
    ),
    ("lifetime, 2024.1", Life(closing="worker-lifetime-reached", retired=True), {}, "worker-lifetime-reached", True),
    (
        "scaled down adaptively",
        Life(closing="nanny-close", retired=True),
        {"stimulus_id": f"retire-workers-{AT}", "expected": True},
        "retired",
        True,
    ),
    (
        "lifetime",
        Life(closing="worker-lifetime-reached", retired=True),
        {"stimulus_id": f"worker-close-gracefully-{AT}", "expected": True},
        "worker-lifetime-reached",
        True,
    ),
    ("restart", Life(closing=f"client-restart-{AT}"), {"expected": False}, "client-restart", True),
    ("restart, 2024.1", Life(closing="scheduler-restart"), {}, "client-restart", True),
    ("restart without nanny", Life(), {"stimulus_id": f"client-restart-{AT}"}, "client-restart", True),
    ("restart of some", Life(), {"stimulus_id": f"client-restart-workers-{AT}"}, "client-restart-workers", True),
    (
        "removed by the scheduler, 2024.1",
        Life(closing="scheduler-remove-worker"),
        {},
        "scheduler-remove-worker",
        True,
    ),
    ("silent, no nanny", Life(), {"stimulus_id": f"check-worker-ttl-{AT}"}, "worker-ttl", False),
    ("silent, by its nanny", Life(closing=f"check-worker-ttl-{AT}"), {}, "worker-ttl", False),
    ("a failure of Dask", Life(closing="worker-handle_stimulus-fail-hard"), {}, "worker-fail-hard", False),
    ("no heartbeat", Life(closing="worker-heartbeat-error"), {}, "worker-heartbeat-error", False),
    ("no start", Life(closing="nanny-instantiate-timeout"), {}, "nanny-instantiate-timeout", False),
    ("an own word", Life(closing="the landlord"), {}, "the landlord", True),
    ("another removal", Life(), {"stimulus_id": f"somebody-{AT}"}, "somebody", False),
]


@pytest.mark.parametrize(
    ("life", "said", "reason", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_reason(life: Life, said: dict[str, Any], reason: str, expected: bool) -> None:
    assert reason_of(life, said, killed=False, silent=False) == (reason, expected)


def test_what_nanny_and_scheduler_say_comes_first() -> None:
    life = Life(closing="nanny-close")
    assert reason_of(life, {}, killed=True, silent=True) == ("nanny-memory", False)
    assert reason_of(life, {}, killed=False, silent=True) == ("worker-ttl", False)


def test_a_life_ends_where_the_next_begins() -> None:
    story: list[tuple[float, Any]] = [
        (1.0, {"action": "add-worker"}),
        (2.0, {"action": "closing-worker", "reason": "first"}),
        (3.0, {"action": "add-worker"}),
        (4.0, "a text"),
        (5.0, {"action": "closing-worker", "reason": "second"}),
        (6.0, {"action": "retired"}),
        (7.0, {"action": "add-worker"}),
        (8.0, {"action": "closing-worker", "reason": "third"}),
    ]
    story.reverse()
    assert life_of(story, 2.5) == Life(since_s=1.0, closing="first")
    assert life_of(story, 5.5) == Life(since_s=3.0, closing="second", retired=True)
    assert life_of(story, 9.0) == Life(since_s=7.0, closing="third")
    assert life_of([], 9.0) == Life()
