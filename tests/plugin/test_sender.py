"""The sender: order, patience, bounds and its end; stepped by hand wherever no thread is needed."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from daskscope import testing, wire
from daskscope.buffer import MAX_MESSAGES
from daskscope.compression import Encoding
from daskscope.outcome import Outcome, judge
from daskscope.pace import BACKOFF_CAP_S, PROBE_S
from tests.plugin.rig import KEPT, REPLY, Inbox
from tests.plugin.sending import AGAIN, Bench, seqs, started


def test_messages_arrive_in_the_order_of_their_making_each_under_its_name() -> None:
    bench = Bench()
    bench.put(0, 1, 2)
    for _ in range(3):
        assert bench.step()
    assert seqs(bench) == [0, 1, 2]
    first = testing.message()
    assert bench.tried[0] == f"{first.cluster}-{first.boot}-00000000"
    assert (bench.n_waiting, bench.pause_s) == (0, None)


def test_order_is_kept_while_one_is_tried_again() -> None:
    bench = Bench(AGAIN, AGAIN)
    bench.put(0, 1)
    bench.step()
    bench.put(2)
    bench.finish()
    assert seqs(bench) == [0, 1, 2]
    assert [name[-1] for name in bench.tried] == ["0", "0", "0", "1", "2"]
    assert bench.sender.lost == {}


def test_the_same_body_is_sent_at_every_try() -> None:
    bodies: list[bytes] = []

    class Keeper(Inbox):
        def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
            bodies.append(body)
            return super().deliver(name, body, encoding, is_own=is_own)

    bench = Bench(AGAIN)
    bench.sender._transport = Keeper(bench._answer)
    bench.put(0)
    bench.step()
    bench.clock.now_s += 60
    bench.step()
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]


def test_pauses_double_up_to_a_minute_with_jitter_and_begin_anew_after_a_success() -> None:
    bench = Bench(*[AGAIN] * 10, jitter=1.0)
    bench.put(0)
    pauses: list[float | None] = []
    for _ in range(10):
        bench.step()
        pauses.append(bench.pause_s)
        bench.clock.now_s += bench.pause_s or 0
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    bench.step()
    bench.outcomes = [AGAIN]
    bench.put(1)
    bench.step()
    assert bench.pause_s == 2


def test_jitter_spreads_the_pauses() -> None:
    bench = Bench(AGAIN, jitter=0.25)
    bench.put(0)
    bench.step()
    assert bench.pause_s == 0.5


def test_nothing_is_sent_before_the_pause_is_over() -> None:
    bench = Bench(AGAIN, jitter=1.0)
    bench.put(0)
    bench.step()
    bench.clock.now_s += 1.5
    bench.put(1)  # a new message wakes the thread, which must not try yet
    bench.step()
    assert len(bench.tried) == 1
    bench.clock.now_s += 0.5
    bench.step()
    assert len(bench.tried) == 2


@pytest.mark.parametrize("wait_s", [5.0, 300.0])
def test_retry_after_is_waited_for(wait_s: float) -> None:
    bench = Bench(Outcome("again", "HTTP 429", wait_s=wait_s))
    bench.put(0)
    bench.step()
    assert bench.pause_s == wait_s


def test_a_denied_token_is_probed_every_ten_minutes_and_nothing_is_lost() -> None:
    bench = Bench(*[Outcome("denied", "HTTP 401")] * 3)
    bench.put(0)
    for seq in range(1, 181):  # half an hour
        bench.step()
        bench.clock.now_s += 10
        bench.put(seq)
    assert PROBE_S == 600
    assert len(bench.tried) == 3
    bench.finish()
    assert seqs(bench) == list(range(181))
    assert bench.sender.lost == {}


def test_a_refused_message_is_dropped_and_counted_and_the_next_goes_on() -> None:
    bench = Bench(Outcome("refused", "HTTP 422: no"))
    bench.put(0, 1)
    bench.step()
    bench.step()
    assert seqs(bench) == [1]
    assert len(bench.tried) == 2
    assert bench.sender.lost == {"refused": 1}


def test_the_inbox_is_bounded_too_while_an_attempt_hangs_and_the_first_message_stays() -> None:
    bench = Bench()
    bench.put(*range(MAX_MESSAGES + 3))  # no step: the thread is busy with one that hangs
    assert bench.n_waiting == MAX_MESSAGES
    assert bench.sender.lost == {"buffer-full": 3}
    bench.finish()
    first, second = [wire.decode(body) for body in bench.inbox.bodies[:2]]
    assert (first.seq, second.seq - second.merged) == (0, 4)


def test_what_cannot_be_encoded_is_dropped_and_counted() -> None:
    bench = Bench()
    bench.sender.put(replace(testing.message(), next_s=float("nan")))
    bench.sender.put(replace(testing.message(), reason=object()))
    bench.put(1)
    bench.step()
    assert seqs(bench) == [1]
    assert bench.sender.lost == {"not-encodable": 2}


def test_one_warning_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(*[Outcome("refused", "HTTP 422: no")] * 200)
    for seq in range(180):
        bench.put(seq)
        bench.step()
        bench.clock.now_s += 1
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 3
    assert warnings[0].getMessage() == "daskscope: a message was dropped: HTTP 422: no."


def test_the_warning_says_why_and_that_the_workload_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(AGAIN)
    bench.put(0)
    bench.step()
    assert [record.getMessage() for record in caplog.records] == [
        "daskscope: not reported for now, the workload goes on: HTTP 503."
    ]


def test_replies_are_handed_on() -> None:
    reply = wire.Reply(id=1, url="/x")
    bench = Bench(Outcome("kept", "", reply), KEPT)
    bench.put(0, 1)
    bench.step()
    bench.step()
    assert bench.replies == [reply]


def test_a_reply_that_its_reader_cannot_take_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fails(reply: wire.Reply) -> None:
        raise RuntimeError("no")

    sender, inbox = started(lambda _: Outcome("kept", "", wire.Reply(id=1, url="/x")), fails)
    for seq in range(3):
        sender.put(testing.message(seq=seq))
        assert inbox.take().seq == seq
    sender.close()
    assert "RuntimeError" in caplog.text


def test_a_transport_that_raises_loses_the_message_and_counts_it() -> None:
    calls: list[str] = []

    def raises_once(name: str) -> Outcome:
        calls.append(name)
        if len(calls) == 1:
            raise ZeroDivisionError("a fault of ours")
        return KEPT

    sender, inbox = started(raises_once)
    sender.put(testing.message(seq=0))
    sender.put(testing.message(seq=1))
    assert inbox.take().seq == 1
    sender.close()
    assert sender.lost == {"failed": 1}


def test_no_error_is_raised_to_the_scheduler_whatever_is_put() -> None:
    bench = Bench()
    odd: Any = object()
    bench.sender.put(odd)
    bench.put(1)
    bench.step()
    assert seqs(bench) == [1]
    assert bench.sender.lost == {"not-encodable": 1}


def test_what_went_with_a_dropped_message_is_counted_too() -> None:
    bench = Bench(Outcome("refused", "HTTP 422"))
    failed = [testing.exception(count=7), testing.exception(no=1, count=2)]
    bench.sender.put(testing.message(exceptions=failed, events=[testing.event()]))
    bench.step()
    assert bench.sender.lost == {"refused": 1, "exceptions": 9, "events": 1}


ONCE: list[tuple[str, dict[str, Any], int]] = [
    ("exceptions", {"exceptions": [testing.exception(count=7), testing.exception(no=1, count=2)]}, 9),
    ("events", {"events": [testing.event(), testing.event()]}, 2),
    ("deaths", {"deaths": [testing.death()]}, 1),
    ("log-lines", {"logs": wire.Logs(no=[0, 1])}, 2),
    ("tasks", {"tasks": testing.tasks(3, weight=10)}, 30),
    ("profiles", {"profiles": [testing.profile()]}, 1),
]
"""What no later message tells again: the reason it counts under, and how much."""


@pytest.mark.parametrize(("reason", "parts", "n"), ONCE, ids=[case[0] for case in ONCE])
def test_what_happened_once_is_counted_with_the_message_that_is_dropped(
    reason: str, parts: dict[str, Any], n: int
) -> None:
    bench = Bench(Outcome("refused", "HTTP 422"))
    bench.sender.put(testing.message(**parts))
    bench.step()
    assert n > 0
    assert bench.sender.lost == {"refused": 1, reason: n}


def test_what_need_not_be_done_on_the_loop_is_done_here_before_encoding() -> None:
    bench = Bench()

    def finish(message: wire.Message) -> None:
        message.reason = f"finished {message.seq}"

    bench.sender._finish = finish
    bench.put(0)
    bench.step()
    assert wire.decode(bench.inbox.bodies[0]).reason == "finished 0"


def test_a_message_that_cannot_be_finished_is_dropped_and_counted_with_what_was_in_it() -> None:
    bench = Bench()

    def finish(message: wire.Message) -> None:
        if message.seq == 0:
            raise KeyError("a stack without its frames")

    bench.sender._finish = finish
    bench.sender.put(testing.message(seq=0, events=[testing.event()]))
    bench.put(1)
    bench.step()
    assert seqs(bench) == [1]
    assert bench.sender.lost == {"not-encodable": 1, "events": 1}


def test_it_counts_what_it_delivered_and_how_often_it_tried_in_vain() -> None:
    bench = Bench(AGAIN)
    bench.put(0, 1)
    bench.step()
    assert (bench.sender.n_delivered, bench.sender.n_failed_tries) == (0, 1)
    sizes = [len(parcel.body) for parcel in bench.sender._buffer.in_memory_alone()]
    bench.clock.now_s += BACKOFF_CAP_S
    bench.finish()
    assert (bench.sender.n_delivered, bench.sender.n_failed_tries) == (2, 1)
    assert bench.sender.n_delivered_bytes == sum(sizes) > 0
    assert bench.sender.cpu_s > 0


def test_whoever_answers_2xx_and_is_no_daskscope_server_takes_no_message(caplog: pytest.LogCaptureFixture) -> None:
    """A page to log in at, say, for two minutes."""
    bench = Bench(jitter=1.0)
    until_s = bench.clock.now_s + 120.0
    page, reply = judge(200, None, b"<html>Please log in</html>"), judge(200, None, REPLY)
    answer: list[Outcome] = []
    bench.inbox.answer = lambda _: (answer.append(page if bench.clock.now_s < until_s else reply), answer[-1])[1]
    for seq in range(6):
        bench.put(seq)
        bench.step()
        bench.clock.now_s += 10.0
    assert seqs(bench) == []
    bench.finish()
    assert (seqs(bench), bench.sender.lost) == ([*range(6)], {})
    said = "daskscope: not reported for now, the workload goes on: HTTP 200 and no reply of a daskscope server."
    assert {record.getMessage() for record in caplog.records} == {said}
    assert 1 <= len(caplog.records) <= 2, "once a minute"


def test_a_fault_of_the_buffer_drops_none_of_those_that_come_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    make_room = bench.sender._buffer._make_room
    n_faults = 0

    def fails_once() -> None:
        nonlocal n_faults
        n_faults += 1
        if n_faults == 2:
            raise ZeroDivisionError("a fault of ours")
        make_room()

    monkeypatch.setattr(bench.sender._buffer, "_make_room", fails_once)
    bench.put(*range(5))
    bench.step()
    bench.finish()
    assert seqs(bench) == [*range(5)]
    assert bench.sender.lost == {}
