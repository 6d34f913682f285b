"""The last words of workers that went: whose they are, whatever the clocks and wherever they were logged."""

from datetime import UTC, datetime
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import CLUSTER, START_MS, boot_at, death, logs, member
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker, Found
from daskscope_lambdas.service.observed import Observed
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import START, LakeRig, envelope

BOOT = boot_at(START_MS)
A, B = "tcp://127.0.0.1:40001", "tcp://127.0.0.1:40002"
ROW = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START, last_received_at=START)


@pytest.fixture
def observed(rig: LakeRig, clock: FakeClock) -> Observed:
    return Observed(Asker(str(rig.root), rig.seals, rig.deletions), clock)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


def column(found: Found, name: str) -> list[Any]:
    return [row[name] for row in found.rows]


def test_a_death_has_the_last_ten_lines_of_its_worker_and_nanny(rig: LakeRig, observed: Observed) -> None:
    lines = [{"no": no, "at_ms": START_MS + no, "text": f"line {no}", "role": "nanny" if no % 2 else "worker"}
             for no in range(14)]  # fmt: skip
    lines += [
        {"no": 20, "at_ms": START_MS + 14_000, "text": "restarting", "role": "nanny"},
        {"no": 22, "worker": B, "text": "of another"},
        {"no": 23, "worker": None, "role": "scheduler", "text": "of the scheduler"},
    ]
    rig.write(envelope(deaths=[death(), death(no=1, at_ms=START_MS + 9_000, worker="tcp://x", expected=True)],
                       logs=logs(*lines)),
              envelope(seq=3, logs=logs({"no": 24, "text": "too late"})))  # fmt: skip
    asked, died = observed.deaths(ROW, 10, 0).rows
    assert (asked["worker"], asked["expected"], asked["logs"]) == ("tcp://x", True, [])
    assert (died["reason"], died["memory_slope"], died["processing"]) == ("nanny-memory", 80_000_000, ["clean-1"])
    assert [line["text"] for line in died["logs"]] == [f"line {no}" for no in range(5, 14)] + ["restarting"]
    assert died["logs"][-1] == {
        "time": at(14_000), "level": "warning", "logger": "distributed.worker.memory", "role": "nanny",
        "text": "restarting", "dropped": 0,
    }  # fmt: skip
    assert column(observed.deaths(ROW, 10, 0, True), "id") == [f"{BOOT}-1"]
    assert column(observed.deaths(ROW, 10, 1), "id") == [f"{BOOT}-0"]


@pytest.mark.parametrize("off_ms", [0, -3_600_000, 3_600_000, 30_000])
def test_last_words_count_by_when_they_came(rig: LakeRig, observed: Observed, off_ms: int) -> None:
    """Whatever the clock of the worker's host: before, with and just after the message that tells of the death."""

    def said(no: int, ms: int) -> wire.Logs:
        return logs({"no": no, "at_ms": START_MS + ms + off_ms, "text": f"line {no}"})

    rig.write(
        envelope(logs=said(0, -2_000)),
        envelope(seq=1, deaths=[death(at_ms=START_MS + 4_000)], logs=said(1, 3_500)),
        envelope(seq=3, logs=said(2, 12_000)),
        envelope(seq=4, logs=said(3, 30_000)),
    )
    (died,) = observed.deaths(ROW, 10, 0).rows
    assert [line["text"] for line in died["logs"]] == ["line 0", "line 1", "line 2"]


@pytest.mark.parametrize(("off_ms", "expected"), [(0, ["before", "after"]), (-3_600_000, ["before", "after", "new"])])
def test_last_words_are_not_of_who_has_the_address_next(rig: LakeRig, observed: Observed, off_ms: int,
                                                        expected: list[str]) -> None:  # fmt: skip
    """Of lines in the message that tells of the death, only a clock that is right knows whose they are."""
    told = {"before": 3_500, "after": 4_200, "new": 6_000}
    rig.write(
        envelope(
            seq=1,
            made_at_ms=START_MS + 10_000,
            deaths=[death(at_ms=START_MS + 4_000)],
            members=[member(no=0), member(no=1, joined_ms=START_MS + 5_000), member(no=2, id=B)],
            logs=logs(*({"no": no, "at_ms": START_MS + ms + off_ms, "text": text}
                        for no, (text, ms) in enumerate(told.items()))),
        ),
        envelope(seq=2, made_at_ms=START_MS + 20_000, logs=logs({"no": 9, "at_ms": START_MS + 19_000 + off_ms})),
    )  # fmt: skip
    (died,) = observed.deaths(ROW, 10, 0).rows
    assert [line["text"] for line in died["logs"]] == expected


def test_last_words_are_not_of_who_had_the_address_before(rig: LakeRig, observed: Observed) -> None:
    def told(seq: int, ms: int, *deaths: wire.Death) -> Any:
        line = {"no": seq, "at_ms": START_MS + ms - 3_600_000, "text": f"line {seq}"}
        return envelope(seq=seq, made_at_ms=START_MS + ms, deaths=[*deaths], logs=logs(line))

    first, second = death(at_ms=START_MS + 4_000), death(no=1, at_ms=START_MS + 44_000, expected=True)
    rig.write(told(0, 0), told(1, 10_000, first), told(4, 40_000), told(5, 50_000, second))
    latest, former = observed.deaths(ROW, 10, 0).rows
    assert [line["text"] for line in former["logs"]] == ["line 0", "line 1"]
    assert [line["text"] for line in latest["logs"]] == ["line 1", "line 4", "line 5"]
    (asked,) = observed.deaths(ROW, 10, 0, True).rows
    assert asked == latest


def test_last_words_of_a_nanny_in_the_process_of_the_scheduler(rig: LakeRig, observed: Observed) -> None:
    def line(no: int, text: str, **changes: Any) -> dict[str, Any]:
        plain = {"role": "scheduler", "worker": None, "logger": "distributed.nanny.memory"}
        return {"no": no, "at_ms": START_MS + 3_000 + no, "text": text} | plain | changes

    rig.write(envelope(deaths=[death(), death(no=1, worker="tcp://[::1]:4")], logs=logs(
        line(0, f"Worker {A} (pid=7) exceeded 95% memory budget. {A} restarts"),
        line(1, f"Worker {A}0 (pid=8) exceeded 95% memory budget."),
        line(2, f"Worker {A} left", logger="distributed.scheduler"),
        line(3, "own", role="worker", worker=A),
        line(4, "Gone: tcp://[::1]:4."),
    )))  # fmt: skip
    other, died = observed.deaths(ROW, 10, 0).rows
    assert [(said["role"], said["text"].split()[0]) for said in died["logs"]] == [
        ("scheduler", "Worker"), ("worker", "own"),
    ]  # fmt: skip
    assert [said["text"] for said in other["logs"]] == ["Gone: tcp://[::1]:4."]
